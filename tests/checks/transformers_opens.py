"""Whether transformers opens what `bert-tf convert --to hf` writes, and computes the same.

    PEER_PYTHON=other/bin/python python tests/checks/transformers_opens.py [family ...] [--kinds kind ...]

This Python has bert_tf, the other one torch and the released transformers. Every family is written with every kind of
tokenizer, pretrained and fine-tuned, as tiny models with random weights. The other Python opens each folder with
AutoTokenizer, the class that config.json names, and `pipeline`, and compares ids, masks, segments, offsets and outputs
on the texts and pairs below. Printed is a table of family x tokenizer: "equal", or what differs.

A pair whose two texts are too long keeps another odd token here (google-research/bert) than in transformers: the models
have a length that leaves an even number of tokens to a pair.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

TEXTS = [
    "The people of the United States are free.", "", " ", "   ", "\n", "\t\r\n", "two\n\nlines\nof text", "x",
    "Naïve café, Ünïcödé ÀÉÎ ñ.", "Straße ẞ GROSSE İstanbul ı ς ΣΑΣ", "cafe\u0301 nai\u0308ve", "\u1112\u1161\u11ab\u1100\u116e\u11a8",
    "모든 국민은 법 앞에 평등하다.", "한국어와 English 섞인 글", "人人生而自由，在尊严和权利上一律平等。", "日本語のテキスト、カタカナ ひらがな",
    "Все люди рождаются свободными", "Ελλάδα", "हिन्दी में नमस्ते", "สวัสดีครับ", "مرحبا بالعالم", "שלום עולם",
    "👩\u200d👩\u200d👧 🏳️\u200d🌈 🙂", "🇰🇷 ☃ ❤️", "a\x00b", "\x00", "\x01\x7f control \x9f", "zero\u200bwidth\u200djoin\ufeff", "\ufffd \ue000 private",
    "\u3000wide\u2003spaces\u00a0here", "x" * 60, "un" * 70, "a " * 80, "war and peace " * 20, "isn't it's 's S'll 're",
    "``quoted'' \"text\" “curly” ‘marks’", "1,000, 2004, 3.14 $5 50% €20 £7", "http://example.org/?q=a&b=c#d", "e-mail: a_b@c.de",
    "[CLS] literal [SEP] tokens [MASK] here [PAD][UNK]", "<s>literal</s> <mask> <pad> <unk> <cls><sep>", "<|endoftext|> begin <|endoftext|>",
    "<extra_id_0> and <extra_id_1>", "[mask] [Mask] <MASK>", "##pieces ▁space Ġbyte </w>", "(((brackets])}", "ﬁ ligature ² ½ Å", "𝕊𝕠𝕞𝕖 𝐛𝐨𝐥𝐝 ⅷ",
    "  leading and trailing  ", "CamelCaseWords and ALLCAPS", "a\u0300\u0316b marks", "ẹ\u0301 Việt Nam", "tab\tseparated\tvalues", "end of line \\n \\t",
]  # fmt: skip
PAIRS = [
    ("The people are free.", "No man is."), ("", "only the second"), ("only the first", ""), ("", ""), ("war " * 30, "peace " * 30),
    ("war " * 60, "peace"), ("war", "peace " * 60), ("war " * 41, "peace " * 17), ("한국어", "日本語"), ("[SEP] in the first", "</s> in the second"),
    ("naïve\ncafé", "\x00 \u200d"), ("🙂", " "),
]  # fmt: skip
LABELS = ["O", "B-PER", "I-PER"]
FILLED = "The people of the {} are free."
KINDS = {
    "wordpiece": ("wordpiece", {}), "wordpiece_cased": ("wordpiece", {"cased": True}), "words": ("words", {}),
    "unigram": ("unigram", {}), "unigram_cased": ("unigram", {"cased": True}), "unigram_xlnet": ("unigram_xlnet", {}),
    "unigram_t5": ("unigram_t5", {}), "byte_level_bpe": ("byte_level_bpe", {}),
    "byte_level_bpe_gpt2": ("byte_level_bpe_gpt2", {}), "bpe": ("bpe", {}), "byte": ("byte", {}),
    "byte_extra_ids": ("byte_extra_ids", {}),
}  # fmt: skip
SIZES = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 24}
OWN = {
    "albert": {"embedding_size": 10}, "electra": {"embedding_size": 10}, "gpt1": {"intermediate_size": 64},
    "t5": {"head_size": 8}, "t5_encoder": {"head_size": 8}, "modernbert": {"local_attention": 8},
}  # fmt: skip
LENGTH = 48
SENTINELS = [f"<extra_id_{i}>" for i in range(4)]
#: Kind of task -> its settings.
TASKS = {
    "classification": {"labels": LABELS}, "tagging": {"labels": LABELS}, "multiple_choice": {},
    "question_answering": {"impossible_questions": True, "max_query_length": 16, "stride": 8, "max_answer_length": 8},
}  # fmt: skip
#: Tasks that are tried with the tokenizers of the published models alone.
RARE = ("question_answering", "multiple_choice")
PUBLISHED = dict.fromkeys(("bert", "electra", "distilbert", "spanbert"), ("wordpiece", "wordpiece_cased")) | {
    "roberta": ("byte_level_bpe",), "albert": ("unigram",), "xlnet": ("unigram_xlnet",), "modernbert": ("byte_level_bpe",),
    "gpt1": ("bpe",), "gpt2": ("byte_level_bpe_gpt2",), "t5": ("unigram_t5", "byte"), "t5_encoder": ("unigram_t5",),
}  # fmt: skip


# -- with bert_tf: models, folders, and what they compute here ------------------------------------------------------


def write(root, families, kinds):
    """Writes every cell, and cells.json: for each part why it is not there, or null."""
    import numpy as np
    from reference_parts.texts import documents

    from bert_tf.errors import ConfigError, DataError
    from bert_tf.models.families import maps_of
    from bert_tf.tokenizers.kinds import trainers

    cells = {}
    for kind in kinds or KINDS:
        name, settings = KINDS[kind]
        further = {"special_tokens": SENTINELS} if trainers()[name].has_special_tokens else {}
        tokenizer = trainers()[name].train(documents(), 700, **settings, **further)
        for family in families or maps_of("hf"):
            lacking = _lacking(family, tokenizer)
            if lacking:
                cells[f"{family}/{kind}"] = f"no pair: the tokenizer has no {lacking}, which pretraining needs"
                continue
            for part in ("pretrained", *TASKS):
                if part in RARE and kind not in PUBLISHED[family]:
                    continue
                folder = root / family / kind / part
                try:
                    expected = (_pretrained if part == "pretrained" else _finetuned)(folder, family, tokenizer, part)
                except (ConfigError, DataError) as error:
                    cells[f"{family}/{kind}/{part}"] = f"refused: {error}".replace(str(root), "")
                    continue
                if expected:
                    arrays = {key: expected.pop(key) for key in list(expected) if isinstance(expected[key], np.ndarray)}
                    np.savez(folder / "expected.npz", **arrays)
                    (folder / "expected.json").write_text(json.dumps(expected))
                    cells[f"{family}/{kind}/{part}"] = None
            print(family, kind, "written", file=sys.stderr, flush=True)
    (root / "cells.json").write_text(json.dumps(cells))


def _lacking(family, tokenizer):
    from bert_tf.models.families import FAMILIES

    if FAMILIES[family].objective == "denoising" or family == "t5_encoder":
        return None if tokenizer.sentinel_ids else "sentinels"
    return None if FAMILIES[family].objective == "causal_lm" or tokenizer.mask_id is not None else "mask token"


def _config(family, tokenizer):
    from reference_parts import library

    from bert_tf.models import build_config
    from bert_tf.models.families import FAMILIES

    sizes, known = SIZES | OWN.get(family, {}), library.fields(FAMILIES[family].config)
    if "max_positions" in known:
        sizes["max_positions"] = _length(tokenizer)
    if "num_segments" in known and family != "roberta" and tokenizer.layout.at_end:
        sizes["num_segments"] = tokenizer.layout.end_segment + 1
    return build_config({"family": family} | sizes, tokenizer.vocabulary_size, tokenizer.pad_id)


def _length(tokenizer):
    return LENGTH - tokenizer.layout.special_tokens_per_pair % 2


def _encoder(family, tokenizer, pooler):
    from bert_tf.models import build_backbone
    from bert_tf.models.families import arguments_of

    config = _config(family, tokenizer)
    return build_backbone(config, **({"pooler": pooler(config)} if "pooler" in arguments_of(config) else {}))


def _write_run(folder, tokenizer, encoder, model, **record):
    """Random weights, a run directory of the model, and what `bert-tf convert --to hf` makes of it."""
    import numpy as np
    from reference_parts import library

    from bert_tf.cli.main import main
    from bert_tf.models.families import describe
    from bert_tf.training.converting import write_run

    for path, variable in library.by_path(model).items():
        variable.assign(library.draw(path, tuple(variable.shape)))
    task = record.pop("made", None)
    tensors = {v.path: np.ascontiguousarray(v) for v in (model.variables if task else model.weights)}
    write_run(folder / "run", {"model": describe(encoder.config)} | record, tokenizer, tensors, task=task)
    if main(["convert", str(folder / "run"), str(folder / "hf"), "--to", "hf"]):
        raise SystemExit(f"{folder}: not converted")


def _pretrained(folder, family, tokenizer, _):
    import numpy as np
    import tensorflow as tf
    from reference_parts import library

    from bert_tf.config import to_dict
    from bert_tf.models.families import FAMILIES

    record = FAMILIES[family]
    encoder = _encoder(family, tokenizer, lambda config: record.pair_task is not None)
    model, settings = encoder, {}
    if family != "t5_encoder":
        given = {"pair_task": record.pair_task or "none"} if record.objective == "masked_lm" else {}
        model = library.objective_around(encoder, record.objective, given)
        settings = to_dict(model.settings)
    _write_run(folder, tokenizer, encoder, model, objective=settings, data={"sequence_length": LENGTH})
    found, rows = _tokens(tokenizer, encoder.config)
    if family == "t5":
        rows |= {"decoder_" + key: rows[key][:, :3] for key in ("token_ids", "padding_mask")}
    states = encoder(rows, training=False)["sequence_output"]
    found["states"] = np.asarray(states)
    if hasattr(encoder, "output_logits"):
        found["logits"] = np.asarray(encoder.output_logits(states))
    if record.objective == "masked_lm" and model is not encoder:
        text = FILLED.format(tokenizer.role_tokens["mask"])
        row = tokenizer.pack(tokenizer.tokenize([text]), sequence_length=_length(tokenizer), dynamic=True)
        place = np.flatnonzero(np.asarray(row["token_ids"])[0] == tokenizer.mask_id)[:1]
        outputs = model(row | {"mask_positions": tf.constant(place[None].astype("int32"))}, training=False)
        found |= {"mask_logits": np.asarray(outputs["masked_lm_logits"])[0, 0], "filled": text}
    return found


def _finetuned(folder, family, tokenizer, kind):
    import numpy as np

    from bert_tf.config import to_dict
    from bert_tf.models.families import FAMILIES
    from bert_tf.tasks import build_task

    heads = FAMILIES[family].maps("hf").heads
    head = {"question_answering": "spans", "multiple_choice": "choices"}.get(kind, kind)
    if head not in heads:
        return None
    settings = {"kind": kind, "sequence_length": _length(tokenizer), "head": {"name": "hugging_face"}} | TASKS[kind]
    if head == "spans":
        settings["head"] = heads[head].spans
    task = build_task(settings, tokenizer)
    encoder = _encoder(family, task.tokenizer, task.needs_pooler)
    model = task.model(encoder)
    _write_run(folder, task.tokenizer, encoder, model, task=to_dict(task.config), made=task)
    found, rows = _tokens(task.tokenizer, encoder.config)
    if kind == "question_answering":
        hidden, _ = model._read(rows, training=False)
        logits = np.stack(model.head._logits(hidden, rows), axis=-1)
    elif kind == "multiple_choice":
        one = np.ones((len(rows["token_ids"]), 1), bool)
        logits = model({key: value[:, None] for key, value in rows.items()} | {"option_mask": one})["logits"]
    else:
        logits = model(rows, training=False)["logits"]
    return found | {"kind": kind, "logits": np.asarray(logits)}


def _tokens(tokenizer, config):
    """What the tokenizer gives for every text and pair, for comparison, and as features."""
    import tensorflow as tf

    ids, starts, ends = tokenizer.tokenize_with_offsets(TEXTS)
    first, second = (tokenizer.tokenize(list(part)) for part in zip(*PAIRS))
    length = _length(tokenizer)
    both = [tokenizer.pack(ids, sequence_length=length), tokenizer.pack(first, second, sequence_length=length)]
    rows = {key: tf.concat([part[key] for part in both], 0) for key in both[0]}
    real = rows["padding_mask"].numpy()
    segments = [row[mask].tolist() for row, mask in zip(rows["segment_ids"].numpy(), real)]
    found = {
        "ids": [row[mask].tolist() for row, mask in zip(rows["token_ids"].numpy(), real)],
        "segments": segments if getattr(config, "num_segments", 0) > 1 or "XLNet" in type(config).__name__ else None,
        "offsets": [list(zip(*places)) for places in zip(starts.to_list(), ends.to_list())],
        "length": length,
    }
    return found, rows


def _all():
    return [*((text,) for text in TEXTS), *PAIRS]


# -- with transformers: the same folders, opened --------------------------------------------------------------------


def compare(root):
    import torch
    import transformers

    torch.set_num_threads(1)  # the models are so small that more would wait for each other
    transformers.logging.set_verbosity_error()
    cells = json.loads((root / "cells.json").read_text())
    table = {}
    for cell, problem in cells.items():
        family, kind, *part = cell.split("/")
        if problem is None:
            try:
                problem = "; ".join(_differences(root / cell, family)) or None
            except Exception as error:  # whatever it is, the cell is not equal
                problem = f"{type(error).__name__}: {str(error)[:300]}"
        table.setdefault((family, kind), {})["".join(part)] = problem
        if problem:
            print(f"{cell}: {problem}", flush=True)
    _print(table)
    return any(problem for key in table for part, problem in table[key].items() if part)


def _print(table):
    families, kinds = (list(dict.fromkeys(key[place] for key in table)) for place in (0, 1))
    print("\n| family | " + " | ".join(kinds) + " |\n|---" * 1 + "|---" * len(kinds) + "|")
    for family in families:
        row = []
        for kind in kinds:
            parts = table.get((family, kind), {})
            wrong = [part for part, problem in parts.items() if problem]
            row.append("none" if "" in parts else f"differs: {', '.join(wrong)}" if wrong else f"equal ({len(parts)})")
        print(f"| {family} | " + " | ".join(row) + " |")


def _differences(folder, family):
    """What differs in one folder; nothing where all is equal."""
    import numpy as np
    import transformers

    expected = json.loads((folder / "expected.json").read_text())
    with np.load(folder / "expected.npz") as file:
        arrays = dict(file)
    path = folder / "hf"
    path = path / "discriminator" if (path / "discriminator").exists() else path
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    architecture = json.loads((path / "config.json").read_text())["architectures"][0]
    model, info = getattr(transformers, architecture).from_pretrained(path, output_loading_info=True)
    model.eval()
    if any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")):
        yield f"weights: {info}"
    rows, wrong = [], {}
    for number, texts in enumerate(_all()):
        # In a list: an empty second text is none to a call with two strings.
        found = tokenizer(
            *([text] for text in texts), truncation=True, max_length=expected["length"], return_offsets_mapping=True
        )
        row = {key: value[0] for key, value in found.items()}
        row |= {"tokens": found.tokens(0), "sequences": found.sequence_ids(0)}
        rows.append(row)
        none = [0] * len(row["input_ids"])  # which a model computes with where it is given none
        same = {
            "ids": row["input_ids"] == expected["ids"][number],
            "masks": set(row["attention_mask"]) <= {1},
            "segments": row.get("token_type_ids", none)
            == (expected["segments"][number] if expected["segments"] else none),
            "offsets": len(texts) == 2 or _same_places(row, expected["offsets"][number], texts[0]),
        }
        for what in (what for what, is_same in same.items() if not is_same):
            wrong.setdefault(what, []).append(texts)
    for what, texts in wrong.items():
        yield f"{what} of {len(texts)} texts, such as {texts[0]!r}"
    if "ids" in wrong:
        return
    for name in ("states", "logits"):
        if name in arrays:
            yield from _outputs(model, family, rows, arrays[name], name, expected.get("kind"), tokenizer)
    yield from _pipelines(path, model, expected, arrays, rows)


def _same_places(row, ours, text):
    """Whether the offsets are the same, but for white space and marks that a letter takes in.

    A blank before a word has the word's first letter in `tokenizers`, and the letters that it drops are left out.
    """
    mask = [sequence == 0 for sequence in row["sequences"]]
    inner = [place for place, is_text in zip(row["offset_mapping"], mask) if is_text]
    tokens = [token for token, is_text in zip(row["tokens"], mask) if is_text]

    def solid(place):
        return [i for i in range(*place) if not text[i].isspace() and unicodedata.category(text[i])[0] not in "MC"]

    for place, other, token in zip(ours, inner, tokens):
        if token == "\u2581":
            continue
        if solid(place) != solid(other) and text.isascii():
            return False
    return True


def _outputs(model, family, rows, arrays, name, kind, tokenizer):
    """Whether the outputs of a model agree, alone and in a batch with padding."""
    import numpy as np
    import torch

    keys = [key for key in ("input_ids", "attention_mask", "token_type_ids") if key in rows[0]]
    scale, worst = max(1.0, float(np.abs(arrays).max())), {"": 0.0, "padded ": 0.0}
    for row, target in zip(rows, arrays):
        length = len(row["input_ids"])
        if not length:  # an empty text without special tokens
            continue
        if name == "states" or kind not in ("classification", "multiple_choice"):
            target = target[:length]
        padded = tokenizer.pad([{key: r[key] for key in keys} for r in (row, rows[0])], return_tensors="pt")
        for what, features in (("", {key: torch.tensor([row[key]]) for key in keys}), ("padded ", dict(padded))):
            with torch.no_grad():
                found = _compute(model, family, name, features, kind)[0]
            if found.ndim == target.ndim and len(found) > len(target):
                mask = features["attention_mask"][0].bool().numpy()
                found = found[mask] if len(mask) == len(found) else found[: len(target)]
            worst[what] = max(worst[what], float(np.abs(found - target).max()) / scale)
    for what, value in worst.items():
        if value > 2e-5:
            yield f"{what}{name} differ by {value:.1e}"


def _compute(model, family, name, features, kind):
    import numpy as np

    if kind == "multiple_choice":
        return model(**{key: value[:, None] for key, value in features.items()}).logits.numpy()
    if kind == "question_answering":
        found = model(**features)
        return np.stack([found.start_logits.numpy(), found.end_logits.numpy()], axis=-1)
    if kind:
        return model(**features).logits.numpy()
    if family == "t5":
        features = features | {"decoder_input_ids": features["input_ids"][:, :3]}
        found = model(**features, output_hidden_states=True)
        return (found.decoder_hidden_states[-1] if name == "states" else found.logits).numpy()
    if name == "logits":
        return model(**features).logits.numpy()
    base = model.get_encoder() if family == "t5_encoder" else getattr(model, model.base_model_prefix, model)
    return base(**features)[0].numpy()


def _pipelines(path, model, expected, arrays, rows):
    """Whether the pipeline of the model gives its answers."""
    import numpy as np
    import transformers

    def pipeline(task, **settings):
        return transformers.pipeline(task, model=str(path), tokenizer=str(path), device="cpu", **settings)

    kind = expected.get("kind")
    if kind == "classification":
        asked = pipeline("text-classification", top_k=None)
        for texts, row, logits in zip(_all(), rows, arrays["logits"].astype("float64")):
            if not row["input_ids"] or texts[1:] == ("",):  # which the pipeline takes for a text alone
                continue
            text = texts[0] if len(texts) == 1 else [{"text": texts[0], "text_pair": texts[1]}]
            answers = asked(text, truncation=True, max_length=expected["length"])
            answers = answers[0] if isinstance(answers[0], list) else answers
            scores = np.exp(logits - logits.max())
            scores = dict(zip(LABELS, scores / scores.sum()))
            if max(abs(scores[answer["label"]] - answer["score"]) for answer in answers) > 1e-4:
                yield f"pipeline: other probabilities for {texts!r}"
                return
    elif kind == "tagging":
        asked = pipeline("token-classification")
        for text, row, logits in zip(TEXTS, rows, arrays["logits"]):
            if not row["input_ids"] or len(row["input_ids"]) >= expected["length"]:
                continue
            tagged = [
                (place, LABELS[best])
                for place, (best, sequence) in enumerate(zip(logits.argmax(-1), row["sequences"]))
                if sequence == 0 and best
            ]
            found = [(answer["index"], answer["entity"]) for answer in asked(text)]
            if found != tagged:
                yield f"pipeline: other tags for {text!r}"
                return
    elif "filled" in expected:
        answer = pipeline("fill-mask", top_k=1)(expected["filled"])[0]
        if answer["token"] != int(arrays["mask_logits"].argmax()):
            yield "pipeline: another word for the mask"
    elif not kind and not model.config.is_encoder_decoder:  # for which transformers 5 has no pipeline
        if model.can_generate():
            pipeline("text-generation")(TEXTS[0], max_new_tokens=3, do_sample=False)
        elif type(model).__name__ != "T5EncoderModel":  # which no pipeline opens
            pipeline("feature-extraction")(TEXTS[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--kinds", nargs="*")
    parser.add_argument("--folder", help="keeps what is written there")
    parser.add_argument("--compare", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.compare:
        sys.exit(compare(Path(arguments.compare)))
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(arguments.folder or folder)
        write(folder, arguments.families, arguments.kinds)
        peer = [os.environ["PEER_PYTHON"], __file__, "--compare", str(folder)]
        sys.exit(subprocess.run(peer, env=os.environ | {"HF_HUB_OFFLINE": "1"}).returncode)
