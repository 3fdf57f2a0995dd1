"""Names by which columns are found where the settings name none, in the order of preference."""

TEXT_NAMES = (
    "text", "sentence", "sentence1", "text1", "premise", "question1", "question", "review",
    "document", "content", "comment", "body", "#1 string",
)  # fmt: skip
PAIR_NAMES = ("text_pair", "sentence2", "text2", "hypothesis", "question2", "#2 string")
LABEL_NAMES = (
    "label", "labels", "gold_label", "class", "category", "target", "sentiment", "score",
    "is_duplicate", "quality",
)  # fmt: skip
ID_NAMES = ("id", "idx", "index", "guid", "uid")
WORDS_NAMES = ("words", "tokens")
TAGS_NAMES = ("tags", "ner_tags", "pos_tags", "labels")
