"""Moving weights between a model and another library's names for them, strictly.

A checkpoint that fits only in part is the classic silent failure: the other weights stay random and the model
trains anyway, badly. Here every array of the source must be used and every variable of the model filled, or
nothing is assigned and the error lists all problems. The caller says what may be left out or stay random.
"""

import dataclasses
import fnmatch
import functools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from bert_tf.errors import DataError
from bert_tf.types import Arrays, Model, Names, Settings

#: What the training of the TensorFlow 1 originals left in their checkpoints beside the weights.
TF1_IGNORED = ("global_step", "beta1_power", "beta2_power", "*/adam_m", "*/adam_v", "*/Adam", "*/Adam_1",
               "*/lamb_m", "*/lamb_v")  # fmt: skip


#: Layers in one stacked array; the settings allow no more.
MAX_LAYERS = 1_000


@dataclasses.dataclass(frozen=True)
class WeightMap:
    """How one family's published checkpoints name the variables of our model.

    `{layer}` in a name stands for a number, `{layer:03}` for one of three digits; so does any other word in braces.

    Args:
        arrays: source name -> variable path, for arrays taken as they are.
        dense: source prefix -> layer path, for PyTorch's linear layers: `<prefix>.weight` [out, in] is the
            transpose of `<path>/kernel`, `<prefix>.bias` is `<path>/bias`.
        norms: source prefix -> layer path, for PyTorch's normalizations: `<prefix>.weight` is `<path>/gamma`,
            `<prefix>.bias` is `<path>/beta`.
        kernels: source prefix -> layer path, for TensorFlow's dense layers: `<prefix>/kernel` [in, out] and
            `<prefix>/bias` are those of the layer.
        transposed: source name -> variable path, for matrices that are transposed here.
        stacked: source name -> variable path with `{layer}` in it: one array for all layers, its
            first axis the layer's number.
        joined: source name -> variable paths: one array that holds several, side by side along its last axis,
            such as the kernels [H, 3 H] of queries, keys and values.
        convolutions: source names of kernels [1, in, out], convolutions of width 1 (GPT's); `*` stands for anything.
            The first axis is left out here.
        copies: source name -> source name of which it is a tied copy; it must be equal to it, and
            stands for it where the source holds only one of the two. Where the map also has a variable for the
            copy, and the model has that variable, the model is not tied: the array fills it.
        ignored: source names that hold no weight, such as "global_step"; `*` stands for anything.
        spellings: old part of a name -> new part.
        prefix: what the encoder's names begin with, and may be missing: checkpoints of the bare
            encoder leave it out.

    Example:
        weight_map = WeightMap(
            arrays={"bert.embeddings.word_embeddings.weight": "embeddings/token_embeddings"},
            dense={"bert.encoder.layer.{layer}.output.dense": "transformer_layer_{layer}/output"},
            prefix="bert.",
        )
        weight_map.target("bert.encoder.layer.3.output.dense.weight")  # ("transformer_layer_3/output/kernel", True)
    """

    arrays: dict[str, str]
    dense: dict[str, str] = dataclasses.field(default_factory=dict)
    norms: dict[str, str] = dataclasses.field(default_factory=dict)
    kernels: dict[str, str] = dataclasses.field(default_factory=dict)
    transposed: dict[str, str] = dataclasses.field(default_factory=dict)
    stacked: dict[str, str] = dataclasses.field(default_factory=dict)
    joined: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    convolutions: tuple[str, ...] = ()
    copies: dict[str, str] = dataclasses.field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    spellings: dict[str, str] = dataclasses.field(default_factory=dict)
    prefix: str = ""

    def entries(self) -> Iterator[tuple[str, str, bool]]:
        """Every (source name, variable path, whether transposed), with `{layer}` left in.

        Layer 3 of a stacked array is called `<name>[3]`, the third part of a joined one `<name>[2]`.
        """
        yield from ((source, path, False) for source, path in self.arrays.items())
        yield from ((source, path, True) for source, path in self.transposed.items())
        yield from ((f"{source}[{{layer}}]", path, False) for source, path in self.stacked.items())
        for source, paths in self.joined.items():
            yield from ((f"{source}[{i}]", path, False) for i, path in enumerate(paths))
        for source, path in self.dense.items():
            yield f"{source}.weight", f"{path}/kernel", True
            yield f"{source}.bias", f"{path}/bias", False
        for source, path in self.norms.items():
            yield f"{source}.weight", f"{path}/gamma", False
            yield f"{source}.bias", f"{path}/beta", False
        for source, path in self.kernels.items():
            yield f"{source}/kernel", f"{path}/kernel", False
            yield f"{source}/bias", f"{path}/bias", False

    def target(self, source: str) -> tuple[str, bool] | None:
        """(variable path, whether transposed) of a source name, or None if the map lacks it."""
        return _renamed(source, self.entries())

    def source(self, path: str) -> tuple[str, bool] | None:
        """(source name, whether transposed) of a variable path, or None if the map lacks it."""
        return _renamed(path, ((pattern, name, transposed) for name, pattern, transposed in self.entries()))

    def parts(self, name: str, shape: tuple[int, ...]) -> list[tuple[str, Any, tuple[int, ...]]]:
        """What an array of the source consists of: list of (name, index into the array, shape).

        That is all layers of a stacked array, all parts of a joined one, and any other itself.
        """
        if name in self.stacked and shape and 0 < shape[0] <= MAX_LAYERS and all(shape):
            return [(f"{name}[{i}]", i, shape[1:]) for i in range(shape[0])]
        first = (0,) if shape[:1] == (1,) and self.is_convolution(name) else ()
        shape = shape[len(first) :]
        for pattern, paths in self.joined.items():
            matches = any(_match(pattern, spelled) is not None for spelled in (name, self.prefix + name))
            if matches and shape and shape[-1] % len(paths) == 0:
                size = shape[-1] // len(paths)
                slices = (slice(i * size, (i + 1) * size) for i in range(len(paths)))
                return [(f"{name}[{i}]", (*first, ..., part), (*shape[:-1], size)) for i, part in enumerate(slices)]
        return [(name, (*first, ...), shape)]

    def is_convolution(self, name: str) -> bool:
        """Whether the array of that name is a kernel with a first axis of 1."""
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.convolutions)

    def canonical(self, name: str) -> str:
        """A source name as the map spells it: the newer spelling, with the encoder's prefix."""
        for old, new in self.spellings.items():
            name = name.replace(old, new)
        for spelled in (name, self.prefix + name):
            if self.target(spelled) or spelled in self.copies or self.ignores(spelled):
                return spelled
        return name

    def knows(self, name: str) -> bool:
        """Whether the map has a source name, in any of its spellings."""
        name = self.canonical(name)
        return bool(self.target(name)) or name in self.copies or self.ignores(name)

    def ignores(self, name: str) -> bool:
        """Whether the array of that name holds no weight."""
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.ignored)

    def wants(self, path: str, paths: Names) -> bool:
        """Whether a model with variables at `paths` has the part to which `path` belongs.

        `transformer_layer_9/...` belongs to a model with fewer layers: it is one layer too many,
        not another part.
        """
        patterns = [pattern for _, pattern, _ in self.entries() if _match(pattern, path) is not None]
        return any(_match(pattern, other) is not None for pattern in patterns for other in paths)


def norm_arrays(norms: dict[str, str], scale: str = "gamma", offset: str = "beta") -> dict[str, str]:
    """`arrays` of a `WeightMap` for normalizations of TensorFlow: source prefix -> layer path, as those of both arrays."""
    arrays = {f"{name}/{scale}": f"{path}/gamma" for name, path in norms.items()}
    return arrays | {f"{name}/{offset}": f"{path}/beta" for name, path in norms.items()}


def keras_arrays(dense: dict[str, str], norms: dict[str, str]) -> dict[str, str]:
    """`arrays` of a `WeightMap` for layers of Keras 3: path of a dense layer or normalization in its file -> layer path."""
    kernels = {f"{name}/vars/0": f"{path}/kernel" for name, path in dense.items()}
    biases = {f"{name}/vars/1": f"{path}/bias" for name, path in dense.items()}
    return kernels | biases | norm_arrays(norms, "vars/0", "vars/1")


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """What became of a source's arrays and a model's variables; each a sorted tuple of names.

    Attributes:
        ignored: arrays that hold no weight, or repeat another.
        unused: arrays of parts that the model does not have.
        fresh: randomly initialized variables, which the source does not have and the caller allowed.
    """

    ignored: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()

    def joined(self, other: "LoadReport") -> "LoadReport":
        """The report of two models that were filled from one source."""
        return LoadReport(
            ignored=tuple(sorted({*self.ignored, *other.ignored})),
            unused=tuple(sorted({*self.unused} & {*other.unused})),
            fresh=tuple(sorted({*self.fresh, *other.fresh})),
        )


def load_weights(
    model: Any, arrays: Arrays, weight_map: WeightMap, partly: bool = False, other_heads: Names = (), fresh: Names = ()
) -> LoadReport:
    """Fills every variable of `model` from another library's arrays.

    Args:
        model: a built model, or a dict from variable path to variable.
        arrays: mapping from source name to a NumPy array: a dict, or `NamedArrays` of a file, each of which is read twice.
        weight_map: the family's `WeightMap`.
        partly: whether the source may hold parts that the model lacks, such as the heads beside
            the encoder.
        other_heads: source names that may be left unused, whether the map knows them or not, such as "classifier.*".
        fresh: parts of the model (the first word of a path, such as "pooler") that keep their
            values where the source has nothing of them.

    Returns:
        A `LoadReport`.

    Raises:
        DataError: an array that no variable takes, a variable that no array fills, a shape that
            differs, or a tied copy that is not equal. Lists all of them; nothing was assigned.
    """
    from bert_tf.backend import assign  # not earlier: maps are read before Keras

    variables = by_path(model)
    pieces = _pieces(arrays, weight_map)
    sources = {weight_map.canonical(name): name for name in pieces}
    for copy, original in weight_map.copies.items():
        if copy in sources and original not in sources:
            sources[original] = sources.pop(copy)
    problems, fillings, ignored, unused = [], {}, [], []
    if len(sources) != len(pieces):
        twice = sorted(set(pieces) - set(sources.values()))
        problems.append(f"{twice} are there under two names")
    for source, given_name in sources.items():
        path, transposed = weight_map.target(source) or (None, False)
        if weight_map.ignores(source):
            ignored.append(given_name)
        elif source in weight_map.copies and path not in variables:
            original = weight_map.copies[source]
            if np.array_equal(_whole(pieces[given_name]), _whole(pieces[sources[original]])):
                ignored.append(given_name)
            elif partly:
                unused.append(given_name)
            else:
                problems.append(f"'{given_name}' is not equal to '{original}', to which it is tied here")
        elif path in variables:
            blocks = fillings[path] = (
                functools.partial(_transposed, pieces[given_name]) if transposed else pieces[given_name]
            )
            problems += _problems_of(given_name, blocks(), path, variables[path])
        elif any(fnmatch.fnmatchcase(source, head) for head in other_heads):
            unused.append(given_name)
        elif path is not None and partly and not weight_map.wants(path, variables):
            unused.append(given_name)
        else:
            problems.append(f"'{given_name}' has no place in this model")
    filled_parts = {part_of(path) for path in fillings}
    unfilled = [path for path in variables if path not in fillings]
    fresh_paths = [path for path in unfilled if part_of(path) in fresh and part_of(path) not in filled_parts]
    for path in unfilled:
        if path not in fresh_paths:
            name = weight_map.source(path)
            problems.append(f"nothing fills '{path}'" + (f" ('{name[0]}' there)" if name else ""))
    if problems:
        raise DataError("the weights do not fit the model:\n  " + "\n  ".join(sorted(problems)))
    for path, blocks in fillings.items():  # read again, so that never more than one block is held beside the model
        assign(variables[path], blocks())
    return LoadReport(tuple(sorted(ignored)), tuple(sorted(unused)), tuple(sorted(fresh_paths)))


def _whole(blocks):
    parts = [np.asarray(block) for block in blocks()]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _transposed(blocks):
    array = _whole(blocks)
    yield from np.array_split(array.T, 1 + array.size // (1 << 22)) if array.ndim == 2 else [array.T]


def _problems_of(name, blocks, path, variable):
    shapes, dtypes, finite = [], set(), True
    for block in map(np.asarray, blocks):
        shapes.append(block.shape)
        dtypes.add(block.dtype)
        finite = finite and np.issubdtype(block.dtype, np.floating) and bool(np.isfinite(block).all())
    shape = shapes[0] if len(shapes) == 1 else (sum(shape[0] for shape in shapes), *shapes[0][1:])
    if not all(np.issubdtype(dtype, np.floating) for dtype in dtypes):
        yield f"'{name}' holds {dtypes.pop()} where weights, floating-point numbers, must be"
    elif not finite:
        yield f"'{name}' holds NaN or infinity; no model works with it"
    if shape != tuple(variable.shape):
        yield f"'{name}' has shape {shape}, '{path}' has {tuple(variable.shape)}"


def export_weights(model: Any, weight_map: WeightMap) -> Settings:
    """The model's variables under another library's names, without tied copies: the inverse of `load_weights`.

    Returns:
        dict from source name to a NumPy array.

    Raises:
        DataError: a variable that the map does not know.
    """
    result: Settings = {}
    for path, variable in by_path(model).items():
        name, transposed = weight_map.source(path) or (None, False)
        if name is None:
            raise DataError(
                f"this format has no name for '{path}'; write the encoder without its heads, or give bert_tf.save the task of a "
                "fine-tuned model"
            )
        value = np.asarray(variable)
        result[name] = value.T if transposed else value
    for name in weight_map.stacked:
        layers = [result.pop(f"{name}[{i}]") for i in range(len(result)) if f"{name}[{i}]" in result]
        if layers:
            result[name] = np.stack(layers)
    for pattern, paths in weight_map.joined.items():
        first = [name for name in result if _match(f"{pattern}[0]", name) is not None]
        for name in (name.removesuffix("[0]") for name in first):
            result[name] = np.concatenate([result.pop(f"{name}[{i}]") for i in range(len(paths))], axis=-1)
    return {name: value[None] if weight_map.is_convolution(name) else value for name, value in result.items()}


def by_path(model: Any) -> Settings:
    """The variables of a model by path; a dict of them as it is."""
    return model if isinstance(model, dict) else {v.path: v for v in model.weights}


def with_output(encoder: Model, option: str) -> Model:
    """The same model with a further output: `encoder` itself if it has it, else a copy with the same weights.

    Args:
        encoder: of a model family.
        option: an argument of its class, such as "output_hidden_states"; None is returned where there is no such one.
    """
    settings = encoder.get_config()
    if option not in settings:
        return None
    if settings[option]:
        return encoder
    extended, variables = type(encoder).from_config(settings | {option: True}), by_path(encoder)
    for path, variable in by_path(extended).items():
        variable.assign(variables[path])
    return extended


def part_of(path: str) -> str:
    """The part of a model that a variable belongs to, such as "pooler": the first word of its path."""
    return path.split("/", 1)[0]


def _pieces(arrays, weight_map):
    """Name -> function that reads it block by block, each stacked or joined array as several."""
    if not (weight_map.stacked or weight_map.joined or weight_map.convolutions):
        return {name: functools.partial(_blocks, arrays, name) for name in arrays}
    whole_array = functools.lru_cache(maxsize=1)(arrays.__getitem__)  # its parts are asked for one after the other
    shapes = arrays.shapes if hasattr(arrays, "shapes") else {name: np.shape(arrays[name]) for name in arrays}
    result: Settings = {}
    for name in arrays:
        parts = weight_map.parts(name, tuple(shapes[name]))
        if parts == [(name, (...,), tuple(shapes[name]))]:
            result[name] = functools.partial(_blocks, arrays, name)
            continue
        for part, index, _ in parts:
            result[part] = lambda name=name, index=index: [np.asarray(whole_array(name))[index]]
    return result


def _blocks(arrays, name):
    return arrays.blocks(name) if hasattr(arrays, "blocks") else [arrays[name]]


def _renamed(name, entries):
    for pattern, other, transposed in entries:
        if (numbers := _match(pattern, name)) is not None:
            return other.format_map(numbers), transposed
    return None


def _match(pattern, name):
    """The numbers that stand for the words in braces, a dict, or None if the name does not match."""
    match = _compiled(pattern).fullmatch(name)
    return None if match is None else {word: int(digits) for word, digits in match.groupdict().items()}


@functools.cache
def _compiled(pattern):
    return re.compile(re.sub(r"\\\{(\w+)(?::\d+)?\\\}", r"(?P<\1>\\d+)", re.escape(pattern)))
