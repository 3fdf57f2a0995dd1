"""Values of a case as a file, and how two of them are compared.

A case computes a nested dict. Its leaves are arrays, numbers, texts and lists of these; each gets a name, its path
("padded/hidden_states/1"). Arrays and numbers are in CASE.npz, all else in CASE.json, in the order in which they were
computed: so the first difference is the earliest one.
"""

import json

import numpy as np

#: On another kind of CPU, with other threads or versions: |new - old| <= TOLERANCE * (1 + max |old|) of an array.
TOLERANCE = 1e-5


def flatten(value, name=""):
    """Nested dicts, lists and arrays -> dict of path -> array, or what JSON holds."""
    if isinstance(value, dict):
        pairs = [(f"{name}/{key}" if name else str(key), inner) for key, inner in value.items()]
        return {path: leaf for key, inner in pairs for path, leaf in flatten(inner, key).items()}
    if isinstance(value, (list, tuple)):
        kinds = {type(leaf) for leaf in _leaves(value)}
        if kinds <= {int, str, bool, type(None)}:
            return {name: json.loads(json.dumps(value))}
        if kinds == {float} and all(isinstance(inner, float) for inner in value):
            return {name: np.array(value)}
        return flatten({str(number): inner for number, inner in enumerate(value)}, name)
    if value is None or isinstance(value, (str, bool)):
        return {name: value}
    if isinstance(value, bytes):
        return {name: value.decode("utf-8", "backslashreplace")}
    array = np.asarray(value)
    if array.dtype.kind in "OSU":  # the texts of a served answer
        return {name: np.vectorize(_text, otypes=[object])(array).tolist() if array.size else []}
    if array.dtype.name == "bfloat16":
        array = array.astype("float32")
    return {name: array}


def _leaves(value):
    if isinstance(value, (list, tuple)):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value


def _text(value):
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def save(folder, case, values):
    """Writes the flat values of a case; `case` may have slashes."""
    path = folder / case
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    np.savez_compressed(path.parent / f"{path.name}.npz", **{_key(i): a for i, a in enumerate(arrays.values())})
    numbers = {name: _key(number) for number, name in enumerate(arrays)}
    content = {name: {"array": numbers[name]} if name in numbers else {"json": values[name]} for name in values}
    (path.parent / f"{path.name}.json").write_text(json.dumps(content, ensure_ascii=False, indent=0) + "\n", "utf-8")


def load(folder, case):
    """The values that `save` wrote."""
    path = folder / case
    content = json.loads((path.parent / f"{path.name}.json").read_text("utf-8"))
    with np.load(path.parent / f"{path.name}.npz") as arrays:
        return {name: arrays[leaf["array"]] if "array" in leaf else leaf["json"] for name, leaf in content.items()}


def _key(number):
    return f"a{number}"


def cases_in(folder):
    """The names of the cases in a folder, sorted."""
    return sorted(str(path.relative_to(folder))[: -len(".json")] for path in folder.rglob("*.json"))


def differences(old, new, exact):
    """Yields a line for each value that is not the same: its name, and the first place where it differs.

    Args:
        old, new: the values of a case, as of `flatten`.
        exact: whether floats must have the same bits; else they are compared to `TOLERANCE`.
    """
    for name in [*old, *(name for name in new if name not in old)]:
        if name not in new:
            yield f"{name}: is no longer computed"
        elif name not in old:
            yield f"{name}: is new"
        elif problem := difference(old[name], new[name], exact):
            yield f"{name}{problem}"


def difference(old, new, exact):
    """What differs between two values, a text; None for nothing."""
    if isinstance(old, np.ndarray) != isinstance(new, np.ndarray):
        return f": {_short(old)} is now {_short(new)}"
    if not isinstance(old, np.ndarray):
        return _json_difference(old, new)
    if old.dtype != new.dtype or old.shape != new.shape:
        return f": {old.dtype} {list(old.shape)} is now {new.dtype} {list(new.shape)}"
    with np.errstate(invalid="ignore", over="ignore"):
        if old.dtype.kind != "f":
            wrong, size = old != new, np.abs(np.subtract(new, old, dtype="float64")) if old.dtype.kind != "b" else None
        else:
            size = np.abs(new.astype("float64") - old.astype("float64"))
            bits = old.dtype.str.replace("f", "u")
            wrong = np.ascontiguousarray(old).view(bits) != np.ascontiguousarray(new).view(bits)
            if not exact:
                largest = np.abs(old[np.isfinite(old)]).max(initial=0)
                wrong &= ~(size <= TOLERANCE * (1 + largest))
    if not wrong.any():
        return None
    place = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
    at = f"[{', '.join(map(str, place))}]" if old.ndim else ""
    first = [np.atleast_1d(array)[place].item() for array in (old, new)]
    largest = "" if size is None else f"; largest difference {np.nanmax(size) if size.size else 0:.3g}"
    return f"{at}: {first[0]!r} is now {first[1]!r}{largest}; {int(wrong.sum())} of {old.size} differ"


def _json_difference(old, new, place=()):
    if isinstance(old, list) and isinstance(new, list):
        for number, (a, b) in enumerate(zip(old, new)):
            if problem := _json_difference(a, b, (*place, number)):
                return problem
        if len(old) != len(new):
            return f"{_at(place)}: has {len(old)} entries, now {len(new)}"
        return None
    if type(old) is type(new) and old == new:
        return None
    return f"{_at(place)}: {_short(old)} is now {_short(new)}"


def _at(place):
    return "".join(f"[{number}]" for number in place)


def _short(value):
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
