"""Pretrained language models of the BERT era in Keras 3 and TensorFlow.

`load` opens a run directory or a published checkpoint; `save` writes one for other libraries. Keras and TensorFlow are imported when one of them is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from bert_tf.language_model import LanguageModel
    from bert_tf.tasks.task import Task
    from bert_tf.tokenizers.tokenizer import Tokenizer
    from bert_tf.types import StrPath

__version__ = "1.0.0rc1"

__getattr__, __dir__, _ = lazy_names(
    __name__, {"keras_files": ["load_keras"], "training_calls": ["distill", "finetune", "pretrain"]}
)


def load(
    path: StrPath,
    family: str | None = None,
    dtype: str | None = None,
    pooler: bool | None = None,
    fresh: Iterable[str] = (),
    trained: bool = True,
    **arguments: Any,
) -> LanguageModel:
    """Opens a model on disk: a run directory or a published checkpoint.

    Every array of the source is used or listed, every variable of the model is set, and every setting
    is understood; otherwise loading fails and names the problem.

    Args:
        path: a Hugging Face directory (config.json, model.safetensors or its shards, tokenizer
            files); a folder with a TensorFlow 1 checkpoint of the original authors and its
            configuration (bert_config.json, vocab.txt, .ckpt), or the checkpoint's prefix in it;
            the same with a BERT of the TensorFlow Model Garden; a preset of KerasHub (config.json, model.weights.h5);
            GPT-1's params_*.npy; ELMo's options.json and
            weights.hdf5; a file of word vectors (word2vec, GloVe, fastText's .vec); or a run directory. `hf://owner/name`
            and `hf://owner/name@revision` are fetched from the Hugging Face Hub.
        family: the model family, if the files do not name it or name another: SpanBERT is published as
            "bert".
        dtype: the dtype policy of the models, such as "mixed_bfloat16"; None: the global one.
        pooler: whether the backbone has a pooler; None: if the source has one.
        fresh: parts that may be randomly initialized if the source does not have them: "pooler",
            "masked_lm_head", "pair_head".
        trained: False keeps the random initial weights: the same model without its training.
        arguments: further ones of the backbone, such as `output_hidden_states`.

    Returns:
        A `LanguageModel` with the verbs `predict`, `evaluate`, `fill_mask`, `embed`, `generate`, `score`, `export` and
        `save`. Its parts are made when they are asked for: `tokenizer`; `encoder`, `backbone`; `objective`, the
        pretraining model with its heads; of a fine-tuned model `task`, and `model`, which `task` evaluates; `generator`
        and `scorer`, of a model that writes text; `report`, which lists the arrays that were `ignored` or `unused` and the
        variables that are randomly initialized (`fresh`).

    Raises:
        DataError: no readable model, or weights that do not fit.
        ConfigError: a setting that is not understood.
        RunDirectoryError: there is nothing at `path`, or a run without an undamaged checkpoint.

    Example:
        model = bert_tf.load("bert-base-uncased")
        batch = model.tokenizer.pack(model.tokenizer.tokenize(["some text"]))
        model.encoder(batch)["sequence_output"]

        ner = bert_tf.load("bert-base-NER")
        ner.predict("Anna met Paul.")
    """
    from bert_tf import training
    from bert_tf.checkpoints import open_source
    from bert_tf.language_model import LanguageModel

    return LanguageModel(open_source(path, family), dtype, pooler, fresh, trained, **arguments)


def save(
    model: Any,
    tokenizer: Tokenizer | None,
    path: StrPath,
    format: str = "hf",
    task: Task | None = None,
    approximate: bool = False,
) -> None:
    """Writes a model in a format that other libraries load. The round trip is bit-exact.

    Args:
        model: an encoder, or a pretraining model around one with its heads; or the model of `task`.
        tokenizer: the tokenizer to save in the same folder; None for none. With a task it is the task's.
        path: a folder that does not exist yet, or is empty, or a new file; it appears only when it is complete.
        format: "hf": a Hugging Face directory; "keras_hub": a preset of KerasHub; "tf1": a TensorFlow 1 checkpoint as the original
            authors' code reads it; "garden": a BERT for the TensorFlow Model Garden; "numpy": GPT-1's params_*.npy; "bilm": ELMo's options.json and weights.hdf5;
            "word2vec", "word2vec_binary", "glove": a file of the token table alone; "keras": a file .keras of the Keras model
            alone, which `load_keras` opens; "run": a run directory, which `load` opens and training goes on from. With a task
            "run", "keras", or "hf" or "keras_hub": the class of the task.
        task: the `Task` that the model was made by, `task.model(encoder)`.
        approximate: whether a preset of KerasHub is written although KerasHub's code fixes what this model has otherwise,
            such as the activation of its BERT; how far the outputs are apart is measured and logged.

    Raises:
        ConfigError: a family, a task or a setting that the format cannot express.
        DataError: a part of the model that has no name in the format.
        RunDirectoryError: the folder holds something, or cannot be written.
    """
    if task is not None:
        from bert_tf.training.converting import save_task_model

        save_task_model(task, model, path, format, approximate=approximate)
        return
    if format == "run":
        from bert_tf.training.converting import save_run

        save_run(model, tokenizer, path)
        return
    from bert_tf.checkpoints import write_checkpoint

    write_checkpoint(model, tokenizer, path, format, approximate)
