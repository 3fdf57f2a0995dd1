"""Fine-tune on the tasks of SuperGLUE, and print the table beside published numbers.

FOLDER is SuperGLUE as it is distributed: a folder for each task (BoolQ, CB, COPA, MultiRC, ReCoRD, RTE, WiC,
WSC, and AX-b and AX-g for the diagnostics) with train.jsonl, val.jsonl and test.jsonl. What is there is run,
the smallest first.
The test files are answered in OUTPUT/submission, and OUTPUT/submission.zip is what super.gluebenchmark.com
takes if all tasks are there. The model of RTE answers the diagnostics, whose labels are public: Matthews'
correlation on AX-b, gender parity and accuracy on AX-g. Run the same command again to resume.

from_mnli=RUN starts BoolQ, CB and RTE from a run that was fine-tuned on MNLI, as BERT++ did.

example:
  bert-tf superglue SuperGLUE --init-from run --output superglue
  bert-tf superglue SuperGLUE --init-from hf://google-bert/bert-large-cased --output superglue \\
      --set finetune.train.seeds=5 --set tasks.cb.optimizer.learning_rate=2e-5 --set from_mnli=glue/mnli
  bert-tf superglue SuperGLUE --init-from run --output superglue --tasks cb copa

in Python:
  from bert_tf import config
  from bert_tf.tasks.benchmarks.superglue_files import SUPERGLUE
  from bert_tf.training.benchmark import BenchmarkConfig, run_benchmark
  settings = config.load(BenchmarkConfig, "benchmarks/superglue", ["finetune.init_from=run"])
  run_benchmark(SUPERGLUE, settings, "SuperGLUE", "superglue")
"""

import functools

from bert_tf.cli import benchmark
from bert_tf.tasks.benchmarks.superglue_files import SUPERGLUE

add_arguments = functools.partial(benchmark.add_arguments, benchmark=SUPERGLUE)
run = functools.partial(benchmark.run, benchmark=SUPERGLUE)
