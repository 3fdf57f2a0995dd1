"""A real checkpoint: the sentence embeddings of a sentence-transformers model, ours beside PyTorch's.

Two steps, since the libraries need not share an environment. With transformers and torch, the
reference, from the files of the model alone:

    python tests/checks/sentence_embeddings.py reference <model folder> /tmp/reference.npz

and with bert_tf, which fails if an embedding is further off than 1e-5:

    python tests/checks/sentence_embeddings.py compare <model folder> /tmp/reference.npz

Mean of the last hidden states over real tokens, normalized: what `1_Pooling/config.json` and
`modules.json` of all-MiniLM-L6-v2 ask for.
"""

import sys

import numpy as np

TEXTS = [
    "A man is eating food.",
    "The girl is carrying a baby.",
    "Ein Mann isst ein Stück Brot – naïve café, 北京, 10%!",
    "",
    "It's the most wonderful time of the year, unbelievably antidisestablishmentarian. " * 8,
    "the united states",
]
LENGTH = 256


def reference(folder, path):
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    batch = tokenizer(TEXTS, padding=True, truncation=True, max_length=LENGTH, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**batch).last_hidden_state
    real = batch["attention_mask"][:, :, None].float()
    embeddings = torch.nn.functional.normalize((hidden * real).sum(1) / real.sum(1), dim=1)
    ids = np.where(batch["attention_mask"], batch["input_ids"], -1)
    np.savez(path, token_ids=ids, embeddings=embeddings.numpy())


def compare(folder, path):
    import bert_tf

    theirs = np.load(path)
    model = bert_tf.load(folder)
    print(f"{model.family}: {model.encoder.count_params():,} parameters; {model.report}")
    batch = model.tokenizer.pack(model.tokenizer.tokenize(TEXTS), sequence_length=LENGTH, dynamic=True)
    ids = np.where(batch["padding_mask"], batch["token_ids"], -1)
    assert np.array_equal(ids, theirs["token_ids"]), "the token ids differ"
    hidden = np.asarray(model.encoder(batch)["sequence_output"], "float64")
    real = np.asarray(batch["padding_mask"])[:, :, None]
    means = (hidden * real).sum(1) / real.sum(1)
    embeddings = means / np.linalg.norm(means, axis=1, keepdims=True)
    error = np.max(np.abs(embeddings - theirs["embeddings"]))
    print(f"{len(TEXTS)} texts, {ids.shape[1]} tokens: same ids; largest difference of an embedding {error:.2e}")
    assert error < 1e-5


if __name__ == "__main__":
    {"reference": reference, "compare": compare}[sys.argv[1]](*sys.argv[2:])
