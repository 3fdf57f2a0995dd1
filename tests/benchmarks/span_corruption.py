"""Tokens of text a second from text files through T5's span corruption to the update, beside transformers.

    pip install torch transformers   # may live elsewhere
    python tests/benchmarks/span_corruption.py [--torch-python PYTHON] [--text FILE.jsonl]

The same text, a vocabulary of the same size, inputs and targets of the same lengths, T5 1.0 with `--layers` layers in
encoder and decoder each, dropout 0.1, clip at 1.0, AdamW. bert_tf writes shards and corrupts them in its reader;
transformers reads blocks of token ids with the collator of its T5 example (`t5_collator.py`) in a process of its own.
"data" is how long tokenizing one epoch took.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from end_to_end import SAMPLE, read_documents
from side_by_side import main, model_arguments, paced
from t5_collator import T5Collator, lengths, longest_text
from training_step import RATE

VOCABULARY, SENTINELS = 8000, 100


def bert_tf(policy):
    def setup(a):
        from bert_tf.backend import AdamW
        from bert_tf.models.t5.config import T5Config
        from bert_tf.models.t5.model import T5
        from bert_tf.objectives import Denoising
        from bert_tf.tokenizers import train_unigram
        from tfrecords.corruption.denoising import DenoisingCorruption
        from tfrecords.reading.reader import ShardReader
        from tfrecords.shards.writer import ShardsConfig, write_shards

        documents = read_documents(a)
        tokenizer = train_unigram(documents, VOCABULARY, family="t5")
        folder = Path(tempfile.mkdtemp())
        (folder / "corpus.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in documents))
        tokens = longest_text(a.length)
        start = time.perf_counter()
        shards = ShardsConfig(sequence_length=tokens + 1, format="token_blocks")  # and </s>
        write_shards(folder / "corpus.jsonl", folder / "shards", tokenizer, shards, progress=False)
        seconds = time.perf_counter() - start
        reader = ShardReader(folder / "shards", tokenizer)
        config = T5Config(
            VOCABULARY + SENTINELS,
            a.hidden_size,
            num_layers=a.layers,
            num_heads=a.heads,
            head_size=a.hidden_size // a.heads,
            intermediate_size=4 * a.hidden_size,
        )
        model = Denoising(T5(config, dtype=policy))
        model.compile(optimizer=AdamW(RATE, global_clipnorm=1.0))
        corrupt = DenoisingCorruption(tokenizer)
        assert corrupt.config.lengths(tokens) == lengths(tokens)
        train = paced(model, reader.dataset(a.batch, seed=0, corrupt=corrupt), a.steps)

        def turn():
            train()
            return a.steps * a.batch * tokens

        return "tokens", turn, lambda: {"data": f"{seconds:.1f} s", "lengths": str(lengths(tokens))}

    return setup


def transformers(bfloat16):
    def setup(a):
        import os

        import numpy as np
        import torch
        from tokenizers import SentencePieceUnigramTokenizer
        from transformers import T5Config, T5ForConditionalGeneration

        torch.set_num_threads(len(os.sched_getaffinity(0)))
        documents = read_documents(a)
        tokenizer = SentencePieceUnigramTokenizer()
        special = ["<pad>", "</s>", "<unk>"]
        tokenizer.train_from_iterator(
            documents, VOCABULARY, special_tokens=special, unk_token="<unk>", show_progress=False
        )
        tokens = longest_text(a.length)
        start = time.perf_counter()
        ids = np.concatenate([encoding.ids for encoding in tokenizer.encode_batch(documents)])
        rows = ids[: len(ids) // tokens * tokens].reshape((-1, tokens))
        seconds = time.perf_counter() - start
        collate = T5Collator(VOCABULARY + SENTINELS, end_id=1)

        def tensors(batch):
            return {name: torch.from_numpy(x) for name, x in collate(batch).items()}

        loader = torch.utils.data.DataLoader(
            rows, a.batch, shuffle=True, drop_last=True, collate_fn=tensors, num_workers=1, persistent_workers=True
        )
        config = T5Config(
            vocab_size=VOCABULARY + SENTINELS,
            d_model=a.hidden_size,
            d_kv=a.hidden_size // a.heads,
            d_ff=4 * a.hidden_size,
            num_layers=a.layers,
            num_heads=a.heads,
            decoder_start_token_id=0,
        )
        model = T5ForConditionalGeneration(config).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)

        def endless():
            while True:
                yield from loader

        batches = endless()

        def turn():
            for _ in range(a.steps):
                with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
                    loss = model(**next(batches)).loss
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            loss.item()
            return a.steps * a.batch * tokens

        return "tokens", turn, lambda: {"data": f"{seconds:.1f} s", "lengths": str(lengths(tokens))}

    return setup


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", default=SAMPLE)
    parser.add_argument("--documents", type=int, default=40)
    model_arguments(parser, batch=16)
    parser.add_argument("--steps", type=int, default=4, help="of a turn")
    main(
        {
            "bert_tf, float32": bert_tf("float32"),
            "bert_tf, bfloat16": bert_tf("mixed_bfloat16"),
            "transformers on PyTorch, float32": transformers(False),
            "transformers on PyTorch, bfloat16": transformers(True),
        },
        parser,
        reference=["transformers on PyTorch, float32"],
    )
