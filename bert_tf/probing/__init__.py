"""What a pretrained model has learned: words, stereotypes, layers, attention heads, trees; see README.md.

    model = bert_tf.load("run")
    scorer = text_scorer(model.objective, model.tokenizer)
    run_cloze(scorer, read_cloze(CLOZE_SETS["english"]))["facts"].accuracy

Names are imported when they are first used (PEP 562).
"""

from bert_tf.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "attention": ["TextAttention", "text_attention", "write_attention_page"],
        "cloze": ["ClozeResult", "cloze_table", "run_cloze"],
        "cloze_files": ["CLOZE_SETS", "ClozeQuestion", "read_cloze"],
        "edge_files": ["SpanExample", "read_spans"],
        "edges": ["EdgeConfig", "EdgeProbe", "EdgeResult", "edges_table", "run_edges"],
        "ettinger": ["DiagnosticResult", "diagnostics_table", "run_diagnostics"],
        "ettinger_files": ["Diagnostic", "read_diagnostic"],
        "gap_scorer": ["GapScorer"],
        "head_importance": ["HeadImportance", "head_importance_table", "run_head_importance"],
        "head_patterns": ["HeadsResult", "patterns_table", "relations_table", "run_heads"],
        "lama_files": ["read_lama"],
        "layers": ["LayerProbe", "LayerVectors", "control_tags", "layer_vectors", "layers_table", "probe_layers"],
        "minimal_pairs": ["MinimalPair", "PairsResult", "pairs_table", "read_pairs", "run_pairs"],
        "page": ["write_probe_page"],
        "scored_texts": ["ScoredText"],
        "scorers": ["HiddenTokenScorer", "NextTokenScorer", "text_scorer"],
        "stereotypes": ["StereotypeResult", "crows_pairs_table", "read_crows_pairs", "run_crows_pairs"],
        "stereoset": ["StereoSetExample", "StereoSetScore", "read_stereoset", "run_stereoset", "stereoset_table"],
        "structural": ["StructuralConfig", "StructuralResult", "run_structural", "structural_table"],
        "tables": ["ProbeTable"],
        "trees": ["DependencyTree", "read_trees"],
        "winobias": ["WinoBiasPair", "WinoBiasResult", "read_winobias", "run_winobias", "winobias_table"],
        "word_in_context": ["WicResult", "read_wic", "run_wic", "wic_table"],
        "word_uses": ["UsesResult", "WordUse", "read_uses", "run_uses", "uses_table"],
    },
)
