"""What a pretrained model has learned: cloze questions, minimal pairs, stereotypes, layers, attention; see README.md.

    objective, tokenizer = load_pretrained("run")
    scorer = text_scorer(objective, tokenizer)
    run_cloze(scorer, read_cloze(CLOZE_SETS["english"]))["facts"].accuracy

Names are imported when they are first used (PEP 562).
"""

from bert_tf.lazy import lazy_names

__getattr__, __all__ = lazy_names(__name__, {
    "attention": ["TextAttention", "text_attention", "write_attention_page"],
    "cloze": ["ClozeResult", "run_cloze"],
    "cloze_files": ["CLOZE_SETS", "ClozeQuestion", "read_cloze"],
    "lama_files": ["read_lama"],
    "layers": ["LayerProbe", "LayerVectors", "control_tags", "layer_vectors", "probe_layers"],
    "minimal_pairs": ["MinimalPair", "PairsResult", "read_pairs", "run_pairs"],
    "scorers": ["HiddenTokenScorer", "NextTokenScorer", "ScoredText", "text_scorer"],
    "stereotypes": ["StereotypeResult", "read_crows_pairs", "run_crows_pairs"],
})
