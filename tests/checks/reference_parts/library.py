"""What several parts ask of the library. A rebuilt API is met here first."""

import dataclasses
import hashlib
import zlib

import numpy as np

#: Path of a variable, or the begin of it, now -> in the reference values. A rebuild that renames variables names them
#: here; in the published names of weights nothing changes.
RENAMES = {}
#: Name of a tokenizer -> (its trainer, arguments).
TRAINED = {
    "wordpiece": ("wordpiece", {"size": 700}),
    "wordpiece_cased": ("wordpiece", {"size": 800, "cased": True, "special_tokens": ("<extra_id_1>", "<extra_id_0>")}),
    "wordpiece_alphabet": ("wordpiece", {"size": 400, "limit_alphabet": 40}),
    "words": ("words", {"size": 600}),
    "words_cased": ("words", {"size": 500, "cased": True}),
    "unigram": ("unigram", {"size": 600}),
    "unigram_cased": ("unigram", {"size": 600, "cased": True}),
    "unigram_xlnet": ("unigram_xlnet", {"size": 600}),
    "unigram_xlnet_cased": ("unigram_xlnet", {"size": 600, "cased": True}),
    "unigram_t5": ("unigram_t5", {"size": 600}),
    "byte_level_bpe": ("byte_level_bpe", {"size": 700, "special_tokens": ("<extra_id_0>",)}),
    "byte_level_bpe_gpt2": ("byte_level_bpe_gpt2", {"size": 600}),
    "bpe": ("bpe", {"size": 700, "limit_alphabet": 200}),
    "byte": ("byte", {}),
    "byte_extra_ids": ("byte_extra_ids", {}),
    "characters": ("characters", {}),
}


def train(name, documents):
    """The tokenizer of a name of `TRAINED`, trained on these texts."""
    from bert_tf.tokenizers.kinds import trainers

    trainer, arguments = TRAINED[name]
    arguments = dict(arguments)
    return trainers()[trainer].train(documents, arguments.pop("size", 0), **arguments)


def settings(cls, given):
    """The settings of a class from a dict of them."""
    from bert_tf.config import build

    return build(cls, given)


def fields(cls):
    return {field.name for field in dataclasses.fields(cls)}


def generator(name):
    """Random numbers that depend on a name alone."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def draw(name, shape):
    """Weights of a variable: so wide that what must differ differs, and so narrow that nothing saturates."""
    values = generator(name).normal(size=shape).astype("float32")
    if "gamma" in name or name.endswith("scale"):
        return 1 + 0.2 * values
    if len(shape) < 2:
        return 0.2 * values
    if "embeddings" in name or "table" in name:
        return 0.5 * values
    return values / np.float32(np.sqrt(np.prod(shape[:-1])))


def stored_name(path):
    """The name in the reference values of the variable that has this path now."""
    for now, before in RENAMES.items():
        if path == now or path.startswith(f"{now}/"):
            return before + path.removeprefix(now)
    return path


def sha256(array):
    return hashlib.sha256(np.ascontiguousarray(array, "<f4").tobytes()).hexdigest()


def by_path(model):
    """The variables of a model by path, without the states of random generators."""
    variables = model if isinstance(model, list) else model.weights
    return {variable.path: variable for variable in variables if "float" in str(variable.dtype)}


def gradients_of(model, compute):
    """What `compute()` returns, the sum of the numbers in it with fixed factors, and path -> its gradient.

    The factors are of another sign and size for each number, so that no normalization keeps the sum constant.
    """
    import tensorflow as tf

    variables = list(by_path(model.trainable_variables).values())
    with tf.GradientTape() as tape:
        outputs = compute()
        flat = [tf.cast(x, tf.float32) for x in tf.nest.flatten(outputs)]
        total = tf.add_n([tf.reduce_sum(x * _factors(x.shape, number)) for number, x in enumerate(flat)])
    return outputs, total, dict(zip([v.path for v in variables], _gradients(tape, total, variables)))


def loss_and_gradients(model, features):
    """Sums and metrics of a batch without dropout, and path -> gradient of the loss."""
    import tensorflow as tf

    variables = list(by_path(model.trainable_variables).values())
    with tf.GradientTape() as tape:
        sums, metrics = model.loss_sums(features, training=True)
        weights = model.loss_weights(features)
        coefficients = model.loss_coefficients
        total = tf.add_n([coefficients.get(name, 1) * value / weights[name] for name, value in sums.items()])
    found = {
        "loss": total,
        "sums": sums,
        "weights": weights,
        "metrics": {name: [float(x) for x in pair] for name, pair in metrics.items()},
    }
    return found, dict(zip([v.path for v in variables], _gradients(tape, total, variables)))


def _gradients(tape, total, variables):
    import tensorflow as tf

    found = tape.gradient(total, [v.value for v in variables])
    return [
        np.zeros(v.shape, "float32") if g is None else tf.convert_to_tensor(g).numpy() for v, g in zip(variables, found)
    ]


def _factors(shape, number):
    return np.cos(np.arange(int(np.prod(shape)), dtype="float32") * 0.7 + number).reshape(shape)


def named(arrays):
    """Arrays by the paths of variables under the names of the reference values."""
    return {stored_name(path): array for path, array in arrays.items()}


def published(source, arrays):
    """Arrays by the paths of variables under the names that the format of `source` has for them; of no source, `named`.

    What the format has no name for, such as a head, keeps its path.
    """
    from bert_tf.models.electra.checkpoints import split_pair
    from bert_tf.models.families import FAMILIES
    from bert_tf.models.weights import export_weights

    if source is None:
        return named(arrays)
    own, generator = split_pair(arrays)
    maps = FAMILIES[source.family].maps(source.format)
    names = maps.weights if maps else source.weight_map  # of one model also where two lie side by side
    known = {path: array for path, array in own.items() if names.source(path)}
    found = export_weights(known, names) | named({path: own[path] for path in own if path not in known})
    further = {path: array for path, array in generator.items() if path not in own}
    return (
        found | {f"generator/{name}": array for name, array in published(source, further).items()} if further else found
    )


def numpy(tensors):
    """A nested structure of tensors as arrays."""
    if isinstance(tensors, dict):
        return {name: numpy(value) for name, value in tensors.items()}
    if isinstance(tensors, (list, tuple)):
        return {str(number): numpy(value) for number, value in enumerate(tensors)}
    return np.asarray(tensors)


def new_encoder(family, config, **arguments):
    """A model of a family with random weights and without dropout."""
    from bert_tf.models import build_backbone, build_config
    from bert_tf.models.families import FAMILIES
    from bert_tf.models.model_config import DROPOUT_RATES

    rates = dict.fromkeys(fields(FAMILIES[family].config) & set(DROPOUT_RATES), 0.0)
    return build_backbone(build_config({"family": family} | rates | config), dtype="float32", **arguments)


def objective_around(encoder, name, given):
    """The pretraining model of an objective around an encoder."""
    from bert_tf.objectives import OBJECTIVES

    return OBJECTIVES[name].model_class.from_settings(
        encoder, settings(OBJECTIVES[name].config, {"name": name} | given)
    )


def load(path, pretraining=False, **arguments):
    """A published folder: (encoder, tokenizer, objective or None, the opened source, which names its weights)."""
    import bert_tf
    from bert_tf.checkpoints import open_source

    loaded = bert_tf.load(path, dtype="float32", **arguments)
    objective = loaded.objective if pretraining else None
    encoder = loaded.backbone if objective else without_dropout(loaded.backbone)
    return encoder, loaded.tokenizer, objective, open_source(path, arguments.get("family"))


def without_dropout(encoder):
    """The same model with rates of 0, for formats that do not say them (bilm)."""
    from bert_tf.config import to_dict
    from bert_tf.models.model_config import DROPOUT_RATES

    rates = {name: 0.0 for name in DROPOUT_RATES if getattr(encoder.config, name, 0)}
    if not rates:
        return encoder
    config = to_dict(dataclasses.replace(encoder.config, **rates))
    copy, known = type(encoder).from_config(encoder.get_config() | {"config": config}), by_path(encoder)
    for path, variable in by_path(copy).items():
        variable.assign(known[path])
    return copy
