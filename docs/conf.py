"""The documentation site: `sphinx-build -W -n docs site`.

Sphinx, because it takes the API from the docstrings of the imported modules, checks every link and every name, and is what
Python, NumPy and Hugging Face's readers are used to; MyST, because pages in Markdown are readable in the repository, too; Furo, because it
follows the reader's light or dark setting and works without JavaScript.
"""

import bert_tf

project = "bert_tf"
copyright = "The bert_tf authors, Apache License 2.0"
release = version = bert_tf.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["site"]
# An address of a heading is its words, as in the repository.
myst_heading_anchors = 4

html_theme = "furo"
html_title = "bert_tf"
html_copy_source = False
