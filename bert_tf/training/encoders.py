"""A trained encoder taken out of a run directory."""

from bert_tf.errors import RunDirectoryError
from bert_tf.models.building import build_config, build_encoder
from bert_tf.training.checkpoints import MODEL, assign, tensor_names
from bert_tf.training.run_directory import RunDirectory


def load_encoder(path, trained=True, pooler=True, dropout=None, **outputs):
    """The encoder and tokenizer of a run.

    Args:
        path: a run directory, of pretraining or fine-tuning.
        trained: False leaves the fresh weights: the same model without its training.
        pooler: whether the encoder has a pooler. One that the run did not train (pretraining
            without sentence pairs) starts fresh.
        dropout: the encoder's dropout rates, on attention too; None leaves those of the run.
        outputs: further arguments of the encoder, such as `output_hidden_states`.

    Returns:
        A pair (encoder, tokenizer).

    Raises:
        RunDirectoryError: no run, or no whole checkpoint in it.
        DataError: the checkpoint does not fit the model.
    """
    run = RunDirectory.open(path)
    model = run.config()["model"]
    if dropout is not None:
        model |= {"dropout": dropout, "attention_dropout": dropout}
    encoder = build_encoder(build_config(model), pooler=pooler, **outputs)
    if trained:
        file = weights_of(run)
        known = tensor_names(file)
        wanted = [v for v in encoder.variables if v.path in known or not v.path.startswith("pooler/")]
        assign(wanted, file, others_allowed=True)
    return encoder, run.tokenizer()


def weights_of(run):
    """The model file of the newest whole checkpoint.

    Raises:
        RunDirectoryError: there is none.
    """
    found = run.checkpoints.latest()
    if found is None:
        raise RunDirectoryError(f"{run.path} holds no whole checkpoint yet; run its training command again")
    return found[0] / MODEL
