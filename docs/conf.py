"""The documentation site: `sphinx-build -W -n docs site`.

Sphinx takes the API from the docstrings of the imported modules and checks every link and every name; MyST, because pages in
Markdown are readable in the repository, too; Furo follows the reader's light or dark setting and works without JavaScript.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
sys.path.insert(0, str(Path(__file__).parent))

import api_pages

import bert_tf

project = "bert_tf"
copyright = "The bert_tf authors, Apache License 2.0"
release = version = bert_tf.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "api_pages", "sphinx.ext.napoleon"]
exclude_patterns = ["site"]
# An address of a heading is its words, as in the repository.
myst_heading_anchors = 4

# Signatures as they are written; what a class inherits from Keras is explained there.
autodoc_type_aliases = {name: f"bert_tf.types.{name}" for name in api_pages.public("bert_tf.types")}
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
napoleon_use_ivar = True
napoleon_use_param = False
napoleon_custom_sections = [("Call arguments", "params_style")]
napoleon_numpy_docstring = False

# A quote in a text is one to copy.
smartquotes = False

html_theme = "furo"
html_title = "bert_tf"
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["tables.css"]


def setup(app):
    """For Sphinx: a figure and its spread stay on one line."""
    app.connect(
        "source-read", lambda app, name, source: source.__setitem__(0, source[0].replace(" ± ", "\u00a0±\u00a0"))
    )
