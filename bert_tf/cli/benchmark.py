"""Fine-tune on the tasks of GLUE or SuperGLUE, and print the table beside published numbers.

FOLDER is the benchmark as it is distributed: a folder for each task with its files. GLUE has CoLA, SST-2, MRPC,
QQP, STS-B, MNLI, QNLI, RTE, WNLI, and AX for the diagnostics, with train.tsv, dev.tsv and test.tsv; SuperGLUE has
BoolQ, CB, COPA, MultiRC, ReCoRD, RTE, WiC, WSC, and AX-b and AX-g, with train.jsonl, val.jsonl and test.jsonl.
What is there is run, the smallest first. The test files are answered in OUTPUT/submission, and
OUTPUT/submission.zip is what the leaderboard takes if all tasks are there. The model of SuperGLUE's RTE answers
the diagnostics, whose labels are public. Run the same command again to resume.

from_mnli=true starts the small tasks of GLUE from the run of MNLI; from_mnli=RUN starts those of SuperGLUE from a
run that was fine-tuned on MNLI, as BERT++ did.

example:
  bert-tf benchmark glue GLUE --init-from run --output glue
  bert-tf benchmark glue GLUE --init-from hf://google-bert/bert-base-uncased --output glue \\
      --set finetune.train.seeds=5 --set tasks.cola.optimizer.learning_rate=1e-5 --set from_mnli=true
  bert-tf benchmark superglue SuperGLUE --init-from run --output superglue --tasks cb copa

in Python:
  from bert_tf import config
  from bert_tf.runs.benchmark import BenchmarkConfig, run_benchmark
  from bert_tf.runs.benchmarks import GLUE
  settings = config.load(BenchmarkConfig, "benchmarks/glue", {"finetune": {"init_from": "run"}})
  run_benchmark(GLUE, settings, "GLUE", "glue")
"""

from bert_tf.cli import settings
from bert_tf.runs.benchmark_config import BenchmarkConfig, plan_benchmark
from bert_tf.runs.benchmarks import BENCHMARKS


def add_arguments(parser):
    add = parser.add_argument
    add("benchmark", choices=BENCHMARKS, help="which one")
    add("folder", help="holds a folder for each task")
    settings.add_config(parser, None, BenchmarkConfig, "benchmarks/BENCHMARK")
    start = "a pretrained run, a published checkpoint, or hf://owner/name"
    add("--init-from", action=settings.Setting, key="finetune.init_from", help=start)
    add("--output", required=True, help="folder for the runs, results.json and the submission")
    add("--tasks", nargs="+", metavar="TASK", help="only these tasks, such as rte")


def run(arguments):
    benchmark = BENCHMARKS[arguments.benchmark]
    arguments.config = arguments.config or f"benchmarks/{arguments.benchmark}"
    config = settings.load(BenchmarkConfig, arguments)
    folders, _ = benchmark.find(arguments.folder, arguments.tasks)
    plan_benchmark(benchmark, config, folders, arguments.output)  # before TensorFlow is imported, which takes seconds
    from bert_tf.runs.benchmark import run_benchmark, write_submission

    results = run_benchmark(benchmark, config, arguments.folder, arguments.output, arguments.tasks)
    print("", results.table.text(), f"  {results.note}", sep="\n")
    missing = write_submission(benchmark, arguments.output)
    if missing:
        print(f"  {arguments.output}/submission.zip lacks {', '.join(missing)}: the leaderboard takes only all of them")
    else:
        print(f"  ready to be submitted to {benchmark.site}: {arguments.output}/submission.zip")
