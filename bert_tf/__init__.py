"""Pretrained language models of the BERT era in Keras 3 and TensorFlow.

The front door: `load` and `save` for models on disk, whatever wrote them. Nothing heavy is
imported before one of them is called.
"""

__version__ = "0.1.0"


def load(path, pretraining=False, pooler=None, fresh=(), family=None, dtype=None, **outputs):
    """Opens a model on disk, whatever wrote it: an encoder and its tokenizer, ready to use.

    Strict: every array is used or listed, every variable filled, every setting understood, or it
    fails and says which.

    Args:
        path: a Hugging Face directory (config.json, model.safetensors or its shards, tokenizer
            files); a folder with a TensorFlow 1 checkpoint of the original authors and its
            configuration (bert_config.json, vocab.txt, .ckpt), or the checkpoint's prefix in it;
            the same with a BERT of the TensorFlow Model Garden; or a run directory.
        pretraining: whether `objective`, the pretraining model with its heads, is wanted as well.
        pooler: whether the encoder has a pooler; None = where the source has one.
        fresh: parts that may start from random values where the source lacks them: "pooler",
            "masked_lm_head", "pair_head".
        family: where the files do not say it, or the family is another's in name, such as
            "spanbert", which was published as "bert".
        dtype: the dtype policy of the model; None = the global one.
        outputs: further arguments of the encoder, such as `output_hidden_states`.

    Returns:
        `Loaded`: `encoder`, `tokenizer`, `objective` (or None), `family`, and `report` with what was
        `ignored`, `unused` (heads of tasks, or of pretraining where only the encoder was wanted)
        and left `fresh`.

    Raises:
        DataError: nothing that can be read, or weights that do not fit.
        ConfigError: a setting that is not understood.
        RunDirectoryError: a run without a whole checkpoint.

    Example:
        model = bert_tf.load("bert-base-uncased")
        batch = model.tokenizer.pack(model.tokenizer.tokenize(["some text"]))
        model.encoder(batch)["sequence_output"]
    """
    from bert_tf.training import imported

    return imported.load(path, pretraining, pooler, fresh, family, dtype, **outputs)


def save(model, tokenizer, path, format="hf"):
    """Writes a model as the originals' loaders open it. The round trip is bit-exact.

    Args:
        model: an encoder, or a pretraining model around one with its heads.
        tokenizer: is saved in the same folder; None for none.
        path: a folder that does not exist yet, or is empty; it appears whole or not at all.
        format: "hf": a Hugging Face directory; "tf1": a TensorFlow 1 checkpoint as the original
            authors' code reads it.

    Raises:
        ConfigError: a family or a setting that the format cannot express.
        DataError: a part of the model that has no name in the format.
        RunDirectoryError: the folder holds something, or cannot be written.
    """
    from bert_tf.checkpoints import write_checkpoint

    write_checkpoint(model, tokenizer, path, format)


def import_run(path, run_directory, family=None):
    """Turns a published checkpoint into a run directory; see `training.imported.import_run`."""
    from bert_tf.training import imported

    return imported.import_run(path, run_directory, family)
