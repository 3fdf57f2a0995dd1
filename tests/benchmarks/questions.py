"""Questions per second from a SQuAD file to the batches of a training epoch, and the F1 that its windows can reach.

Run as `python tests/benchmarks/questions.py train-v2.0.json TOKENIZER`.

The second number is the score of the answers as they are after tokenization: the characters of each question's answer,
snapped outward to whole tokens, in a window that holds all of it.
"""

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from bert_tf.tasks import build_task
from bert_tf.tasks.spans.scorer import scores_without_impossible
from bert_tf.tokenizers import load_tokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="a file with answers, in a format of question answering")
    parser.add_argument("tokenizer", help="a folder that load_tokenizer reads")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    task = build_task({"kind": "question_answering"}, load_tokenizer(arguments.tokenizer))
    rates = []
    for _ in range(1 + arguments.repeats):  # the first traces the tokenizer's graph
        begin = time.perf_counter()
        examples = task.read(arguments.file)
        rows = sum(len(batch["token_ids"]) for batch in task.dataset(examples, arguments.batch, training=True))
        rates.append(len(examples) / (time.perf_counter() - begin))
    print(
        f"{len(examples):,} questions, {rows:,} windows; {max(rates[1:]):,.0f} questions/s (the first time {rates[0]:,.0f})"
    )
    sequences = task.sequences(examples)
    texts = [""] * len(examples)
    first = sequences.second.row_starts().numpy()[sequences.rows] + sequences.begins - sequences.offsets
    inside = sequences.labels[:, 0] >= sequences.offsets  # else "no answer", at [CLS]
    for window in inside.nonzero()[0]:
        start, end = sequences.labels[window, :2] + first[window]
        owner = sequences.owners[window]
        texts[owner] = examples.text_pairs[owner][sequences.starts[start] : sequences.ends[end]]
    answered = [index for index, answers in enumerate(examples.labels) if not answers.impossible]
    scores = scores_without_impossible([examples.labels[i] for i in answered], [texts[i] for i in answered])
    print(f"snapped to tokens: exact match {100 * scores['em']:.2f}, F1 {100 * scores['f1']:.2f}")


if __name__ == "__main__":
    main()
