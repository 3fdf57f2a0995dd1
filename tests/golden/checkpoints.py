"""Writes tests/fixtures/checkpoints/*/: tiny random models as Hugging Face's libraries save them.

Run by hand, in an environment of its own with torch, transformers (5.x was used), sentencepiece:

    python tests/golden/checkpoints.py tests/fixtures/checkpoints [name ...]

Each folder holds config.json, model.safetensors and tokenizer files, written by `save_pretrained`,
and expected.npz: inputs, the last hidden states, and the logits of the pretraining heads, computed
in float64; and what the tokenizer makes of a sentence.
"""

import collections
import inspect
import json
import random
import shutil
import sys
from pathlib import Path

import numpy as np
import sentencepiece
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    AlbertConfig,
    BertConfig,
    DistilBertConfig,
    ElectraConfig,
    GPT2Config,
    ModernBertConfig,
    OpenAIGPTConfig,
    RobertaConfig,
    XLNetConfig,
)

SENTENCE = "the people of the united states, and the government"
TEXT = [
    "the people of the united states and the government of the people",
    "a state of the union is a report, and the president gives it to the people",
    "peace and war, tax and law: the nation and the states",
]
POSITIONS = [0, 3, 5]  # of the logits that are kept
BERT = dict(hidden_size=12, num_attention_heads=3, intermediate_size=20, num_hidden_layers=2,
            max_position_embeddings=16, initializer_range=0.3)  # fmt: skip
GPT = dict(n_embd=12, n_head=3, n_layer=2, n_positions=16, initializer_range=0.3)


def wordpiece(folder):
    words = sorted({w.strip(",:") for line in TEXT for w in line.split()})
    letters = sorted({c for w in words for c in w})
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ",", ":", *words[::2]]
    tokens += [t for t in (*letters, *(f"##{c}" for c in letters)) if t not in tokens]
    (folder / "vocab.txt").write_text("".join(f"{t}\n" for t in tokens))
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 16}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = transformers.BertTokenizer.from_pretrained(folder)
    return tokenizer, len(tokens)


def byte_level(folder, kind):
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer, raw.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    if kind == "GPT2Tokenizer":
        trainer = trainers.BpeTrainer(
            vocab_size=262, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
        )
        raw.train_from_iterator(TEXT, trainer)
        raw.model.save(str(folder))
        (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind, "model_max_length": 16}))
        return transformers.GPT2Tokenizer(str(folder / "vocab.json"), str(folder / "merges.txt")), raw.get_vocab_size()
    roberta = kind == "RobertaTokenizer"
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] if roberta else ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"]
    trainer = trainers.BpeTrainer(
        vocab_size=268, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    raw.train_from_iterator(TEXT, trainer)
    if roberta:
        raw.model.save(str(folder))
        tokenizer = transformers.RobertaTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
        (folder / "tokenizer_config.json").write_text(
            json.dumps({"tokenizer_class": "RobertaTokenizer", "model_max_length": 16})
        )
        return tokenizer, raw.get_vocab_size()
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 2)]
    )
    names = dict(zip(("cls_token", "pad_token", "sep_token", "unk_token", "mask_token"), special))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=raw, **names)
    tokenizer.save_pretrained(folder)
    return tokenizer, raw.get_vocab_size()


def end_of_word(folder):
    raw = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    raw.train_from_iterator(
        TEXT, trainers.BpeTrainer(vocab_size=70, special_tokens=["<unk>"], end_of_word_suffix="</w>")
    )
    raw.model.save(str(folder))
    settings = {"tokenizer_class": "OpenAIGPTTokenizer", "unk_token": "<unk>", "model_max_length": 16}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="<unk>"), raw.get_vocab_size()


def unigram(folder, kind):
    albert = kind == "AlbertTokenizer"
    text = folder / "text"
    text.write_text("\n".join(TEXT * 3))
    controls = ["[CLS]", "[SEP]"] if albert else ["<cls>", "<sep>", "<pad>"]
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(folder / "spiece"), vocab_size=40, model_type="unigram",
        normalization_rule_name="identity", pad_id=0 if albert else -1, unk_id=1 if albert else 0,
        bos_id=-1, eos_id=-1, pad_piece="<pad>", unk_piece="<unk>", minloglevel=2,
        control_symbols=controls, user_defined_symbols=["[MASK]"] if albert else ["<mask>"],
    )  # fmt: skip
    text.unlink()
    (folder / "spiece.vocab").unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind, "do_lower_case": albert}))
    return sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model")), 40


Case = collections.namedtuple("Case", "architecture tokenizer config padding shards", defaults=(0, None))
CASES = {
    "bert": Case("BertForPreTraining", "wordpiece", lambda v: BertConfig(**BERT, vocab_size=v, hidden_act="gelu_new")),
    "bert_sharded": Case("BertForMaskedLM", "wordpiece", lambda v: BertConfig(**BERT, vocab_size=v + 3, layer_norm_eps=1e-5), 0, "6KB"),
    "bert_bare": Case("BertModel", "wordpiece", lambda v: BertConfig(**BERT, vocab_size=v)),
    "distilbert": Case("DistilBertForMaskedLM", "wordpiece", lambda v: DistilBertConfig(
        vocab_size=v, dim=12, n_heads=3, hidden_dim=20, n_layers=2, max_position_embeddings=16, initializer_range=0.3)),
    "electra": Case("ElectraForPreTraining", "wordpiece", lambda v: ElectraConfig(**BERT, vocab_size=v, embedding_size=8)),
    "electra_generator": Case("ElectraForMaskedLM", "wordpiece", lambda v: ElectraConfig(**BERT, vocab_size=v, embedding_size=8)),
    "roberta": Case("RobertaForMaskedLM", "RobertaTokenizer", lambda v: RobertaConfig(
        **{**BERT, "max_position_embeddings": 18}, vocab_size=v, type_vocab_size=1, layer_norm_eps=1e-5), 1),
    "albert": Case("AlbertForPreTraining", "AlbertTokenizer", lambda v: AlbertConfig(
        **{**BERT, "num_hidden_layers": 4}, vocab_size=v, embedding_size=8, num_hidden_groups=2, inner_group_num=2,
        bos_token_id=2, eos_token_id=3)),
    "xlnet": Case("XLNetLMHeadModel", "XLNetTokenizer", lambda v: XLNetConfig(
        vocab_size=v, d_model=12, n_head=3, d_inner=20, n_layer=2, initializer_range=0.3, ff_activation="relu",
        pad_token_id=3), 3),
    "modernbert": Case("ModernBertForMaskedLM", "PreTrainedTokenizerFast", lambda v: ModernBertConfig(
        vocab_size=v, hidden_size=12, num_attention_heads=3, intermediate_size=20, num_hidden_layers=4, local_attention=8,
        layer_types=["full_attention", "sliding_attention", "full_attention", "sliding_attention"],
        max_position_embeddings=16, pad_token_id=1, bos_token_id=0, eos_token_id=2, cls_token_id=0, sep_token_id=2,
        attn_implementation="eager", rope_parameters={
            "full_attention": {"rope_type": "default", "rope_theta": 5000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}}), 1),
    "gpt2": Case("GPT2LMHeadModel", "GPT2Tokenizer", lambda v: GPT2Config(
        **GPT, vocab_size=v, n_inner=20, bos_token_id=0, eos_token_id=0)),
    "gpt2_bare": Case("GPT2Model", "GPT2Tokenizer", lambda v: GPT2Config(
        **GPT, vocab_size=v, activation_function="gelu", bos_token_id=0, eos_token_id=0), shards="20KB"),
    "gpt1": Case("OpenAIGPTLMHeadModel", "OpenAIGPTTokenizer", lambda v: OpenAIGPTConfig(**GPT, vocab_size=v)),
}  # fmt: skip


def make(folder, case):
    folder.mkdir(parents=True)
    torch.manual_seed(len(folder.name))
    random.seed(0)
    if case.tokenizer == "wordpiece":
        tokenizer, size = wordpiece(folder)
    elif case.tokenizer == "OpenAIGPTTokenizer":
        tokenizer, size = end_of_word(folder)
    elif case.tokenizer in ("AlbertTokenizer", "XLNetTokenizer"):
        tokenizer, size = unigram(folder, case.tokenizer)
    else:
        tokenizer, size = byte_level(folder, case.tokenizer)
    model = getattr(transformers, case.architecture)(case.config(size)).eval()
    with torch.no_grad():  # fresh biases are 0 and fresh scales 1, which would hide mistakes
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1 or "bias" in name or name.endswith("seg_embed"):
                parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(folder, max_shard_size=case.shards or "5GB")
    model = model.double()
    generator = np.random.default_rng(1)
    real = np.arange(9) < np.array([[9], [6]])
    ids = np.where(real, generator.integers(5, size, (2, 9)), case.padding)
    inputs = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(real.astype("int64"))}
    segments = np.where(real & (np.arange(9) >= 4), 1, 0)
    reads_segments = not folder.name.startswith(("roberta", "gpt"))
    if "token_type_ids" in inspect.signature(model.forward).parameters and reads_segments:
        inputs["token_type_ids"] = torch.tensor(segments)
    out = model(**inputs, output_hidden_states=True)
    arrays = {"token_ids": ids, "padding_mask": real, "segment_ids": segments,
              "sequence_output": out.hidden_states[-1].detach().numpy()}  # fmt: skip
    if case.tokenizer in ("AlbertTokenizer", "XLNetTokenizer"):
        arrays["sentence_ids"] = np.array(tokenizer.encode(SENTENCE))
    else:
        arrays["sentence_ids"] = np.array(tokenizer.encode(SENTENCE, add_special_tokens=False))
    if hasattr(out, "prediction_logits"):
        arrays["logits"] = out.prediction_logits.detach().numpy()
        pair = out.seq_relationship_logits if "seq_relationship_logits" in out else out.sop_logits
        arrays["pair_logits"] = pair.detach().numpy()
    elif "logits" in out:
        arrays["logits"] = out.logits.detach().numpy()
    if "logits" in arrays:
        arrays["logits"] = arrays["logits"][:, POSITIONS]
    arrays = {k: v.astype("float32") if v.dtype == "float64" else v for k, v in arrays.items()}
    np.savez_compressed(folder / "expected.npz", **arrays)
    (folder / "generation_config.json").unlink(missing_ok=True)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config, sort_keys=True))
    for file in folder.glob("tokenizer*.json"):
        file.write_text(json.dumps(json.loads(file.read_text()), ensure_ascii=False))


if __name__ == "__main__":
    for name, case in CASES.items():
        if name not in (sys.argv[2:] or CASES):
            continue
        target = Path(sys.argv[1]) / name
        shutil.rmtree(target, ignore_errors=True)
        make(target, case)
        print(name, sum(f.stat().st_size for f in target.iterdir()), sorted(f.name for f in target.iterdir()))
