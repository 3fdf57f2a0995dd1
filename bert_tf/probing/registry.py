"""The one list of probes."""

from bert_tf.probing.attention import AttentionMap
from bert_tf.probing.edges import Edges
from bert_tf.probing.head_importance import HeadImportance
from bert_tf.probing.head_patterns import HeadPositions, HeadRelations
from bert_tf.probing.layers import Layers
from bert_tf.probing.likelihood.cloze import Cloze, Lama
from bert_tf.probing.likelihood.crows_pairs import CrowsPairs
from bert_tf.probing.likelihood.ettinger import Ettinger
from bert_tf.probing.likelihood.minimal_pairs import MinimalPairs
from bert_tf.probing.likelihood.stereoset import StereoSet
from bert_tf.probing.likelihood.winobias import WinoBias
from bert_tf.probing.neighbours import Neighbours
from bert_tf.probing.structural import Trees
from bert_tf.probing.word_in_context import WordInContext
from bert_tf.probing.word_uses import WordUses
from bert_tf.registry import Registry

_LIKELIHOOD = [Cloze, Lama, MinimalPairs, CrowsPairs, StereoSet, WinoBias, Ettinger]
_LAYERS = [Layers, WordUses, WordInContext, HeadRelations, HeadPositions, HeadImportance, Trees, Edges, AttentionMap]

#: Name -> class of a `Probe`.
PROBES = Registry("probe", "probe", [*_LIKELIHOOD, *_LAYERS, Neighbours])


def register_probe(probe):
    """Adds the class of a `Probe` to the list, from outside of the library too.

    Returns:
        The class: this is a decorator, too.

    Raises:
        ConfigError: another probe has its name.
    """
    return PROBES.register(probe)
