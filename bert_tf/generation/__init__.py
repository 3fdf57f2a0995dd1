"""Text from a decoder or an encoder-decoder: greedy, sampled, or by beam search; see README.md."""

from bert_tf.generation.beam_search import beam_search
from bert_tf.generation.generation_config import GenerationConfig
from bert_tf.generation.sampling import generate_tokens
from bert_tf.generation.scoring import TextScorer
from bert_tf.generation.steps import DecoderSteps, EncoderDecoderSteps
from bert_tf.generation.generator import Generated, TextGenerator
from bert_tf.generation.restrictions import Restrictions
