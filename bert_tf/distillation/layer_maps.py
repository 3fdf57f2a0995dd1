"""Which layer of the teacher belongs to a layer of the student."""

from bert_tf.errors import ConfigError


def spread_layers(student, teacher):
    """The layers that a student starts from: evenly spread from the first layer to the last, counted from 0.

    For 6 of 12 these are the layers of the published DistilBERT, 0, 2, 4, 7, 9, 11 (`extract_distilbert.py` of Hugging
    Face's research_projects/distillation).

    Args:
        student, teacher: the numbers of layers.

    Raises:
        ConfigError: the student has more layers than the teacher.

    Example:
        spread_layers(6, 12)  # (0, 2, 4, 7, 9, 11)
    """
    if student > teacher:
        raise ConfigError(f"the student has {student} layers and the teacher {teacher}; give the student no more")
    return tuple(round(i * (teacher - 1) / max(student - 1, 1)) for i in range(student))


def uniform_layers(student, teacher):
    """The teacher's layer that each layer of a student imitates, counted from 0: the last of every k = N / M.

    TinyBERT's "uniform strategy" g(m) = 3 m for 4 of 12 layers (Jiao et al. 2020, section 4.2).

    Args:
        student, teacher: M and N, the numbers of layers.

    Raises:
        ConfigError: N is not a multiple of M.

    Example:
        uniform_layers(4, 12)  # (2, 5, 8, 11)
    """
    if teacher % student:
        raise ConfigError(
            f"the teacher's {teacher} layers are not a multiple of the student's {student}; set `layers` of the term, "
            "the teacher's layer (from 0) for each layer of the student"
        )
    return tuple((i + 1) * (teacher // student) - 1 for i in range(student))


def check_layers(layers, student, teacher, what):
    """Refuses a map that does not name a layer of the teacher for each layer of the student.

    Args:
        layers: the teacher's layers, counted from 0.
        student, teacher: the numbers of layers.
        what: the setting, for messages.

    Raises:
        ConfigError: too many, too few, or a layer that the teacher does not have.
    """
    if len(layers) != student:
        raise ConfigError(f"{what} names {len(layers)} layers, but the student has {student}; name one for each")
    for layer in layers:
        if not 0 <= layer < teacher:
            raise ConfigError(f"{what} names layer {layer}, but the teacher has the layers 0 to {teacher - 1}")
