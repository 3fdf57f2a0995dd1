"""Vocabularies as they are trained, ids, offsets and texts of them, and tokenizers in other libraries' files."""

import hashlib
import json
import tarfile

import tensorflow as tf

from bert_tf.tokenizers import KINDS, load_tokenizer
from bert_tf.tokenizers.kinds import trainers
from reference_parts import library, texts

#: Kind whose tokenizer.json can be read -> folders of tests/fixtures with one.
JSON_FILES = {
    "wordpiece": ("wordpiece",),
    "sentencepiece": ("albert", "xlnet", "t5"),
    "byte_level_bpe": ("modernbert",),
    "bpe": ("quicktour",),
}


def missing():
    known = {trainer for trainer, _ in library.TRAINED.values()}
    yield from (f"trainer {name}" for name in trainers() if name not in known)
    wanted = {name for name, kind in KINDS.items() if kind.json_model}
    yield from (f"tokenizer.json of {name}" for name in wanted if name not in JSON_FILES)


def cases(room):
    for name in library.TRAINED:
        yield f"{name}/trained", lambda name=name: trained(room, name)
        yield f"{name}/applied", lambda name=name: applied(room, room.tokenizer(name))
    for folders in JSON_FILES.values():
        for folder in folders:
            yield f"json/{folder}", lambda folder=folder: applied(room, json_tokenizer(room, folder))


def trained(room, name):
    """Training again gives the same files, byte for byte."""
    folder = room.scratch / f"trained_{name}"
    library.train(name, room.documents()).save(folder)
    values = files(folder)
    tokenizer = load_tokenizer(folder)
    return {"files": values, "vocabulary": list(tokenizer.vocabulary), "size": tokenizer.vocabulary_size}


def files(folder):
    """Name -> SHA-256 of each file; of JSON, of what it means."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            if path.suffix == ".json":
                content = json.dumps(json.loads(content), sort_keys=True).encode()
            found[str(path.relative_to(folder))] = hashlib.sha256(content).hexdigest()
    return found


def applied(room, tokenizer):
    """Ids, offsets, decoded texts, packed rows and the tables that masking reads."""
    given = room.json("texts/awkward", lambda: texts.AWKWARD)
    pairs = room.json("texts/pairs", lambda: texts.PAIRS)
    encoded = tf.constant([text.encode("utf-8", "surrogatepass") for text in given])
    ids, starts, ends = (part.to_list() for part in tokenizer.tokenize_with_offsets(encoded))
    plain = tokenizer.tokenize(encoded)
    broken = tokenizer.tokenize([b"\xff", b"a\xffb", b"caf\xc3", b"\xed\xa0\x80 a"]).to_list()
    first, second = (tokenizer.tokenize(list(column)) for column in zip(*pairs))
    values = {
        "ids": plain.to_list(),
        "ids_with_offsets": ids,
        "starts": starts,
        "ends": ends,
        "ids_of_bytes": broken,
        "decoded": [tokenizer.decode(row) for row in ids],
        "decoded_without_special": [tokenizer.decode(row, skip_special_tokens=True) for row in ids],
        "decoded_after_others": [tokenizer.decode(row, continues=True) for row in ids],
        "detokenized": tokenizer.detokenize(plain).numpy().tolist(),
        "special_ids": list(tokenizer.special_ids),
        "roles": [getattr(tokenizer, f"{role}_id") for role in ("pad", "unk", "cls", "sep", "mask", "eod")],
        "continuations": tokenizer.is_continuation,
        "begins_of_words": tokenizer.starts_word,
        "random_ids": tokenizer.random_ids,
        "sentinels": list(tokenizer.sentinel_ids),
    }
    values["detokenized"] = [text.decode() for text in values["detokenized"]]
    values["packed"] = {key: array.numpy() for key, array in tokenizer.pack(first, sequence_length=24).items()}
    if not tokenizer.token_shape:
        packed = tokenizer.pack(first, second, sequence_length=24)
        values["packed_pairs"] = {key: array.numpy() for key, array in packed.items()}
    return values


def json_tokenizer(room, name):
    """A tokenizer that is in tokenizer.json alone."""

    def make(path):
        path.mkdir()
        if name == "wordpiece":
            from tokenizers import BertWordPieceTokenizer

            words = room.tokenizer("wordpiece").vocabulary
            made = BertWordPieceTokenizer({word: number for number, word in enumerate(words)}, lowercase=True)
            made.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
            made.save(str(path / "tokenizer.json"))
        elif name == "quicktour":  # https://huggingface.co/docs/tokenizers/quicktour
            from tokenizers import Tokenizer, models, pre_tokenizers, trainers

            made = Tokenizer(models.BPE(unk_token="[UNK]"))
            made.pre_tokenizer = pre_tokenizers.Whitespace()
            special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
            trainer = trainers.BpeTrainer(special_tokens=special, vocab_size=600, show_progress=False)
            made.train_from_iterator(room.documents(), trainer)
            made.save(str(path / "tokenizer.json"))
        elif name == "modernbert":
            for file in ("tokenizer.json", "tokenizer_config.json"):
                (path / file).write_bytes((room.copied("checkpoints/modernbert") / file).read_bytes())
        else:
            with tarfile.open(room.copied("tokenizers/unigram.tar.xz")) as archive:
                member = next(m for m in archive.getmembers() if m.name.endswith(f"{name}/tokenizer.json"))
                (path / "tokenizer.json").write_bytes(archive.extractfile(member).read())

    return load_tokenizer(room.made(f"tokenizer_json/{name}", make) / "tokenizer.json")
