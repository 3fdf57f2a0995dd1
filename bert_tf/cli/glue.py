"""Fine-tune on the tasks of GLUE, and print the table beside published numbers.

FOLDER is GLUE as it is distributed: a folder for each task (CoLA, SST-2, MRPC, QQP, STS-B, MNLI, QNLI,
RTE, WNLI, and AX for the diagnostics) with train.tsv, dev.tsv and test.tsv. What is there is run, the
smallest first. The test files are answered in OUTPUT/submission, and OUTPUT/submission.zip is what
gluebenchmark.com takes if all tasks are there. Run the same command again to resume.

example:
  bert-tf glue GLUE --init-from run --output glue
  bert-tf glue GLUE --init-from hf://google-bert/bert-base-uncased --output glue \\
      --set finetune.train.seeds=5 --set tasks.cola.optimizer.learning_rate=1e-5 --set from_mnli=true
  bert-tf glue GLUE --init-from run --output glue --tasks rte mrpc

in Python:
  from bert_tf import config
  from bert_tf.tasks.benchmarks.glue_files import GLUE
  from bert_tf.training.benchmark import BenchmarkConfig, run_benchmark
  settings = config.load(BenchmarkConfig, "benchmarks/glue", ["finetune.init_from=run"])
  run_benchmark(GLUE, settings, "GLUE", "glue")
"""

import functools

from bert_tf.cli import benchmark
from bert_tf.tasks.benchmarks.glue_files import GLUE

add_arguments = functools.partial(benchmark.add_arguments, benchmark=GLUE)
run = functools.partial(benchmark.run, benchmark=GLUE)
