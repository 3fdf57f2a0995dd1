"""On what the values were computed: floats agree to the bit on the same kind of CPU, threads and versions."""

import importlib.metadata
import os
import platform
import subprocess

#: Of one operation, and of operations side by side.
THREADS = 1
#: What decides which kernels TensorFlow, oneDNN and NumPy choose.
FLAGS = ("sse4_1", "sse4_2", "avx", "avx2", "fma", "f16c", "avx_vnni", "avx512", "amx")
PACKAGES = ("tensorflow", "tensorflow-text", "keras", "numpy", "scipy", "scikit-learn", "tokenizers", "sentencepiece")


def describe(root):
    """What machine.json holds, of the library in the checkout `root`."""
    git = ["git", "-C", str(root)]
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True).stdout.strip()
    return {
        "cpu": _cpu(),
        "threads": THREADS,
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        "environment": {name: os.environ.get(name) for name in ("TF_ENABLE_ONEDNN_OPTS", "KERAS_BACKEND")},
        "python": platform.python_version(),
        "commit": commit,
        "changed": bool(changed),
    }


def difference(old, new):
    """Why floats cannot be asked to agree to the bit, a text; None if they can. The commit is what may differ."""
    found = []
    for key in ("cpu", "threads", "versions", "environment"):
        before, now = old.get(key), new[key]
        if before == now:
            continue
        if not isinstance(before, dict):
            found.append(f"{key} {before}, here {now}")
            continue
        names = [name for name in now if before.get(name) != now[name]]
        found += [f"{key} {name} {_short(before.get(name))}, here {_short(now[name])}" for name in names]
    return "; ".join(found) or None


def _short(value):
    return value if len(str(value)) < 40 else f"{str(value)[:37]}..."


def _cpu():
    """Vendor, family, model and vector units."""
    fields = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                name, _, value = line.partition(":")
                fields.setdefault(name.strip(), value.strip())
    except OSError:
        return {"machine": platform.machine(), "processor": platform.processor()}
    flags = sorted(flag for flag in fields.get("flags", "").split() if flag.startswith(FLAGS))
    names = ("vendor_id", "cpu family", "model")
    return {name: fields.get(name, "") for name in names} | {"flags": " ".join(flags)}
