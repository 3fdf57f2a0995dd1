"""Measure a fine-tuned model on a labelled file.

example:
  bert-tf evaluate sentiment test.tsv

in Python:
  from bert_tf.export.loading import load_finetuned
  task, model, tokenizer = load_finetuned("sentiment")
  print(task.evaluate(model, task.read("test.tsv")))
"""


def add_arguments(parser):
    parser.add_argument("run", help="the fine-tuned run directory")
    parser.add_argument("file", help="a labelled file like the one it was trained on")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--json", action="store_true", help="print the metrics as one line of JSON")


def run(arguments):
    import json

    from bert_tf.export.loading import load_finetuned

    task, model, _ = load_finetuned(arguments.run)
    metrics = task.evaluate(model, task.read(arguments.file), arguments.batch_size)
    if arguments.json:
        print(json.dumps(metrics))
        return
    for name, value in metrics.items():
        print(f"  {name:<14}{value:.4f}" if isinstance(value, float) else f"  {name:<14}{value}")
