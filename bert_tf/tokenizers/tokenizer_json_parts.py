"""What the readers of tokenizer.json share: refusals that name the key, and post-processors as layouts."""

from bert_tf.errors import ConfigError
from bert_tf.tokenizers.layout import LAYOUTS


class Expectations:
    """Refuses what is not supported, saying what."""

    def __init__(self, file):
        self.file = file

    def __call__(self, key, value, *supported):
        if value not in supported:
            names = " or ".join(repr(s) for s in supported)
            raise ConfigError(f"{self.file}: {key} is {value!r}; only {names} is supported")


def only_member(component, name):
    """The one member of a Sequence, or the component itself."""
    if component and component.get("type") == "Sequence" and len(component.get(name) or ()) == 1:
        return component[name][0]
    return component


def layout_name(processor, roles, expect):
    """The name of the layout that a post-processor is; roles cls and sep are set from it."""
    if processor and processor.get("type") == "Sequence":
        parts = [p for p in processor["processors"] if p.get("type") != "ByteLevel"]
        expect("post_processor.processors", len(parts), 0, 1)
        processor = parts[0] if parts else None
    kind = (processor or {}).get("type")
    if kind in (None, "ByteLevel"):
        return "none"
    if kind in ("BertProcessing", "RobertaProcessing"):
        roles["cls"], roles["sep"] = processor["cls"][0], processor["sep"][0]
        return "bert" if kind == "BertProcessing" else "roberta"
    expect("post_processor.type", kind, None, "ByteLevel", "BertProcessing", "RobertaProcessing", "TemplateProcessing")
    single, pair = _template(processor["single"]), _template(processor["pair"])
    for name in LAYOUTS:
        if (single, pair) == _spelled(name, roles):
            return name
    raise ConfigError(
        f"{expect.file}: the template {' '.join(single)} and {' '.join(pair)} is the layout of no known family "
        f"({', '.join(LAYOUTS)})"
    )


def _template(parts):
    return [next(iter(part.values()))["id"] for part in parts]


def _spelled(name, roles):
    """The templates of a layout, in tokens."""
    layout = LAYOUTS[name](roles.get("cls"), roles.get("sep"))
    single = [*layout.before_first, "A", *layout.after_first]
    pair = [*single, *layout.before_second, "B", *layout.after_second]
    return [*single, *layout.at_end], [*pair, *layout.at_end]
