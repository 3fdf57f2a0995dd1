"""Pretraining within minutes: text to a run, with a vocabulary, sizes and a schedule that fit the text and the machine.

What is chosen are the recipes that the searches of docs/results/laptop_recipe.md found: `laptop/best`, and with more time
`laptop/best_half_hour`; or a given model is trained on. How many updates the time allows is measured.
"""

import dataclasses
import hashlib
import itertools
import shlex
import sys
import tempfile
import time
import unicodedata
from pathlib import Path

from bert_tf import config as configuration
from bert_tf.checkpoints import OpenedModel, open_source
from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.files import atomic_write, display_path, is_there, write_json, writes_to
from bert_tf.models.families import describe
from bert_tf.parsing import brief, json_line
from bert_tf.tokenizers.kinds import trainers
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.training.pretrain_config import PretrainConfig
from bert_tf.training.pretraining import pretrain
from bert_tf.training.run_data import DATA, is_made_for_run, make_data_folder, remove_data_folder
from bert_tf.training.run_records import CONFIG
from tfrecords.config import ShardsConfig
from tfrecords.corpus.documents import CorpusReader, Part
from tfrecords.corpus.files import find_files
from tfrecords.shards.writer import write_shards

PLAN = "plan.json"
MOST_MINUTES = 100_000
#: Text that is read for each minute: more than the updates of a minute need, and little enough to be prepared quickly.
BYTES_A_MINUTE = 5 << 20
#: Of the pieces of the text every so many-th is held out. A document longer than a piece is cut.
HELD_OUT, PIECE, SMALL_PIECE = 20, 1 << 16, 1 << 12
#: Updates of a trial, and updates of the small model from which on the larger one learns more in the same time.
TRIAL, LARGER = 40, 15_000
#: Fewer updates than these are too few, which is said.
FEW = 300
#: The updates that take as long as an evaluation; what is used of the time, as the machine may become slower.
EVALUATION, MARGIN = 25, 0.95
#: The objectives of models that can be trained on: with the format of shards that they read.
FORMATS = {"masked_lm": "full_sentences", "causal_lm": "token_blocks"}
#: Beginnings of the names of Unicode that letters of scripts without spaces between words have; Hangul has spaces, but
#: few words that repeat.
SPACELESS = ("CJK UNIFIED", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a run was asked for, and what was chosen; the content of data/plan.json.

    Attributes:
        minutes, init_from, seed: as asked for.
        text: the identity of the text.
        config: the settings of the pretraining.
    """

    minutes: float
    init_from: str | None
    seed: int
    text: dict
    config: dict


@writes_to("output")
def pretrain_within(minutes, output, files=None, texts=None, init_from=None, seed=0):
    """Pretrains for so many minutes, the preparation of the text included.

    Args:
        minutes: above 0; less than one is enough for a small text on a fast machine alone.
        output: the run directory. The shards and the plan lie in its folder data/.
        files: files, folders or globs as `write_shards` takes; None with `texts`.
        texts: a list or generator of str.
        init_from: a run or published checkpoint to train on; None for a new model.
        seed: of the weights, the order and the masks.

    Returns:
        What `pretrain` returns. The same call resumes an interrupted run, with the updates that were planned.

    Raises:
        ConfigError: too few minutes for a trial; a model whose objective is not one of `FORMATS`.
        DataError: too little text.
        RunDirectoryError: `output` holds another run.
        Others: as `write_shards` and `pretrain`.
    """
    started = time.monotonic()
    if not 0 < minutes <= MOST_MINUTES:
        raise ConfigError(f"minutes is {brief(minutes)}; it must be above 0 and at most {MOST_MINUTES:,}")
    limit = round(minutes * BYTES_A_MINUTE)
    pieces = list(_first(*((_cut(texts), 0) if files is None else _read_files(files, limit)), limit))
    wanted = Plan(float(minutes), init_from and str(init_from), seed, _identity(pieces), {})
    _refuse_others(output)
    folder = Path(output) / DATA
    if not is_there(folder / PLAN):
        remove_data_folder(output)  # of a call that was killed
        try:
            _prepare(wanted, pieces, make_data_folder(output), started)
        except BaseException:
            remove_data_folder(output)
            raise
    plan = configuration.read_record(Plan, folder / PLAN)
    for field in ("minutes", "init_from", "seed", "text"):
        given, recorded = getattr(wanted, field), getattr(plan, field)
        if given != recorded:
            what = "text is another" if field == "text" else f"{field} is {recorded}, this one's {given}"
            raise RunDirectoryError(
                f"{output} holds another run: its {what}. Choose another output directory, "
                "use the same arguments to resume it, or overwrite it"
            )
    return pretrain(configuration.build(PretrainConfig, plan.config), output)


def _refuse_others(output):
    """Refuses a folder that holds something, unless it is the run of such a call."""
    if is_there(Path(output) / DATA / PLAN):
        return
    paths = Path(output).iterdir() if is_there(Path(output)) else ()
    others = [path.name for path in paths if not is_made_for_run(path) and path.name[0] != "."]
    if others:
        raise RunDirectoryError(
            f"{output} is not empty and holds no run of this call ({', '.join(sorted(others)[:3])}); choose another output "
            "directory, or overwrite it"
        )


def _first(pieces, total, limit):
    """Yields pieces of text of `total` bytes (0: not known), up to `limit` bytes."""
    read = 0
    for piece in pieces:
        read += len(piece.encode("utf-8", "surrogatepass"))
        yield piece
        if read >= limit:
            rest = f" of {total / 1e6:,.0f} MB" if total else ""
            _say(f"reads the first {read / 1e6:,.0f} MB{rest} of the text, enough for the minutes given")
            return


def _read_files(paths, limit):
    """(the documents of files, long ones in pieces; the bytes of the files)."""
    files = find_files(paths)
    total = sum(file.bytes for file in files)
    is_small = min(total, limit) < 2 * HELD_OUT * PIECE
    plain = (".txt", ".jsonl", ".ndjson")  # of these a part can be read
    parts = [Part(f, 0, limit) if f.bytes > limit and str(f.path).endswith(plain) else Part(f) for f in files]
    reader = CorpusReader(parts, max_document_bytes=SMALL_PIECE if is_small else PIECE)
    return (document.text.decode("utf-8") for document in reader), total


def _cut(texts):
    """The texts of a list, each in pieces at white space."""
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(f"text {number} is {brief(text)}; it must be a str")
        while len(text) > SMALL_PIECE:
            end = text.rfind(" ", 1, SMALL_PIECE)
            end = SMALL_PIECE if end < 0 else end
            yield text[:end]
            text = text[end:]
        if text.strip():
            yield text


def _identity(pieces):
    sha = hashlib.sha256()
    for piece in pieces:
        sha.update(piece.encode("utf-8", "surrogatepass") + b"\0")
    return {"pieces": len(pieces), "sha256": sha.hexdigest()}


@dataclasses.dataclass(frozen=True)
class _Choice:
    """The tokenizer, the shards and the settings of a run; several settings, from the smallest model up: name -> settings."""

    tokenizer: Tokenizer
    shards: ShardsConfig
    recipes: dict[str, dict]
    vocabulary: str


def _prepare(wanted, pieces, folder, started):
    """Writes the text and the shards, and after a trial the plan."""
    train = [piece for number, piece in enumerate(pieces, 1) if number % HELD_OUT]
    texts = {"train": train, "held_out": pieces[HELD_OUT - 1 :: HELD_OUT]}
    if not texts["held_out"]:
        raise DataError(
            f"the text is too short: at least {HELD_OUT * SMALL_PIECE / 1e3:.0f} kB are needed, a twentieth of which is held out"
        )
    for name, documents in texts.items():
        with atomic_write(folder / f"{name}.jsonl") as file:
            file.writelines(json_line({"text": text}) + "\n" for text in documents)
    choice = _continued(open_source(wanted.init_from)) if wanted.init_from else _new(texts["train"])
    data, counts = {}, {}
    for name, setting in (("train", "shards"), ("held_out", "eval_shards")):
        data[setting] = str(folder / f"{name}_shards")
        counts[name] = write_shards(folder / f"{name}.jsonl", data[setting], choice.tokenizer, choice.shards).counts
    for name, recipe in choice.recipes.items():
        settings = recipe | {"data": data, "train": recipe["train"] | {"seed": wanted.seed}}
        left = 60 * wanted.minutes - (time.monotonic() - started)
        settings["train"] |= _schedule(settings, counts["train"]["tokens_per_example"], left, wanted.minutes)
        chosen = name
        if settings["train"]["steps"] < LARGER:
            break
    config = configuration.build(PretrainConfig, settings)
    plan = dataclasses.replace(wanted, config=configuration.to_dict(config))
    _explain(plan, choice, chosen, config, folder)
    write_json(folder / PLAN, dataclasses.asdict(plan))


def _new(texts):
    """What a new model is trained with: a vocabulary for the script of the texts, and the recipes that learned most."""
    kind, size = choose_vocabulary(texts)
    _say(f"trains a vocabulary: {kind}, {size:,} entries")
    tokenizer = trainers()[kind].train(iter(texts), size, True, None, ())
    recipes = {name: _read(name) for name in ("laptop/best", "laptop/best_half_hour")}
    vocabulary = f"--kind {kind} --size {size} --cased"
    return _Choice(tokenizer, ShardsConfig(sequence_length=64, format="full_sentences"), recipes, vocabulary)


def _continued(source):
    """What a given model is trained on with: its own objective, and the schedule of a fine-tuning."""
    objective = OpenedModel(source).objective_settings
    name = objective and objective.name
    if name not in FORMATS:
        raise ConfigError(
            f"{source.path} was pretrained with {name or 'no objective that is known'}, and minutes is for masked_lm and "
            "causal_lm; write shards, and pretrain on them with train.init_from"
        )
    settings = {
        "model": describe(source.config),
        "objective": configuration.to_dict(objective) | ({"pair_task": "none"} if name == "masked_lm" else {}),
        "optimizer": {"learning_rate": 1e-4, "warmup_fraction": 0.06, "bias_correction": True, "clip_norm": 1.0},
        "train": {"batch_size": 32, "precision": "auto", "init_from": str(source.path)},
    }
    length = min(128, source.config.max_positions)
    return _Choice(source.tokenizer, ShardsConfig(sequence_length=length, format=FORMATS[name]), {"": settings}, "")


def _read(name):
    return configuration.read_yaml(configuration.find(name))


def choose_vocabulary(texts):
    """(the kind of the tokenizer, the entries of its vocabulary) for the script that most letters of the texts have.

    Words that no spaces separate, and Korean words with their many endings, are not in a WordPiece vocabulary.
    """
    sample = itertools.islice(itertools.chain.from_iterable(texts), 100_000)
    letters = [unicodedata.name(letter, "") for letter in sample if letter.isalpha()]
    others = sum(name.startswith((*SPACELESS, "HANGUL")) for name in letters)
    return ("unigram", 8192) if 2 * others > len(letters) else ("wordpiece", 4096)


def _schedule(settings, tokens_per_row, seconds, minutes):
    """The settings of `train` for the updates that fit into so many seconds, of which a trial is a part."""
    began = time.monotonic()
    trial = {"steps": TRIAL, "log_every": TRIAL // 2, "checkpoint_every": TRIAL}
    data = {"shards": settings["data"]["shards"]}
    config = settings | {"train": settings["train"] | trial, "data": data}
    with tempfile.TemporaryDirectory() as folder:
        run, metrics = pretrain(configuration.build(PretrainConfig, config), folder)
        precision = run.config()["train"]["precision"]
    took = time.monotonic() - began
    a_step = settings["train"]["batch_size"] * tokens_per_row / metrics["tokens_per_second"]
    evaluations = 1 if minutes < 10 else 4
    others = took - TRIAL * a_step + evaluations * EVALUATION * a_step  # before the first update, and between them
    steps = int(MARGIN * (seconds - took - others) / a_step)
    if steps < TRIAL:
        passed = 60 * minutes - seconds + took
        least = 1.1 * (passed + others + TRIAL * a_step / MARGIN) / 60  # a machine is not always as fast
        raise ConfigError(
            f"{minutes:g} minutes are too few: the preparation and a trial took {passed:.0f} seconds; give at least "
            f"{least:.1f} minutes, or less text"
        )
    every = {"log_every": steps // 60, "checkpoint_every": steps // 5, "eval_every": steps // evaluations}
    return {"steps": steps, "precision": precision} | {name: max(1, number) for name, number in every.items()}


def _explain(plan, choice, name, config, folder):
    """Says what was chosen, and the commands that do the same."""
    train, shards, text = config.train, choice.shards, shlex.quote(str(folder / "train.jsonl"))
    tokenizer = "tokenizer" if choice.vocabulary else shlex.quote(plan.init_from)
    commands = [f"bert-tf vocab {text} --output tokenizer {choice.vocabulary}"] if choice.vocabulary else []
    commands.append(
        f"bert-tf shards {text} --tokenizer {tokenizer} --output shards --format {shards.format} --sequence-length "
        f"{shards.sequence_length}"
    )
    given = name or shlex.quote(f"{display_path(folder.parent)}/{CONFIG}")  # the run's has the sizes of the model, too
    commands.append(f"bert-tf pretrain --config {given} --shards shards --output run --set train.steps={train.steps}")
    if train.steps < FEW:
        _say(
            f"has time for few updates: below {FEW:,} a model learns little but which tokens are frequent; give more minutes"
        )
    what = f"a new {config.model['family']} by {name}" if name else f"on from {plan.init_from}"
    _say(f"pretrains {what}: {train.steps:,} updates of {train.batch_size} x {shards.sequence_length} tokens, as:")
    for command in commands:
        print(f"  {command}", file=sys.stderr, flush=True)


def _say(text):
    print(f"pretrain {text}", file=sys.stderr, flush=True)
