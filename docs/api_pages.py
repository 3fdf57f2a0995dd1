"""The pages of docs/api/ from the docstrings: every public name of a package, none listed by hand.

A page of docs/api/ holds a title; what follows is added when it is read: the package's docstring, its functions, classes and
data. A public name in single backticks is a link.
"""

import functools
import importlib
import inspect
import pkgutil
import re
import sys
import typing

from docstrings import to_rst
from sphinx.errors import ExtensionError
from sphinx.pycode import ModuleAnalyzer
from sphinx.util import inspect as inspection
from sphinx.util.nodes import make_refnode

import bert_tf
from bert_tf.registry import Registry

#: Page -> the packages or modules whose public names it has.
PAGES = {
    "bert_tf": ["bert_tf", "bert_tf.language_model"],
    "tokenizers": ["bert_tf.tokenizers"],
    "tfrecords": ["tfrecords", "tfrecords.shards.manifest"],
    "models": ["bert_tf.models", *(f"bert_tf.models.{name}" for name in ("stack", "task_heads", "weights"))],
    "layers": ["bert_tf.layers"],
    "objectives": ["bert_tf.objectives"],
    "tasks": ["bert_tf.tasks", *(f"bert_tf.tasks.{name}" for name in (
        "sections", "texts.classification", "texts.regression", "multi_label.multi_label_config", "tagging.tagging_config", "tagging.task",
        "choices.choices_config", "choices.task", "spans.question_answering_config", "spans.task", "text_to_text.text_to_text_config",
    ))],
    "training": [f"bert_tf.training.{name}" for name in (
        "pretraining", "pretrain_config", "finetuning", "finetune_config", "train_config", "optimizer_config", "averaging", "converting",
    )],
    "runs": [f"bert_tf.runs.{name}" for name in (
        "benchmark", "benchmark_config", "grid", "grid_config", "study", "study_config", "halving", "experiment",
    )],
    "generation": ["bert_tf.generation"],
    "export": ["bert_tf.export"],
    "checkpoints": ["bert_tf.checkpoints"],
    "compression": ["bert_tf.compression"],
    "distillation": ["bert_tf.distillation", "bert_tf.distillation.distill_config"],
    "probing": ["bert_tf.probing"],
    "prompting": ["bert_tf.prompting"],
    "vectors": ["bert_tf.vectors", "bert_tf.vectors.vectors_config"],
    "reporting": ["bert_tf.reporting"],
    "backend": ["bert_tf.backend"],
    "testing": ["bert_tf.testing"],
    "samples": ["bert_tf.samples"],
    "foundation": ["bert_tf.config", "bert_tf.errors", "bert_tf.registry", "bert_tf.types", "bert_tf.table", "bert_tf.interrupts"],
}  # fmt: skip
#: Names of a package that are no part of what it offers.
HELPERS = {"lazy_names"}
OURS = ("bert_tf", "tfrecords")
#: What a reader looks for first.
FIRST = ("load", "pretrain", "finetune")
#: Packages that users do not import: the commands, and what all others read and write files with.
INTERNAL = {"bert_tf.cli", "bert_tf.files"}


@functools.cache
def public(package):
    """Name -> value of what a package or module offers."""
    module = importlib.import_module(package)
    is_package = hasattr(module, "__path__")
    names = getattr(module, "__all__", None) or [name for name in dir(module) if name[0] != "_"]
    found = {}
    for name in names:
        value = getattr(module, name)
        if hasattr(module, "__all__") or is_own(value, package, name, is_package):
            found[name] = value
    return found


def shown(page):
    """[package, {name: value}] of a page: a module has what the packages before it do not offer."""
    known, found = [], []
    for package in PAGES[page]:
        names = {name: value for name, value in public(package).items() if not any(value is other for other in known)}
        known += names.values()
        found.append((package, names))
    return found


def is_own(value, package, name, is_package):
    """Whether a name is one of this library: a package offers what it imports, a module what it defines."""
    if name in HELPERS or inspect.ismodule(value):
        return False
    if is_callable(value):
        home = value.__module__
        return f"{home}.".startswith(f"{package}.") if is_package else home == package
    return bool(comment(package, name, value))


def is_callable(value):
    """Whether a value is a class or a function; else it is data."""
    return inspect.isclass(value) or inspect.isroutine(value)


def comment(package, name, value):
    """The lines of the comment `#: ...` above data, in the module that defines it."""
    modules = [module for module in sorted(sys.modules) if module == package or module.startswith(f"{package}.")]
    for module in modules:
        if vars(sys.modules[module]).get(name) is value:
            try:
                docs = ModuleAnalyzer.for_module(module).find_attr_docs()
            except Exception:
                continue
            if ("", name) in docs:
                return docs["", name]
    return []


def undocumented():
    """Public names without a docstring of their own, or hidden by a module of the same name; packages without a page."""
    known = {name for packages in PAGES.values() for name in packages}
    there = {module.name for module in pkgutil.iter_modules(bert_tf.__path__, "bert_tf.") if module.ispkg}
    lost = [name for name in sorted(there - INTERNAL) if not any(f"{page}.".startswith(f"{name}.") for page in known)]
    for package in sorted(known):
        for name, value in public(package).items():
            if not (has_docstring(value) if is_callable(value) else comment(package, name, value)):
                lost.append(f"{package}.{name}")
    return lost


def has_docstring(value):
    """Whether somebody wrote one: dataclasses make one of their signature, and classes inherit."""
    text = value.__dict__.get("__doc__") if inspect.isclass(value) else value.__doc__
    return bool(text) and not text.startswith(f"{value.__name__}(")


@functools.cache
def links():
    """A public name, with or without its package -> the place where it is documented.

    Of two places a package comes before a module; None for a name of two packages.
    """
    found, of_module = {}, {}
    for page in PAGES:
        for package, names in shown(page):
            places = found if hasattr(importlib.import_module(package), "__path__") else of_module
            for name, value in names.items():
                place, home = f"{package}.{name}", f"{getattr(value, '__module__', package)}.{name}"
                for key in {name, place, home, f"{package.rpartition('.')[2]}.{name}"}:
                    places[key] = place if places.get(key, place) == place else None
    return of_module | found


def write_page(app, docname, source):
    """Adds to a page of docs/api/ what its packages offer."""
    folder, _, page = docname.rpartition("/")
    if folder != "api" or page not in PAGES:
        return
    lines = []
    for package, names in shown(page):
        if package != PAGES[page][0]:
            lines += [package, "-" * len(package), ""]
        lines += [f".. py:module:: {package}", ""]
        lines += rst(inspect.getdoc(importlib.import_module(package)) or "", package) + [""]
        for name, value in sorted(names.items(), key=lambda item: (item[0] not in FIRST, order(item[1]))):
            lines += entry(package, name, value)
    source[0] += "\n````{eval-rst}\n" + "\n".join(lines) + "\n````\n"


def order(value):
    """Functions, classes, errors, data; in each the order of the package."""
    if not is_callable(value):
        return 3
    return 0 if inspect.isroutine(value) else 1 + issubclass(value, Exception)


def entry(package, name, value):
    """Lines of reStructuredText that document one name."""
    if inspect.isclass(value):
        return [f".. autoclass:: {package}.{name}", "   :members:", ""]
    if is_callable(value):
        return [f".. autofunction:: {package}.{name}", ""]
    words = comment(package, name, value)
    if isinstance(value, Registry):
        words = [*words, "", f"Of the library: {', '.join(f'`{key}`' for key in value)}."]
    return [f".. py:data:: {name}", "", *(f"   {line}" for line in rst("\n".join(words), package)), ""]


def rst(text, package=""):
    """Lines of reStructuredText of a docstring, whose public names are links, first of all to those of its package."""
    return to_rst(text, lambda name: links().get(f"{package}.{name}") or links().get(name))


def process(app, what, name, obj, options, lines):
    """The docstring of autodoc, before napoleon reads it."""
    packages = [package for packages in PAGES.values() for package in packages if name.startswith(f"{package}.")]
    lines[:] = rst("\n".join(lines), max(packages, key=len, default=""))


def with_colons(app, what, name, obj, options, lines):
    """What napoleon wrote: `name: meaning`, as in the docstring."""
    lines[:] = [re.sub(r"^([^`]*?\*\*.+?\*\*.*?) -- ", r"\1: ", line) for line in lines]


def signature(app, what, name, obj, options, arguments, returns):
    """That of `__init__`, where Keras has a `__new__` of any arguments; types by their names."""
    if what == "class" and arguments and re.fullmatch(r"\(\*args(: \S+)?, \*\*kwargs(: \S+)?\)", arguments):
        found = inspection.signature(obj.__init__, type_aliases=app.config.autodoc_type_aliases)
        found = found.replace(parameters=list(found.parameters.values())[1:])
        arguments = inspection.stringify_signature(found, unqualified_typehints=True)
    return tuple(text and re.sub(r"TypeAliasForwardRef\('([\w.]+)'\)", r"\1", text) for text in (arguments, returns))


def resolve(app, env, node, contnode):
    """A link to a type that is public here, by whatever name the signature has it; other packages' names are text."""
    target = node["reftarget"]
    place = links().get(target) or links().get(target.rpartition(".")[2])
    python = env.get_domain("py")
    if place and place in python.objects:
        found = python.objects[place]
        return make_refnode(app.builder, node["refdoc"], found.docname, found.node_id, contnode, place)
    return contnode if is_foreign(target) else None


def is_foreign(target):
    """Whether a name is of Python or another package, a type variable, or private; short ones are of other packages."""
    module, _, name = target.rpartition(".")
    if target.split(".")[0] not in OURS or name.startswith("_"):
        return True
    return isinstance(getattr(sys.modules.get(module), name, None), typing.TypeVar)


def check(app):
    """A public name without a docstring fails the build."""
    if lost := undocumented():
        raise ExtensionError(f"public names without a docstring, or packages without a page: {', '.join(lost)}")


def setup(app):
    """For Sphinx."""
    app.connect("builder-inited", check)
    app.connect("source-read", write_page)
    app.connect("autodoc-process-docstring", process, priority=100)
    app.connect("autodoc-process-docstring", with_colons, priority=900)
    app.connect("autodoc-process-signature", signature)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True}
