"""SavedModels with the tokenizer inside, which stock TF Serving loads: text in, answer out."""

from bert_tf.export.choices import ServedMultipleChoice, ServedReCoRD
from bert_tf.export.classification import ServedClassifier, ServedMultiLabelClassifier, ServedRegressor
from bert_tf.export.embedding import ServedEmbedding
from bert_tf.export.fill_mask import ServedMaskedLM
from bert_tf.export.generation import ServedGeneration
from bert_tf.export.run import export_run
from bert_tf.export.saved_model import ExportError, write_saved_model
from bert_tf.export.served import register_served
from bert_tf.export.signatures import ServingModule
from bert_tf.export.spans import ServedQuestionAnswering
from bert_tf.export.tagging import ServedTagger
from bert_tf.export.word_pairs import ServedWordPair
