"""Every command on one small road, as a user types them."""

import contextlib
import importlib.metadata
import io
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
import types
from pathlib import Path

import pytest
import tensorflow as tf
from typed_command import error_of, output_of, run

import bert_tf
from bert_tf import samples
from bert_tf.cli import finetune as finetune_command
from bert_tf.cli import pretrain as pretrain_command
from bert_tf.cli import study as study_command
from bert_tf.cli.main import main
from bert_tf.config import build, load
from bert_tf.errors import UserError
from bert_tf.runs import grid
from bert_tf.runs.study import StudyConfig
from bert_tf.table import Table
from bert_tf.tokenizers import train_byte_level_bpe, train_wordpiece
from bert_tf.training import finetuning
from bert_tf.training.pretraining import PretrainConfig
from bert_tf.training.run_directory import RunDirectory

SAMPLES = Path(samples.__file__).parent
SMALL = """\
optimizer: {learning_rate: 1e-3}
model: {family: bert, hidden_size: 16, num_layers: 1, num_heads: 2, intermediate_size: 32, max_positions: 64}
"""
STEPS = "--set train.steps=6 --set train.batch_size=8 --set train.log_every=3 --set train.checkpoint_every=3"
TAGGED = "Angela\tB-PER\nMerkel\tI-PER\nlebte\tO\nin\tO\nBerlin\tB-LOC\n.\tO\n\n"


@pytest.fixture(scope="module")
def road(tmp_path_factory):
    """A folder in which vocab, shards, pretrain and two finetune commands have run."""
    folder = tmp_path_factory.mktemp("road")
    lines = (SAMPLES / "state_of_the_union.jsonl").read_text(encoding="utf-8").splitlines()[:4]
    documents = [json.loads(line)["text"][:15_000] for line in lines]
    corpus, tokenizer, shards = folder / "corpus.jsonl", folder / "tokenizer", folder / "shards"
    corpus.write_text("".join(json.dumps({"body": t}) + "\n" for t in documents))
    run(f"vocab {corpus} --output {tokenizer} --size 600 --text-field body")
    run(f"shards {corpus} --tokenizer {tokenizer} --output {shards} --sequence-length 32 --set text_field=body")
    (folder / "pretrain.yaml").write_text(SMALL)
    run(f"pretrain --config {folder}/pretrain.yaml --shards {shards} --output {folder}/run {STEPS}")
    for split in ("train", "dev", "test"):
        rows = (SAMPLES / f"reviews_{split}.tsv").read_text(encoding="utf-8").splitlines()[:40]
        (folder / f"{split}.tsv").write_text("\n".join(rows) + "\n")
        (folder / f"{split}.conll").write_text(TAGGED * 12)
    for name, suffix, kind, seeds in (("task", "tsv", "classification", 2), ("tagger", "conll", "tagging", 1)):
        files = " ".join(f"--{split} {folder}/{split}.{suffix}" for split in ("train", "dev", "test"))
        settings = f"--set train.epochs=2 --set train.batch_size=8 --set train.seeds={seeds}"
        settings += f" --set task.sequence_length=64 --init-from {folder}/run --output {folder}/{name}"
        with contextlib.redirect_stderr(io.StringIO()) as said:
            run(f"finetune --config finetune/{kind} {files} {settings}")
        columns = "text 'sentence', label 'label'" if kind == "classification" else "words 0, tags -1"
        assert f"columns of {folder}/train.{suffix}: {columns}\n" in said.getvalue()
    return folder


def test_inspect_shows_masks(road):
    shown = output_of(f"inspect {road}/shards --examples 2")
    assert "[MASK]" in shown and "[CLS]" in shown
    assert output_of(f"inspect {road}/shards --examples 2") == shown
    assert output_of(f"inspect {road}/shards --examples 2 --epoch 1") != shown
    assert "have their checksums" in output_of(f"inspect {road}/shards --examples 2 --verify")


@pytest.mark.parametrize("kind, form, objective", [
    ("byte_level_bpe_gpt2", "token_blocks", "causal_lm"), ("unigram_t5", "token_blocks", "denoising"),
    ("unigram_xlnet", "xlnet", "permutation_lm"),
])  # fmt: skip
def test_shards_advise_what_works(road, tmp_path, kind, form, objective):
    corpus, layout = f"{road}/corpus.jsonl", f"--format {form} --sequence-length 64 --set text_field=body"
    run(f"vocab {corpus} --output {tmp_path}/v --size 700 --kind {kind} --text-field body")
    shards = output_of(f"shards {corpus} --tokenizer {tmp_path}/v --output {tmp_path}/s {layout}")
    inspecting, training = shards.split("next: ")[1].splitlines()
    assert "predicted  " in output_of(inspecting.removeprefix("bert-tf") + " --examples 1")
    recipe = shlex.split(training)[3]
    assert load(PretrainConfig, recipe, {"data": {"shards": tmp_path / "s"}}).objective.name == objective
    if kind != "unigram_xlnet":
        assert "the tokenizer has no mask token" in error_of(f"inspect {tmp_path}/s")


def test_shards_that_no_objective_reads_are_to_be_written_again(road, tmp_path):
    corpus, kind = f"{road}/corpus.jsonl", "--kind byte_level_bpe_gpt2 --size 300 --text-field body"
    run(f"vocab {corpus} --output {tmp_path}/v {kind}")
    shards = output_of(f"shards {corpus} --tokenizer {tmp_path}/v --output {tmp_path}/s --set text_field=body")
    (advised,) = shards.split("next: ")[1].splitlines()
    assert "--format token_blocks" in advised
    for recipe in ("pretrain/gpt_laptop", "pretrain/bert_tiny"):
        options = f"--shards {tmp_path}/s --output {tmp_path}/run --set model.max_positions=512"
        assert re.search("reads running text|has no mask token", error_of(f"pretrain --config {recipe} {options}"))


def test_how_many_characters_a_vocabulary_keeps(tmp_path, caplog):
    (tmp_path / "corpus.txt").write_text("the quick brown fox jumps over the lazy dog " * 9)
    vocab = f"vocab {tmp_path}/corpus.txt --size 100 --kind bpe --output {tmp_path}"
    run(f"{vocab}/all")
    assert not caplog.messages
    run(f"{vocab}/some --alphabet 20")
    assert "6 different characters, 17 % of the text, are left out" in caplog.text
    error = error_of(f"vocab {tmp_path} --output x --kind unigram --alphabet 20")
    assert "--alphabet is for wordpiece and bpe" in error


def test_fill_mask(road):
    assert "there is no [MASK] in 'No mask.'" in error_of(f"predict {road}/run 'No mask.'")
    answer = json.loads(output_of(f"predict {road}/run 'The [MASK] of the [MASK].' --top-k 3"))
    assert answer["text"] == "The [MASK] of the [MASK]." and [len(guesses) for guesses in answer["masks"]] == [3, 3]
    assert list(answer["masks"][0].values()) == sorted(answer["masks"][0].values(), reverse=True)
    assert "is not fine-tuned; remove --file, --pair" in error_of(f"predict {road}/run --pair [MASK] [MASK]")
    assert "--top-k is for masks" in error_of(f"predict {road}/task 'A fine film.' --top-k 3")


def test_fill_mask_shows_the_characters_of_byte_level_tokens(monkeypatch):
    tokenizer = train_byte_level_bpe(["가장 좋은 영화다"] * 3, 400)
    token = tokenizer.id_to_token(tokenizer.encode(" 영화다")[-1])
    guesses = [[[(token, 0.5)]]]
    source = types.SimpleNamespace(task=None)
    opened = types.SimpleNamespace(tokenizer=tokenizer, source=source, fill_mask=lambda *_: guesses)
    monkeypatch.setattr("bert_tf.load", lambda path: opened)
    answer = json.loads(output_of("predict run '가장 좋은 <mask>'"))
    assert answer == {"text": "가장 좋은 <mask>", "masks": [{"Ġ영화다": 0.5}]}


def test_finetune_reports_mean_spread_and_baseline(road):
    summary = json.loads((road / "task" / "summary.json").read_text())
    accuracies = [seed["dev"]["accuracy"] for seed in summary["seeds"]]
    assert summary["dev"]["mean"]["accuracy"] == pytest.approx(sum(accuracies) / 2)
    assert summary["dev"]["spread"]["accuracy"] == pytest.approx(abs(accuracies[0] - accuracies[1]) / 2**0.5)
    assert summary["best"] == f"seed-{accuracies.index(max(accuracies))}"
    assert set(summary["test"]["baselines"]) == {"majority class"}


def test_evaluate_repeats_what_finetune_measured(road):
    for task, file in (("task", "test.tsv"), ("tagger", "test.conll")):
        summary = json.loads((road / task / "summary.json").read_text())
        best = next(s for s in summary["seeds"] if summary["best"] in (".", f"seed-{s['seed']}"))
        measured = json.loads(output_of(f"evaluate {road}/{task} {road}/{file} --json"))
        assert measured["baselines"] == best["baselines"]["test"]
        assert set(measured["report"]) == ({"labels", "confusion"} if task == "task" else {"entities"})
        assert measured["unknown_tokens"] == pytest.approx(summary["test"]["mean"]["unknown_tokens"])
        assert measured["unknown_tokens"] < 1
        for name, value in best["test"].items():
            assert measured[name] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-5, abs=1e-6))


def test_evaluate_prints_baselines_and_a_report(road, tmp_path):
    rows = [line.split("\t") for line in (road / "test.tsv").read_text().splitlines()[1:9]]
    (tmp_path / "other.csv").write_text("satz,gut\n" + "".join(f'"{text}",{label}\n' for text, label in rows))
    command = f"evaluate {road}/task {tmp_path}/other.csv"
    shown = output_of(f"{command} --columns text=satz --columns label=gut")
    assert re.search(r"accuracy +0\.\d+ +0\.\d+", shown) and "unknown_tokens" in shown
    assert re.search(r"label +precision +recall +f1 +support\n +0 ", shown)
    assert "confusion: a row for each true label" in shown
    (columns,) = re.findall(r"--columns text=NAME", error_of(command))
    refused = error_of(f"{command} {columns}")
    assert "there is no column 'NAME' for data.columns.text" in refused, "the key was understood"


@pytest.mark.parametrize(("command", "message"), [
    ("shards a.txt --tokenizer t --output o --sequence-lenght 32", "--sequence-lenght 32; did you mean '--sequence-length'?"),
    ("shards a.txt --tokenizer t --output o --max-seq-length 32", "32; did you mean '--sequence-length'?"),
    ("finetune --output o --lr 3", "--lr 3; did you mean --set optimizer.learning_rate=...?"),
    ("finetune --output o --output_dir x", "did you mean '--output'?"),
])  # fmt: skip
def test_a_misspelled_option_is_named(command, message, capsys):
    with pytest.raises(SystemExit):
        run(command)
    shown = capsys.readouterr().err
    assert f"bert-tf {command.split()[0]}: error: unrecognized arguments: --" in shown and message in shown


def test_a_loss_that_is_not_finite_is_printed(tmp_path, capsys):
    """In metrics it is null: JSON has no NaN."""
    metrics = {"step": 5, "eval_loss": None, "unigram_sequence_autoencoder_accuracy": 0.25}
    pretrain_command.print_metrics(RunDirectory(tmp_path), metrics)
    assert re.findall(r"(?:loss|accuracy)  +(.+)", capsys.readouterr().out) == ["not a finite number", "0.2500"]


def test_every_run_has_a_page_with_the_numbers_of_its_records(road):
    """Beyond the metrics: the findings of the best epoch, which `evaluate` measures again from the weights."""
    for name, file in (("run", None), ("task", "dev.tsv"), ("tagger", "dev.conll")):
        page = (road / name / "report.html").read_text(encoding="utf-8")
        values = {float(value) for value in re.findall(r'<data value="([^"]+)"', page)}
        if file is None:
            baselines = json.loads((road / name / "report.json").read_text())["baselines"]["unigram"]
            assert set(baselines) == {"masked_lm_loss", "masked_lm_accuracy"} and set(baselines.values()) <= values
            continue
        summary = json.loads((road / name / "summary.json").read_text())
        assert {summary[split]["mean"][summary["metric"]] for split in ("dev", "test")} <= values
        best = road / name / summary["best"]
        found = json.loads((best / "report.json").read_text())
        assert found["dev"]["calibration"]["ece"] in values and found["test"]["calibration"]["ece"] in values
        last = json.loads((best / "metrics.jsonl").read_text().splitlines()[-1])
        assert [step for step, _ in found["learning_rate"]][-1] == last["step"] - 1
        measured = json.loads(output_of(f"evaluate {road}/{name} {road}/{file} --json"))["report"]
        assert {key: found["dev"][key] for key in measured} == measured
        assert len(found["dev"]["errors"]) == min(30, found["dev"]["wrong"])
    summary = json.loads((road / "task" / "summary.json").read_text())
    task = json.loads((road / "task" / summary["best"] / "report.json").read_text())["dev"]
    assert task["wrong"] == round((1 - max(seed["dev"]["accuracy"] for seed in summary["seeds"])) * 39)
    texts = (road / "dev.tsv").read_text()
    assert all(error["text"] in texts and error["true"] != error["predicted"] for error in task["errors"])
    assert output_of(f"report {road}/task {road}/tagger --output {road}/both.html") == f"{road / 'both.html'}\n"
    assert "task.kind" in (road / "both.html").read_text()


def test_tensorboard_finds_what_training_logged(road):
    """Read as TensorBoard does; pretraining logs at steps 3 and 6, fine-tuning after each of two epochs."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for folder, name, count in (("run", "masked_lm_loss", 2), ("task/seed-0", "accuracy", 2)):
        events = EventAccumulator(str(road / folder / "tensorboard"), size_guidance={"tensors": 0})
        events.Reload()
        assert len(events.Tensors(name)) == count
        line = json.loads((road / folder / "metrics.jsonl").read_text().splitlines()[-1])
        assert float(tf.make_ndarray(events.Tensors(name)[-1].tensor_proto)) == pytest.approx(line[name], rel=1e-6)


def test_predict_from_sentences_and_from_a_file(road, capsys, tmp_path):
    texts = ["A quiet triumph.", "Two hours I will not get back."]
    printed = [json.loads(line) for line in output_of(f"predict {road}/task '{texts[0]}' '{texts[1]}'").splitlines()]
    assert [set(answer["probabilities"]) for answer in printed] == [{"0", "1"}] * 2
    assert [answer["text"] for answer in printed] == texts
    (tmp_path / "texts.txt").write_text("\n\n".join(texts) + "\n")
    run(f"predict {road}/task --file {tmp_path}/texts.txt --output {tmp_path}/answers.jsonl")
    assert re.search(r"unknown tokens: \d+ of \d+ \(.* %\)\nlines without a text: 1 of 3", capsys.readouterr().err)
    written = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert [(a["line"], a.get("text")) for a in written] == [(1, texts[0]), (2, None), (3, texts[1])]
    assert written.pop(1) == {"line": 2, "error": "the line is empty"}
    (tmp_path / "odd.json").write_text('[{"text": "odd \\ud800"}]')
    assert json.loads(output_of(f"predict {road}/task --file {tmp_path}/odd.json"))["text"] == "odd \ud800"
    assert [a["probability"] for a in written] == pytest.approx([a["probability"] for a in printed], rel=1e-5)
    assert "Berlin" in output_of(f"predict {road}/tagger 'Angela Merkel lebte in Berlin.'")


def test_version(capsys):
    with pytest.raises(SystemExit) as exit:
        main(["--version"])
    assert exit.value.code == 0
    assert capsys.readouterr().out == f"bert-tf {bert_tf.__version__}\n"
    assert importlib.metadata.version("bert_tf") == bert_tf.__version__


def test_a_shell_completes_commands_options_and_their_values(tmp_path):
    """What argcomplete's shell function does: the line so far in variables, the answer on descriptor 8."""
    for line, expected in (
        ("bert-tf inspe", {"inspect "}),
        ("bert-tf pretrain --config pretrain/bert_lar", {"pretrain/bert_large", "pretrain/bert_large_512"}),
        ("bert-tf pretrain --set train.log", {"train.log_every="}),
    ):
        answer = tmp_path / "answer"
        environment = os.environ | {
            "_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": str(answer), "COMP_LINE": line,
            "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_SHELL": "bash",
        }  # fmt: skip
        subprocess.run([sys.executable, "-m", "bert_tf"], env=environment, timeout=60)
        assert {word.strip() for word in answer.read_text().split("\n")} == {word.strip() for word in expected}, line


#: Commands with a wrong setting, the last part of whose name is in the message.
WRONG_SETTINGS = (
    "pretrain --shards s --output x --set train.batchsize=3",
    "pretrain --shards s --output x --set objective.memory_length=3",
    "pretrain --shards s --output x --set model.hiden_size=64",
    "finetune --init-from r --train t --dev d --output x --set train.epochs=0",
    "study --corpus c --tokenizer t --output x --set pretrain.train.stepps=3",
    "shards c --tokenizer t --output x --set sequence_lenght=3", "inspect s --set strategy=word",
    "prompt r --output x --set scorring=sum",
)  # fmt: skip


def test_a_wrong_setting_is_refused_before_tensorflow_is_imported():
    """In a process where importing TensorFlow or Keras is an error."""
    lines = list(map(shlex.split, WRONG_SETTINGS))
    script = (
        "import json, sys; sys.modules['tensorflow'] = sys.modules['keras'] = None\n"
        "from bert_tf.cli.main import main; print([main(line) for line in json.loads(sys.argv[1])])"
    )
    ran = [sys.executable, "-c", script, json.dumps(lines)]
    done = subprocess.run(ran, capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{[1] * len(lines)}\n", done.stderr
    for (command, *_, setting), message in zip(lines, done.stderr.splitlines(), strict=True):
        assert message.startswith(f"bert-tf {command}: ") and re.split(r"[.=]", setting)[-2] in message


@pytest.mark.parametrize(("command", "message"), [
    ("vocab nowhere --output x", "nowhere"), ("pretrain --shards nowhere --output x", "nowhere"),
    ("pretrain --output x --minutes 3", "--minutes is for --text; with shards set train.steps"),
    ("pretrain --output x --text books", "--text needs --minutes"),
    ("pretrain --output x --text books --minutes 3 --config laptop/best", "--config is for pretraining on shards"),
    ("pretrain --output x --text books --minutes inf", "minutes is inf; it must be above 0 and at most 100,000"),
    ("pretrain --output x --text books --minutes 3 --shards y", "--shards is for pretraining on shards, and --text chooses"),
    ("pretrain --config pretrain/bert_bse --output x", "did you mean 'pretrain/bert_base'"),
    ("predict nowhere", "give sentences, --pair, or --file"),
    ("predict nowhere text --columns text=a", "--columns describes --file"),
    ("convert run b --average 2 --to hf", "--average writes a run; remove the other options"),
    ("shards a.txt --tokenizer t --output s --format electra --set format=xlnet", "'electra' by its flag and 'xlnet' by"),
    ("finetune --output x --set num_train_epochs=3", "unknown key 'num_train_epochs'; did you mean 'train.epochs'?"),
    ("vectors a.txt --output v --similarity no.tsv", "there is no file no.tsv"),
    ("distill --teacher t --output d --set data=5", "data must be a mapping, got 5"),
    ("study --config ablations/bert_features --init-from r --output s --held-out h", "--held-out does not"),
    ("prompt nowhere --show 1 --json", "--json prints one line; remove --show"),
    ("prompt nowhere", "nowhere is not a run directory"),
    ("distill --teacher nowhere --student bert_tiny --shards s --output d", "nowhere is not a run"),
    ("export nowhere", "nowhere is not a run directory"),
    ("export nowhere --set kind=embedding", "--set kind: it has a flag of its own, --kind; use that"),
    ("report a b", "several runs need --output FILE"),
    ("study --output s --config bare.yaml", "name it with --init-from RUN, or add shards"),
    ("study --output s --config bare.yaml --init-from r", "finetune.t.data.train must be given: --set finetune.t.data.train=FILE"),
    ("inspect nowhere --objective masked_ml", "did you mean 'masked_lm'"),
])  # fmt: skip
def test_mistakes_are_one_sentence_without_a_traceback(command, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bare.yaml").write_text("rows: {a: {}}\nfinetune: {t: {}}\n")
    shown = error_of(command).strip()
    assert message in shown and "Traceback" not in shown
    assert shown.startswith(f"bert-tf {command.split()[0]}: ") and len(shown.splitlines()) == 1


def test_pretrain_advises_what_works(tmp_path):
    texts = ["the quick brown fox jumps over the lazy dog"]
    train_wordpiece(texts, 60, lowercase=True).save(tmp_path / "bert" / "tokenizer")
    train_byte_level_bpe(texts, 300).save(tmp_path / "roberta" / "tokenizer")
    for shards, objective, sentence in (
        ("bert", "masked_lm", 'predict run "The [MASK] of'),
        ("roberta", "masked_lm", 'predict run "The <mask> of'),
        ("bert", "replaced_token_detection", None),
        ("roberta", "permutation_lm", None),
        ("roberta", "causal_lm", 'generate run "The United'),
    ):
        config = build(PretrainConfig, {"data": {"shards": str(tmp_path / shards)}, "objective": {"name": objective}})
        *masks, last = pretrain_command.advice(config, "run")
        assert last.startswith("bert-tf finetune --init-from run ")
        assert [sentence in line for line in masks] == ([True] if sentence else [])


def test_the_python_beside_finetune_is_the_same_experiment(monkeypatch):
    asked = []

    def finetune(config, output):
        asked.append((config, output))
        return {"warnings": []}

    monkeypatch.setattr(finetuning, "finetune", finetune)
    monkeypatch.setattr(grid, "finetune", finetune)
    with pytest.raises(UserError, match="sentiment"):  # nothing was trained that could be opened
        exec(textwrap.dedent(finetune_command.__doc__.split("in Python:\n")[1]), {})
    run("finetune --init-from run --train train.tsv --dev dev.tsv --output sentiment")
    assert asked[0] == asked[1]


def test_lists_of_values_are_a_grid(monkeypatch):
    """The command in the help, BERT's grid; the table and what comes next are printed."""

    def finetune_grid(grid, output):
        table = Table(["", "dev accuracy"], [[c.name, 0.5] for c in grid.combinations])
        return {"best": grid.combinations[4].name, "warnings": []}, table

    monkeypatch.setattr(grid, "finetune_grid", finetune_grid)
    command = re.search(r"bert-tf (finetune .*--output grid .*(?:\n .*)*)", finetune_command.__doc__)[1]
    printed = output_of(command.replace("\\\n", " "))
    assert len(re.findall(r"0\.5000", printed)) == 18
    assert "best: learning_rate=2e-05,epochs=4,batch_size=16" in printed and "bert-tf export grid" in printed


def test_commands_that_train_turn_onednn_on():
    """Before TensorFlow is imported, unless the user has said otherwise."""
    code = (
        "import os; from bert_tf.cli import inspect, pretrain; from bert_tf.cli.main import main\n"
        "name = 'TF_ENABLE_ONEDNN_OPTS'\n"
        "inspect.run = pretrain.run = lambda options: print(os.environ.pop(name, None))\n"
        "train = ['pretrain', '--shards', 'shards', '--output', 'run']\n"
        "main(train), main(['inspect', 'shards']), os.environ.update({name: '0'}), main(train)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "TF_ENABLE_ONEDNN_OPTS"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, ["1", "None", "0"]), done.stderr


def test_the_example_of_study_names_the_tasks_that_there_are():
    named = set(re.findall(r"--set finetune\.(\w+)\.", study_command.__doc__))
    shipped = ("ablations/masked_lm", "ablations/bert_features")
    assert named == {task for name in shipped for task in load(StudyConfig, name).finetune}


@pytest.mark.parametrize("command", [
    "predict {road}/task 'A fine film.' --output /", "predict {road}/task 'A fine film.' --output folder/file/below",
    "predict {road}/task --file {road}/dev.tsv --output answers.jsonl --official .",
    "probe attention {road}/run 'A fine film.' --output folder/", "probe pairs {road}/run {road}/dev.tsv --output .",
])  # fmt: skip
def test_an_output_where_no_file_can_be_is_refused_first(road, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder" / "a.tsv").mkdir(parents=True)
    (tmp_path / "folder" / "file").touch()
    monkeypatch.setattr("bert_tf.checkpoints.open_source", None)  # no model is read
    message = "cannot write .*: there is a (folder where a file|file where a folder) must be"
    assert re.search(message, error_of(command.format(road=road)))
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("command", [
    "predict {road}/task --file {pipe}", "evaluate {road}/task {pipe}", "shards {pipe} --tokenizer {road}/tokenizer",
    "shards {road}/corpus.jsonl --tokenizer {pipe} --text-field body", "convert {pipe}", "pretrain --config {pipe}",
])  # fmt: skip
def test_a_pipe_is_refused_and_not_waited_for(road, tmp_path, command):
    os.mkfifo(tmp_path / "pipe")
    output = {"predict": "", "evaluate": "", "convert": " {}/out"}.get(command.split()[0], " --output {}/out")
    assert "pipe" in error_of(command.format(road=road, pipe=tmp_path / "pipe") + output.format(tmp_path))
    assert not (tmp_path / "out").exists()
