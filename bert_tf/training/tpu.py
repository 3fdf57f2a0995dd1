"""Checks of machine, settings and data before the first step on a TPU; each error says how to fix it.

Without them TensorFlow says "No OpKernel was registered to support Op 'ConfigureDistributedTPU'", or
compiles for minutes and then fails. The checks take facts as arguments, so that they can be tested
without a TPU.
"""

import contextlib
import dataclasses
import glob
import importlib.metadata
import importlib.util

import tensorflow as tf
from absl import logging

from bert_tf.errors import ConfigError

#: The installed packages that bring a module `tensorflow`; those that come later overwrite its files.
_BUILDS = ("tensorflow", "tensorflow-cpu", "tensorflow-tpu", "tf-nightly", "tf-nightly-tpu")
_FIX_BUILD = (
    "pip uninstall -y tensorflow tensorflow-cpu && pip install --force-reinstall --no-deps 'tensorflow-tpu==2.20.*' "
    "&& pip install 'libtpu>=0.0.14,<0.1', then restart Python"
)


@dataclasses.dataclass(frozen=True)
class Machine:
    """The TPU hardware and software of a machine.

    Attributes:
        devices: TPU cores that TensorFlow lists.
        chips: whether there are device files of TPU chips.
        builds: names of the installed TensorFlow packages.
        libtpu: whether the driver library is installed.
    """

    devices: int
    chips: bool
    builds: tuple
    libtpu: bool

    @classmethod
    def here(cls):
        return cls(
            devices=len(tf.config.list_physical_devices("TPU")),
            # v2 to v4 have /dev/accel0, ...; v5e and later /dev/vfio/0, ..., which other devices that are
            # passed through to virtual machines have, too.
            chips=bool(glob.glob("/dev/accel[0-9]*") or (glob.glob("/dev/vfio/[0-9]*") and _made_by_google())),
            builds=tuple(name for name in _BUILDS if _installed(name)),
            libtpu=importlib.util.find_spec("libtpu") is not None,
        )


def check_machine(machine):
    """Raises if this machine cannot use a TPU.

    Raises:
        ConfigError: names what is missing, and the commands that install it.
    """
    if machine.devices:
        return
    if not machine.chips:
        raise ConfigError(
            "this machine has no TPU (neither /dev/accel* nor /dev/vfio/* exists; a container sees them with --privileged "
            "only); start a TPU VM or a notebook with a TPU, or choose another train.strategy"
        )
    if not any(name.endswith("-tpu") for name in machine.builds):
        raise ConfigError(f"this machine has a TPU, but its TensorFlow was built without TPU support; {_FIX_BUILD}")
    others = [name for name in machine.builds if not name.endswith("-tpu")]
    if others:
        raise ConfigError(
            f"{others[0]} is installed over tensorflow-tpu and has replaced its files by those without TPU support; "
            f"{_FIX_BUILD}"
        )
    if not machine.libtpu:
        raise ConfigError("tensorflow-tpu needs the package libtpu, which is missing; pip install 'libtpu>=0.0.14,<0.1'")
    # Everything is installed, but TensorFlow sees no TPU: the error of the initialization says more.


def warn_of_unused(machine):
    """Warns about a TPU that TensorFlow does not see, when the strategy is "auto"."""
    if machine.chips and not machine.devices:
        try:
            check_machine(machine)
        except ConfigError as error:
            logging.warning("training on the CPU: %s", error)


def explain(error):
    """The ConfigError for a TPU whose initialization failed with `error`."""
    return ConfigError(
        "the TPU could not be initialized; only one process can use it (end the others, restart the notebook's "
        "runtime), and libtpu must be one that this tensorflow-tpu was built for (pip install --force-reinstall "
        f"--no-deps tensorflow-tpu and libtpu as its metadata asks). TensorFlow says: {error}"
    )


def check_training(replicas, batch_size, accumulation_steps=1, precision="float32"):
    """Rejects settings that a TPU of `replicas` cores cannot train with.

    Args:
        replicas: number of cores.
        batch_size: examples of an update over all cores.
        accumulation_steps: micro-batches of each core.
        precision: as in the run's configuration.

    Raises:
        ConfigError: names the setting and what to set instead.
    """
    if precision == "mixed_float16":
        raise ConfigError("TPUs do not support float16; set train.precision=mixed_bfloat16")
    parts = replicas * accumulation_steps
    if batch_size % parts:
        raise ConfigError(
            f"a batch of {batch_size} cannot be cut into {parts} equal parts ({replicas} TPU cores, train.accumulation_steps="
            f"{accumulation_steps}); set train.batch_size={-(-batch_size // parts) * parts}"
        )
    if replicas == 1:
        logging.warning(
            "this TPU has one core (such as the v5e-1 of free notebooks) and trains like one device; a machine with eight "
            "cores, such as a v3-8 or v5e-8, with a larger train.batch_size is faster"
        )


def check_elements(element_spec, short_batches=False):
    """Rejects data that a TPU cannot take.

    Args:
        element_spec: the spec of a dataset, a dict of feature name to spec.
        short_batches: whether the number of rows may be unknown, because batches are padded later.

    Raises:
        ConfigError: names the feature, the problem, and how to fix it.
    """
    for name, spec in element_spec.items():
        if not isinstance(spec, tf.TensorSpec):
            raise ConfigError(
                f"feature '{name}' is a {spec.value_type.__name__}, but a TPU takes only dense tensors; pad it with to_tensor(shape=...)"
            )
        if spec.dtype in (tf.string, tf.variant, tf.resource):
            raise ConfigError(
                f"feature '{name}' has the dtype {spec.dtype.name}, which TPUs do not support; remove it from the dataset"
            )
        shape = spec.shape[1:] if short_batches and spec.shape.rank else spec.shape
        if not shape.is_fully_defined():
            raise ConfigError(
                f"feature '{name}' has the shape {spec.shape}, but a TPU needs static shapes; batch with "
                "drop_remainder=True or pad the last batch, and pad all rows to one length"
            )


def _made_by_google():
    for path in glob.glob("/sys/bus/pci/devices/*/vendor"):
        with contextlib.suppress(OSError), open(path, encoding="ascii") as file:
            if file.read().strip() == "0x1ae0":
                return True
    return False


def _installed(name):
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
