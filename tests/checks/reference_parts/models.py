"""Every family: loaded weights, outputs of padded and packed rows, logits, gradients, and decoding with a cache."""

import keras
import numpy as np

from bert_tf.generation import DecoderSteps, EncoderDecoderSteps
from bert_tf.models import FAMILIES
from bert_tf.models.families import arguments_of
from reference_parts import library
from reference_parts.model_cases import MODELS, inputs, load

OUTPUTS = ("output_hidden_states", "output_attention_scores")


def missing():
    known = {model.family for model in MODELS.values()}
    yield from (f"family {name}" for name in FAMILIES if name not in known)


def cases(room):
    for name in MODELS:
        yield name, lambda name=name: values(room, name)
    yield "xlnet/memory", lambda: memory(room)
    yield "elmo/state", lambda: state(room)


def values(room, name):
    model = MODELS[name]
    config_class = FAMILIES[model.family].config
    heads = bool(model.objective and model.objective[0] in ("masked_lm", "replaced_token_detection"))
    encoder, _, objective, source = load(room, name, pretraining=heads, **further_outputs(name, config_class))
    whole = objective or encoder
    arrays = {path: np.asarray(variable) for path, variable in library.by_path(whole).items()}
    weights = library.published(source, arrays)
    found = {"weights": {key: library.sha256(weights[key]) for key in sorted(weights)}}
    rows = inputs(room, name, encoder)
    for kind in ("padded", "packed"):
        outputs = encoder(rows[kind])
        found[kind] = library.numpy(outputs)
        if hasattr(encoder, "output_logits"):
            found[kind]["logits"] = np.asarray(encoder.output_logits(outputs["sequence_output"]))
    if hasattr(encoder, "outputs_at"):
        found["outputs_at"] = library.numpy(encoder.outputs_at(rows["padded"], rows["mask_positions"]))
    masked = heads and model.objective[0] == "masked_lm"
    features = rows["padded"] | {"mask_positions": rows["mask_positions"]}
    if masked:
        found["heads"] = library.numpy(objective({key: keras.ops.convert_to_tensor(x) for key, x in features.items()}))

    def computed():
        if masked:
            outputs = objective({key: keras.ops.convert_to_tensor(x) for key, x in features.items()})
            return [outputs[key] for key in sorted(outputs)]
        outputs = encoder(rows["padded"])
        result = [outputs[key] for key in ("sequence_output", "pooled_output") if key in outputs]
        if hasattr(encoder, "output_logits"):
            result.append(encoder.output_logits(outputs["sequence_output"]))
        return result

    _, total, gradients = library.gradients_of(whole, computed)
    found["sum"] = np.asarray(total)
    found["gradients"] = library.published(source, gradients)
    if encoder.structure == "decoder":
        found["decoded"] = decoded(DecoderSteps(encoder, rows["prompts"], rows["prompts_mask"], 4), rows["new"])
    elif encoder.structure == "encoder_decoder":
        steps = EncoderDecoderSteps(encoder, rows["prompts"], rows["sources_mask"], 4, start_id=0)
        found["decoded"] = decoded(steps, rows["new"])
    return found


def further_outputs(name, config_class):
    """The further outputs that a model can be asked for."""
    model = MODELS[name]
    sizes = {"vocabulary_size": 300} | model.config if model.family != "elmo" else model.config
    known = arguments_of(library.settings(config_class, sizes))
    narrow = model.config.get("embedding_size", 0) <= model.config["hidden_size"]
    wanted = [output for output in OUTPUTS if output in known]
    if model.family == "lstm_lm":
        wanted = ["output_hidden_states"] if narrow else []
    return dict.fromkeys(wanted, True)


def decoded(steps, new):
    """The logits after the prompt and after each given new token, with a cache."""
    logits, cache = steps.first()
    found = [np.asarray(logits)]
    for index in range(new.shape[1] - 1):
        logits, cache = steps.next(keras.ops.convert_to_tensor(new[:, index]), cache, index)
        found.append(np.asarray(logits))
    return np.stack(found)


def memory(room):
    """XLNet's memory from row to row."""
    encoder, *_ = load(room, "xlnet", memory_length=10, reuse_length=6)
    rows, found, kept = inputs(room, "xlnet", encoder)["padded"], {}, {}
    for index in range(3):
        outputs = encoder({key: np.roll(array, index, axis=0) for key, array in rows.items()} | kept)
        kept = {"memory": outputs["memory"]}
        found[f"row_{index}"] = library.numpy(outputs)
    return found


def state(room):
    """The state of ELMo's LSTMs from row to row."""
    encoder, *_ = load(room, "elmo")
    rows, found, kept = inputs(room, "elmo", encoder)["padded"], {}, None
    for index in range(2):
        layers, kept = encoder.outputs_of_layers(rows, kept)
        found[f"row_{index}"] = library.numpy({"layers": layers, "state": keras.tree.flatten(kept)})
    return found
