"""What a pretrained model has learned: words, stereotypes, layers, attention heads, trees; see docs/guides/probe.md.

    model = bert_tf.load("run")
    scorer, probe = text_scorer(model.objective, model.tokenizer), Cloze()
    probe.run(scorer, probe.read("english"))["facts"]["right"]

Names are imported when they are first used (PEP 562).
"""

from bert_tf.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "attention": ["AttentionMap", "TextAttention", "text_attention", "write_attention_page"],
        "edge_files": ["SpanExample", "read_spans"],
        "edges": ["EdgeProbe", "Edges"],
        "gap_scorer": ["GapScorer"],
        "head_importance": ["HeadImportance", "importance_of_heads"],
        "head_patterns": ["HeadPositions", "HeadRelations"],
        "layer_reader": ["LayerReader"],
        "layers": ["LayerVectors", "Layers", "control_tags", "layer_vectors"],
        "likelihood.cloze": ["CLOZE_SETS", "Cloze", "Lama", "cloze_question"],
        "likelihood.crows_pairs": ["CrowsPairs"],
        "likelihood.engine": ["LikelihoodProbe", "Question", "fill"],
        "likelihood.ettinger": ["Ettinger", "expectation"],
        "likelihood.minimal_pairs": ["MinimalPairs"],
        "likelihood.stereoset": ["StereoSet"],
        "likelihood.winobias": ["WinoBias"],
        "neighbours": ["Neighbours"],
        "page": ["write_probe_page"],
        "probe": ["Probe"],
        "registry": ["PROBES", "register_probe"],
        "scored_texts": ["ScoredText"],
        "scorers": ["HiddenTokenScorer", "NextTokenScorer", "text_scorer"],
        "structural": ["Trees"],
        "tables": ["ProbeTable", "layer_table"],
        "trees": ["DependencyTree", "read_trees"],
        "word_in_context": ["WordInContext"],
        "word_uses": ["WordUse", "WordUses"],
    },
)
