"""The algorithms by name. Each is a class with the same methods; see `NegativeSampling`."""

from bert_tf.vectors.glove import Glove
from bert_tf.vectors.negative_sampling import NegativeSampling

ALGORITHMS = {"skip_gram": NegativeSampling, "cbow": NegativeSampling, "glove": Glove}
