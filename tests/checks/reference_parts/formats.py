"""Files of data sets in their own forms: GLUE, multiple choice, T5's texts, tags, questions, tables."""

import json

from bert_tf.tasks import build_task
from bert_tf.tasks.choices.formats import FORMATS
from bert_tf.tasks.glue import GLUE_TASKS
from bert_tf.tasks.text_to_text.t5_formats import T5_FORMATS
from reference_parts import task_files
from reference_parts.tasks import fields_of

PAIR = {"sentence1": "A plane.", "sentence2": "An air plane."}
RTE = {"premise": "It rained.", "hypothesis": "It was dry."}
COPA = {"premise": "It rained.", "choice1": "a", "choice2": "b", "question": "effect", "label": 1, "idx": 7}
WIC = {"word": "place", "sentence1": "a place", "sentence2": "to place", "label": False, "start1": 2}
WSC = {
    "text": "Mark told Pete many lies about himself .", "label": True,
    "target": {"span1_index": 0, "span1_text": "Mark", "span2_index": 6, "span2_text": "himself"},
}  # fmt: skip
SQUAD = {"context": "Super Bowl 50 (2016) was it's game.", "question": "Which game?", "id": "q1",
         "answers": [{"text": "it's game.", "answer_start": 25}]}  # fmt: skip
#: T5's format -> rows of its file.
T5 = {
    "cola": [{"sentence": "Bill whistled.", "label": "1"}],
    "sst2": [{"sentence": "uneasy mishmash ", "label": 0}],
    "mrpc": [PAIR | {"label": 0}],
    "qqp": [{"question1": "Why?", "question2": "How?", "label": 1}],
    "stsb": [PAIR | {"score": "2.57"}, PAIR | {"label": 1.8}, PAIR | {"score": "2.5"}],
    "mnli": [RTE | {"label": 2}],
    "qnli": [{"question": "Who?", "sentence": "He.", "label": "not_entailment"}],
    "rte": [PAIR | {"label": 0}],
    "wnli": [PAIR | {"label": "1"}],
    "boolq": [{"question": "is it", "passage": "It is.", "label": True}],
    "cb": [RTE | {"label": "neutral"}],
    "copa": [COPA],
    "multirc": task_files.MULTIRC,
    "record": task_files.RECORD[:1],
    "superglue_rte": [RTE | {"label": "not_entailment"}],
    "axb": [PAIR | {"label": "entailment"}],
    "axg": [RTE | {"label": "entailment"}],
    "wic": [WIC],
    "wsc": [WSC],
    "squad": [SQUAD],
    "summarize": [{"article": "Long text.", "highlights": "Text."}],
}
#: Data set of multiple choice -> (name of the file, content).
CHOICES = {
    "swag": (
        "a.csv",
        ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label\n"
        '4,lsmdc1,99,"He stops, he","He stops.",He,gold,sits.,"runs, fast.",eats.,sleeps.,2\n',
    ),
    "race": (
        "a.jsonl",
        [
            {
                "id": f"{level}1.txt", "article": "It was\nTom.", "questions": ["Who is _ ?", "Why?"],
                "options": [list("abcd"), list("efgh")], "answers": ["B", "D"],
            }
            for level in ("middle", "high")
        ],
    ),
    "arc": ("a.csv", '"Which, then?",x,y,z,,C\nHow many?,5,6,7,8,2\n'),
    "arc_nested": (
        "a.jsonl",
        [{"id": "M1", "question": {"stem": "Why?", "choices": [{"text": t, "label": n} for t, n in zip("xyz", "123")]}, "answerKey": "3"}],
    ),
    "copa": ("a.jsonl", [COPA]),
    "rocstories": (
        "a.csv",
        "InputStoryid,InputSentence1,InputSentence2,InputSentence3,InputSentence4,RandomFifthSentenceQuiz1,"
        "RandomFifthSentenceQuiz2,AnswerRightEnding\na-1,One.,Two.,Three.,Four.,Bad.,Good.,2\n",
    ),
    "columns": ("a.csv", "Context,A,B,C,answer\nq,x,y,z,C\nr,x,y,,A\n"),
}  # fmt: skip
_GLUE_HEAD = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
_MNLI = "index\tpromptID\tpairID\tgenre\ta\tb\tc\td\tsentence1\tsentence2\tlabel1\tgold_label\n"
#: Task of GLUE -> its train.tsv.
GLUE = {
    "cola": "gj04\t1\t\tOur friends won't buy this.\ngj04\t0\t*\tThe \"book.\n",
    "sst2": "sentence\tlabel\nhide new secretions \t0\nwit\t1\n",
    "mrpc": '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t702876\t702977\tAmrozi said "a\tHe said\n',
    "qqp": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\tHow?\tWhy?\t0\n4\t5\tbroken\n6\t7\t8\tA\tB\t1\n",
    "stsb": _GLUE_HEAD + "0\tmain\tMSRvid\t2012\t1\tnone\tnone\tA plane.\tAn air plane.\t5.000\n",
    "mnli": _MNLI + "0\t31\t31n\tgov\t( a )\t( b )\t(R a)\t(R b)\tCream skimming\tProduct\tneutral\tneutral\n",
    "qnli": "index\tquestion\tsentence\tlabel\n0\tWhen did it end?\tIn 1918.\tentailment\n",
    "rte": "index\tsentence1\tsentence2\tlabel\n0\tNo weapons.\tWeapons.\tnot_entailment\n",
    "wnli": "index\tsentence1\tsentence2\tlabel\n0\tI stuck a pin.\tIt is sharp.\t1\n",
}
_SCHEMES = {
    "IOB1": "I-PER I-PER B-PER O I-LOC",
    "IOB2": "B-PER I-PER B-PER O B-LOC",
    "BIOES": "B-PER E-PER S-PER O S-LOC",
    "BILOU": "B-PER L-PER U-PER O U-LOC",
    "conlleval": "B-PER I-PER I-LOC O E-LOC",
}
_CONLLU = "".join(
    f"{line}\n"
    for line in ("# newdoc id = a", "1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_", "1\tde\tde\tADP\tE\t_\t_\t_\t_\t_", "2\tPain\tpain\tNOUN\tN\t_\t_\t_\t_\t_", "")
)  # fmt: skip
#: Case -> (settings of the task, name of the file, content).
OTHERS = {
    "table/tsv": ({}, "a.tsv", 'text\tlabel\n"a good\tpos\nbad\tneg\n'),
    "table/csv": ({}, "a.csv", 'sentence,label\n"a, good ""one""",1\nbad,0\n'),
    "table/json": ({}, "a.json", json.dumps([{"premise": "a", "hypothesis": "b", "gold_label": "x"}, {"premise": "c", "hypothesis": "d", "gold_label": "y"}])),
    "table/jsonl": ({"data.columns": {"text": "review", "label": "stars"}}, "a.jsonl", [{"review": "good", "stars": 5}, {"review": "bad", "stars": 1}]),
    "table/numbered": ({"data.columns": {"text": 1, "label": 0}}, "a.tsv", "pos\tgood\nneg\tbad\n"),
    "table/malformed": ({"data.columns": {"skip_malformed": True}}, "a.tsv", "text\tlabel\ngood\tpos\nbroken\nbad\tneg\n"),
    "multi_label/columns": (
        {"kind": "multi_label", "data.columns": {"label": ["toxic", "insult"]}}, "a.csv", "text,toxic,insult\na,1,0\nb,0,0\nc,1,1\n"
    ),
    "tags/conllu": ({"kind": "tagging"}, "a.conllu", _CONLLU),
    "tags/jsonl": ({"kind": "tagging"}, "a.jsonl", [{"tokens": ["Anna", "met"], "ner_tags": ["B-PER", "O"]}]),
    "questions/squad": ({"kind": "question_answering"}, "a.json", task_files.squad(True)),
    "questions/jsonl": (
        {"kind": "question_answering"}, "a.jsonl", [SQUAD | {"answers": {"text": ["it's game."], "answer_start": [25]}}]
    ),
    "t5/translate": (
        {"kind": "text_to_text", "format": "translate", "languages": ["en", "de"]}, "a.jsonl", [{"en": "Yes.", "de": "Ja."}]
    ),
    "t5/trivia_qa": (
        {"kind": "text_to_text", "format": "trivia_qa"},
        "a.jsonl",
        [{"question": "Who?", "question_id": "q", "answer": {"value": "Anna", "aliases": ["Anna", "The Ann"]}}, {"question": "Where?", "answer": {"value": "Rome"}}],
    ),
    "texts/tsv": ({"kind": "text_to_text", "prefix": "turn: "}, "a.tsv", "source\ttarget\na b\tb a\nc\tc\n"),
    "word_pair/wic": ({"kind": "word_pair"}, "a.jsonl", [WIC | {"end1": 7, "start2": 3, "end2": 8}, WIC | {"end1": 7, "start2": 3, "end2": 8, "label": True}]),
}  # fmt: skip
for _scheme, _tags in _SCHEMES.items():
    _rows = "".join(f"{word} {tag}\n" for word, tag in zip("John Adams Anna met Rome".split(), _tags.split()))
    OTHERS[f"tags/{_scheme}"] = (
        {"kind": "tagging", "data.columns": {"tag_scheme": _scheme}},
        "a.conll",
        f"{_rows}\n{_rows}",
    )


def missing():
    yield from (f"format {name} of T5" for name in T5_FORMATS if name not in T5 and f"t5/{name}" not in OTHERS)
    choices = {name.partition("_")[0] for name in CHOICES}
    yield from (f"format {name} of multiple choice" for name in FORMATS if name not in choices)
    yield from (f"task {name} of GLUE" for name in GLUE_TASKS if name not in GLUE)


def cases(room):
    files = {f"t5/{name}": ({"kind": "text_to_text", "format": name}, "a.jsonl", T5[name]) for name in T5}
    for name, (file, content) in CHOICES.items():
        files[f"choices/{name}"] = ({"kind": "multiple_choice"}, file, content)
    files |= {f"glue/{name}": ({"preset": name}, "train.tsv", content) for name, content in GLUE.items()}
    for name, (settings, file, content) in (files | OTHERS).items():
        yield name, lambda name=name, given=(settings, file, content): values(room, name, *given)


def values(room, name, settings, file, content):
    """What is read of a file, with its labels and without them."""
    tokenizer = "unigram_t5" if settings.get("kind") == "text_to_text" else "wordpiece"
    columns = settings.get("data.columns")
    settings = {key: value for key, value in settings.items() if key != "data.columns"}
    task = build_task(settings, room.tokenizer(tokenizer), columns)
    path = room.text(f"formats/{name}/{file}", content)
    examples = task.read(path)
    found, task = fields_of(examples), task.learn(examples)
    return {
        "read": found,
        "labels": list(task.labels or ()),
        "metric": task.metric,
        "unlabelled": fields_of(task.read(path, labelled=False)),
    }
