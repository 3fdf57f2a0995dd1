"""GLUE presets on tiny files in exactly the official layouts."""

import pytest
import tiny

from bert_tf.errors import ConfigError
from bert_tf.tasks import ClassificationConfig, TextColumns, build_task
from bert_tf.tasks.glue import GLUE_TASKS, resolve
from bert_tf.tasks.record import check_columns
from bert_tf.tokenizers import WordPieceTokenizer

STSB = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2"
MNLI = (
    "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse\t"
)
MNLI += "sentence1\tsentence2"
# train or dev file, test file, first text, first pair, labels, texts of the test file.
LAYOUTS = {
    "cola": ("gj04\t1\t\tOur friends won't buy this.\ngj04\t0\t*\tThe \"book.\n",
     "index\tsentence\n0\tBill whistled.\n", "Our friends won't buy this.", None, ["1", "0"], ["Bill whistled."]),
    "sst2": ("sentence\tlabel\nhide new secretions \t0\nwit\t1\n", "index\tsentence\n0\tuneasy mishmash\n",
     "hide new secretions ", None, ["0", "1"], ["uneasy mishmash"]),
    "mrpc": ('\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t702876\t702977\tAmrozi said "a\tHe said\n',
     "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\tPCCW's chief\tCurrent chief\n", 'Amrozi said "a', "He said",
     ["1"], ["PCCW's chief"]),
    "qqp": ("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\tHow?\tWhy?\t0\n4\t5\tbroken\n6\t7\t8\tA\tB\t1\n",
     "id\tquestion1\tquestion2\n0\tWhat?\tWho?\n", "How?", "Why?", ["0", "1"], ["What?"]),
    "stsb": (f"{STSB}\tscore\n0\tmain\tMSRvid\t2012\t1\tnone\tnone\tA plane.\tAn air plane.\t5.000\n",
     f"{STSB}\n0\tmain\tMSRvid\t2012\t1\tnone\tnone\tA girl.\tA woman.\n", "A plane.", "An air plane.", [5.0], ["A girl."]),
    "mnli": (f"{MNLI}\tlabel1\tgold_label\n0\t31\t31n\tgov\t( a )\t( b )\t(R a)\t(R b)\tCream skimming\tProduct\tneutral\tneutral\n",
     f"{MNLI}\n0\t31\t31n\tgov\t( a )\t( b )\t(R a)\t(R b)\tHierbas\tis a name\n",
     "Cream skimming", "Product", ["neutral"], ["Hierbas"]),
    "qnli": ("index\tquestion\tsentence\tlabel\n0\tWhen did it end?\tIn 1918.\tentailment\n",
     "index\tquestion\tsentence\n0\tWho?\tHe.\n", "When did it end?", "In 1918.", ["entailment"], ["Who?"]),
    "rte": ("index\tsentence1\tsentence2\tlabel\n0\tNo weapons.\tWeapons.\tnot_entailment\n",
     "index\tsentence1\tsentence2\n0\tMangla\tChina\n", "No weapons.", "Weapons.", ["not_entailment"], ["Mangla"]),
    "wnli": ("index\tsentence1\tsentence2\tlabel\n0\tI stuck a pin.\tIt had a hole.\t1\n",
     "index\tsentence1\tsentence2\n0\tMaude\tDora\n", "I stuck a pin.", "It had a hole.", ["1"], ["Maude"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])


@pytest.mark.parametrize("name", GLUE_TASKS)
def test_official_layouts(name, tokenizer, tmp_path):
    train, test, text, pair, labels, test_texts = LAYOUTS[name]
    (tmp_path / "train.tsv").write_text(train, encoding="utf-8")
    (tmp_path / "test.tsv").write_text(test, encoding="utf-8")
    task, examples = tiny.learned(tmp_path / "train.tsv", build_task({"preset": name}, tokenizer))
    assert examples.texts[0] == text
    assert (examples.text_pairs or [None])[0] == pair
    assert examples.labels == labels
    assert examples.skipped == (1 if name == "qqp" else 0)
    assert task.read(tmp_path / "test.tsv", labelled=False).texts == test_texts
    # A labelled file may be predicted, too.
    assert task.read(tmp_path / "train.tsv", labelled=False).texts[0] == text


def test_label_order_is_that_of_the_published_checkpoints():
    assert resolve(ClassificationConfig(preset="mnli")).labels == ("contradiction", "entailment", "neutral")
    assert resolve(ClassificationConfig(preset="rte")).labels == ("entailment", "not_entailment")


def test_what_is_given_wins_over_the_preset():
    config = resolve(ClassificationConfig(preset="mrpc", metric="accuracy"))
    assert (config.metric, config.labels) == ("accuracy", ("0", "1"))
    assert check_columns(config, {"text": 3, "text_pair": 4}) == TextColumns(text=3, text_pair=4, label="Quality")


def test_one_column_setting_leaves_the_others_of_the_preset():
    config = resolve(ClassificationConfig(preset="qnli"))
    columns = check_columns(config, {"skip_malformed": True})
    assert columns == TextColumns(text="question", text_pair="sentence", label="label", skip_malformed=True)
    assert resolve(config) == config, "as it is when a run's task.json is read"


def test_test_files_of_another_layout_are_read_with_a_column_setting_too(tokenizer, tmp_path):
    train, test, *_, texts = LAYOUTS["cola"]
    (tmp_path / "train.tsv").write_text(train, encoding="utf-8")
    (tmp_path / "test.tsv").write_text(test + "1\ta\tbroken\n", encoding="utf-8")
    task = build_task({"preset": "cola"}, tokenizer, {"skip_malformed": True})
    task.read(tmp_path / "train.tsv")
    assert task.read(tmp_path / "test.tsv", labelled=False).texts == texts


def test_messages():
    with pytest.raises(ConfigError, match="task.preset=stsb is regression, but task.kind=classification"):
        resolve(ClassificationConfig(preset="stsb"))
