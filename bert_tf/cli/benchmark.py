"""What the commands `glue` and `superglue` share."""

from bert_tf.cli import settings
from bert_tf.console import table
from bert_tf.training.benchmark_config import BenchmarkConfig


def add_arguments(parser, benchmark):
    """Adds the options of the command that runs a `Benchmark`."""
    add = parser.add_argument
    add("folder", help="holds a folder for each task")
    settings.add_config(parser, f"benchmarks/{benchmark.title.lower()}", BenchmarkConfig)
    add("--init-from", help="a pretrained run, a published checkpoint, or hf://owner/name")
    add("--output", required=True, help="folder for the runs, results.json and the submission")
    names = tuple(benchmark.tasks)
    add("--tasks", nargs="+", choices=names, metavar="TASK", help=f"only {', '.join(names)}")


def run(arguments, benchmark):
    """Runs a `Benchmark`, and prints its table."""
    from bert_tf.training.benchmark_config import plan_benchmark

    config = settings.load(BenchmarkConfig, arguments, finetune__init_from=arguments.init_from)
    found, _ = benchmark.find(arguments.folder, arguments.tasks)
    plan_benchmark(benchmark, config, found, arguments.output)  # before TensorFlow is imported, which takes seconds
    from bert_tf.training.benchmark import run_benchmark, write_submission
    from bert_tf.training.benchmark_results import rows, score

    results = run_benchmark(benchmark, config, arguments.folder, arguments.output, arguments.tasks)
    cells = rows(benchmark, results)
    print("", *table(cells, right=range(1, len(cells[0]))), sep="\n")
    mean = score(benchmark, results)
    if mean is not None:
        print(f"  {benchmark.title} score of the dev sets: {mean:.1f}")
    missing = write_submission(benchmark, arguments.output)
    if missing:
        print(f"  {arguments.output}/submission.zip lacks {', '.join(missing)}: the leaderboard takes only all of them")
    else:
        print(f"  ready to be submitted to {benchmark.site}: {arguments.output}/submission.zip")
