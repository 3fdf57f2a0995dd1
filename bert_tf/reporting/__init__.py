"""report.html: what a run or a study did, as one page to look at.

Names are imported when they are first used: a training that writes no page loads no page.
"""

from bert_tf.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "report": ["write_report"],
})  # fmt: skip
