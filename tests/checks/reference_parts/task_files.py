"""Small labelled files in the form in which each kind of task reads them. They are inputs, kept in FOLDER."""

import json

_SENTENCES = [
    "The people of the United States are free.", "War is a great evil.", "naïve 한국 🙂 text", "Peace, law and order!",
    "the states", "It was a long and very costly war against the people of the union, " * 3, "A good law.", "Taxes are high.",
]  # fmt: skip
_SECOND = [
    "Freedom is good.",
    "Peace is better.",
    "",
    "No order.",
    "of the union",
    "The war was long.",
    "A bad law.",
    "Taxes.",
]
_NAMES = (
    "Washington met Lincoln in New York .",
    "The Senate of the United States met .",
    "Jefferson wrote to John Adams .",
)
_TAGS = ("B-PER O B-PER O B-LOC I-LOC O", "O B-ORG O O B-LOC I-LOC O O", "B-PER O O B-PER I-PER O")

SINGLE = "text\tlabel\n" + "".join(f"{text}\t{'pos' if n % 3 else 'neg'}\n" for n, text in enumerate(_SENTENCES))
PAIRS = "text\ttext_pair\tlabel\n" + "".join(
    f"{a}\t{b or '.'}\t{'abc'[n % 3]}\n" for n, (a, b) in enumerate(zip(_SENTENCES, _SECOND))
)
NUMBERS = "text\ttext_pair\tlabel\n" + "".join(
    f"{a}\t{b or '.'}\t{n * 0.7 % 5:.2f}\n" for n, (a, b) in enumerate(zip(_SENTENCES, _SECOND))
)
MULTI = [
    {"text": "The war is over.", "labels": ["peace", "joy"]}, {"text": "Taxes.", "labels": []},
    {"text": "A good law for the people", "labels": "joy"}, {"text": "the states", "labels": None},
    {"text": "peace and joy", "labels": ["peace"]},
]  # fmt: skip
CONLL = "-DOCSTART- -X- O\n\n" + "\n".join(
    "".join(f"{word} X {tag}\n" for word, tag in zip(words.split(), tags.split())) for words, tags in zip(_NAMES, _TAGS)
)
CONLL += "-DOCSTART- -X- O\n\nUnbelievably X O\nlong X O\n한국 X B-LOC\n" + "words X O\n" * 40
CHOICES = [
    {"context": "The war was", "options": ["long", "short and cheap"], "label": 0},
    {"question": "What is good?", "options": ["peace", "war", "a tax on the people"], "label": "2"},
    {"context": "People " * 30, "question": "Who?", "options": ["they", "the states ,"], "label": 1},
    {"context": "It is _ .", "question": "_ or what?", "options": ["law", "order"], "label": 1},
]
MULTIRC = [
    {
        "idx": 4,
        "passage": {
            "text": "The Senate met in New York. The people were free.",
            "questions": [
                {"question": "Who met?", "idx": 7, "answers": [{"text": "the Senate", "label": 1}, {"text": "New York", "label": 0}]},
                {"question": "Where?", "idx": 8, "answers": [{"text": "in New York", "label": 1}, {"text": "in the union", "label": 0}]},
            ],
        },
    }
]  # fmt: skip
RECORD = [
    {
        "passage": {
            "text": "Washington met Lincoln in New York.\n@highlight\nThey were free",
            "entities": [{"start": 0, "end": 9}, {"start": 15, "end": 21}, {"start": 26, "end": 33}],
        },
        "qas": [
            {"query": "@placeholder met Lincoln", "answers": [{"text": "Washington"}]},
            {"query": "They met in @placeholder .", "answers": [{"text": "New York"}]},
        ],
    },
    {"passage": "a good law", "entities": ["law", "good"], "query": "a good @placeholder", "answers": ["law"]},
]
WORDS = [
    {"sentence1": "a good law", "start1": 2, "end1": 6, "sentence2": "good people", "start2": 0, "end2": 4, "label": True},
    {"sentence1": "the war is long", "start1": 4, "end1": 7, "sentence2": "a long war", "start2": 7, "end2": 10, "label": "false"},
    {"sentence1": "한국 naïve text", "start1": 3, "end1": 8, "sentence2": "text 한국", "start2": 5, "end2": 7, "label": True},
    {"text": "The Senate met Lincoln . He left", "target": {"span1_text": "Lincoln", "span1_index": 3, "span2_text": "He", "span2_index": 5}, "label": True},
]  # fmt: skip
WORDS_OF_TEXT, WORDS = WORDS[3:], WORDS[:3]
WORDS_OF_TEXT = [row | {"label": label} for row in WORDS_OF_TEXT for label in (True, False)]
TEXTS = "source\ttarget\n" + "".join(
    f"{a.strip()}\t{' '.join(reversed(b.split()))}\n" for a, b in zip(_SENTENCES, _SECOND) if b
)
_CONTEXTS = (
    "The Senate of the United States met in New York. Washington was the first president of the union.",
    "Lincoln freed the people in the war, and naïve 한국 Adams is in the law. " * 2,
)
_QUESTIONS = (
    ("a", 0, "Where did the Senate meet?", ["New York", "in New York"]), ("b", 0, "Who was the first president?", ["Washington"]),
    ("c", 1, "Who freed the people?", ["Lincoln"]), ("d", 1, "Where is Adams?", ["in the law", "the law"]), ("e", 0, "Who is 한국?", []),
)  # fmt: skip


def squad(impossible):
    """A SQuAD file, of version 2 if it has a question without an answer."""
    paragraphs = [{"context": context, "qas": []} for context in _CONTEXTS]
    for name, number, question, answers in _QUESTIONS:
        if not answers and not impossible:
            continue
        found = [{"text": text, "answer_start": _CONTEXTS[number].index(text)} for text in answers]
        entry = {"id": name, "question": question, "answers": found}
        paragraphs[number]["qas"].append(entry | ({"is_impossible": not answers} if impossible else {}))
    version = "v2.0" if impossible else "1.1"
    return json.dumps({"version": version, "data": [{"title": "t", "paragraphs": paragraphs}]}, ensure_ascii=False)


#: Name of the file -> its content.
FILES = {
    "single.tsv": SINGLE, "pairs.tsv": PAIRS, "numbers.tsv": NUMBERS, "multi.jsonl": MULTI, "tags.conll": CONLL,
    "choices.jsonl": CHOICES, "multirc.jsonl": MULTIRC, "record.jsonl": RECORD, "words.jsonl": WORDS,
    "words_of_text.jsonl": WORDS_OF_TEXT, "texts.tsv": TEXTS, "squad.json": squad(False), "squad2.json": squad(True),
}  # fmt: skip
