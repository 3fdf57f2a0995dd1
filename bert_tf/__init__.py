"""Pretrained language models of the BERT era in Keras 3 and TensorFlow.

`load` opens a run directory or a published checkpoint, `load_finetuned` one with the head of a task; `save` writes one
for other libraries. Keras and TensorFlow are imported when one of them is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from bert_tf.tasks.task import Task
    from bert_tf.tokenizers.tokenizer import Tokenizer
    from bert_tf.training.loading import Loaded
    from bert_tf.types import StrPath

__version__ = "0.1.0"

__getattr__, __dir__, _ = lazy_names(__name__, {})


def load(
    path: StrPath,
    pretraining: bool = False,
    pooler: bool | None = None,
    fresh: Iterable[str] = (),
    family: str | None = None,
    dtype: str | None = None,
    **outputs: Any,
) -> Loaded:
    """Loads an encoder and its tokenizer from a run directory or a published checkpoint.

    Every array of the source is used or listed, every variable of the model is set, and every setting
    is understood; otherwise loading fails and names the problem.

    Args:
        path: a Hugging Face directory (config.json, model.safetensors or its shards, tokenizer
            files); a folder with a TensorFlow 1 checkpoint of the original authors and its
            configuration (bert_config.json, vocab.txt, .ckpt), or the checkpoint's prefix in it;
            the same with a BERT of the TensorFlow Model Garden; a file of word vectors (word2vec, GloVe, fastText's
            .vec); or a run directory. `hf://owner/name` and
            `hf://owner/name@revision` are fetched from the Hugging Face Hub.
        pretraining: whether to load `objective` too, the pretraining model with its heads.
        pooler: whether the encoder has a pooler; None: if the source has one.
        fresh: parts that may be randomly initialized if the source does not have them: "pooler",
            "masked_lm_head", "pair_head".
        family: the model family, if the files do not name it or name another: SpanBERT is published as
            "bert".
        dtype: the dtype policy of the model; None: the global one.
        outputs: further arguments of the encoder, such as `output_hidden_states`.

    Returns:
        `Loaded`: `encoder`, `tokenizer`, `objective` (or None), `family`, and `report`, which lists the
        arrays that were `ignored` or `unused` (heads of tasks; pretraining heads if `pretraining` is
        False) and the variables that are randomly initialized (`fresh`).

    Raises:
        DataError: no readable model, or weights that do not fit.
        ConfigError: a setting that is not understood.
        RunDirectoryError: there is nothing at `path`, or a run without an undamaged checkpoint.

    Example:
        model = bert_tf.load("bert-base-uncased")
        batch = model.tokenizer.pack(model.tokenizer.tokenize(["some text"]))
        model.encoder(batch)["sequence_output"]
    """
    from bert_tf.training import loading

    return loading.load(path, pretraining, pooler, fresh, family, dtype, **outputs)


def load_finetuned(path: StrPath, precision: str = "float32", family: str | None = None) -> tuple[Task, Any, Tokenizer]:
    """Loads a fine-tuned model: a run directory, or a Hugging Face directory of a fine-tuned class.

    See `bert_tf.training.loading.load_finetuned`.

    Returns:
        (task, model, tokenizer); `task.predict(model, texts)` answers.

    Raises:
        RunDirectoryError, DataError, ConfigError: as `load`; also a model that is not fine-tuned, or for a task that
            this library does not have.

    Example:
        task, model, tokenizer = bert_tf.load_finetuned("bert-base-NER")
        task.predict(model, ["Anna met Paul."])
    """
    from bert_tf.training import loading

    return loading.load_finetuned(path, precision, family)


def save(model: Any, tokenizer: Tokenizer | None, path: StrPath, format: str = "hf") -> None:
    """Writes a model in a format that other libraries load. The round trip is bit-exact.

    Args:
        model: an encoder, or a pretraining model around one with its heads.
        tokenizer: the tokenizer to save in the same folder; None for none.
        path: a folder that does not exist yet, or is empty; it appears only when it is complete.
        format: "hf": a Hugging Face directory; "tf1": a TensorFlow 1 checkpoint as the original
            authors' code reads it; "numpy": GPT-1's params_*.npy; "bilm": ELMo's options.json and weights.hdf5;
            "word2vec", "word2vec_binary", "glove": a file of the token table alone.

    Raises:
        ConfigError: a family or a setting that the format cannot express.
        DataError: a part of the model that has no name in the format.
        RunDirectoryError: the folder holds something, or cannot be written.
    """
    from bert_tf.checkpoints import write_checkpoint

    write_checkpoint(model, tokenizer, path, format)


def import_run(path: StrPath, run_directory: StrPath, family: str | None = None) -> None:
    """Turns a published checkpoint into a run directory; see `training.converting.import_run`."""
    from bert_tf.training import converting

    return converting.import_run(path, run_directory, family)
