"""Real tokens a second from text files through shards and masking to the update, beside Model Garden's pipeline.

    pip install -e ".[peers]"
    python tests/benchmarks/end_to_end.py [--text FILE.jsonl]

The same text, vocabulary, model and number of predictions. bert_tf fills its rows with token blocks; Model Garden's
create_pretraining_data packs segment pairs and masks them once, its loader reads them. "data" is how long
writing the examples of one epoch took. Tokens count where they are no padding.
"""

import argparse
import json
import random
import tempfile
import time
from pathlib import Path

from side_by_side import main, model_arguments, paced
from training_step import RATE, garden_model

SAMPLE = Path(__file__).parent.parent.parent / "bert_tf" / "samples" / "state_of_the_union.jsonl"


def read_documents(a):
    lines = Path(a.text).read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines][: a.documents]


def trained_vocabulary(documents):
    from bert_tf.tokenizers import train_wordpiece

    return train_wordpiece(documents, 8000, lowercase=True)


def bert_tf(policy):
    def setup(a):
        from bert_tf.backend import AdamW
        from bert_tf.models.bert.config import BertConfig
        from bert_tf.models.bert.model import BertEncoder
        from bert_tf.objectives import MaskedLM
        from tfrecords.corruption.masking import MaskedLMCorruption, MaskingConfig
        from tfrecords.reading.reader import ShardReader
        from tfrecords.shards.writer import ShardsConfig, write_shards

        documents = read_documents(a)
        tokenizer = trained_vocabulary(documents)
        folder = Path(tempfile.mkdtemp())
        (folder / "corpus.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in documents))
        start = time.perf_counter()
        shards = ShardsConfig(sequence_length=a.length, format="token_blocks")
        write_shards(folder / "corpus.jsonl", folder / "shards", tokenizer, shards, progress=False)
        seconds = time.perf_counter() - start
        reader = ShardReader(folder / "shards", tokenizer)
        corrupt = MaskedLMCorruption(tokenizer, MaskingConfig(max_predictions=a.predictions))
        config = BertConfig(tokenizer.vocabulary_size, a.hidden_size, a.layers, a.heads, 4 * a.hidden_size)
        model = MaskedLM(BertEncoder(config, pooler=False, dtype=policy))
        model.compile(optimizer=AdamW(RATE, global_clipnorm=1.0))
        train = paced(model, reader.dataset(a.batch, seed=0, corrupt=corrupt), a.steps)
        per_row = reader.manifest.counts["tokens_per_example"]

        def turn():
            train()
            return a.steps * a.batch * per_row

        return "real tokens", turn, lambda: {"data": f"{seconds:.1f} s", "tokens a row": f"{per_row:.1f}"}

    return setup


def model_garden(policy):
    def setup(a):
        documents = read_documents(a)
        tokenizer = trained_vocabulary(documents)
        *_, step = garden_model(a, policy, tokenizer.vocabulary_size)
        from official.nlp.data import create_pretraining_data as create
        from official.nlp.data.pretrain_dataloader import BertPretrainDataConfig, BertPretrainDataLoader
        from official.nlp.tools import tokenization

        from tfrecords.corpus.sentences import split_sentences

        folder = Path(tempfile.mkdtemp())
        (folder / "vocab.txt").write_text("\n".join(tokenizer.vocabulary))
        sentences = ["\n".join(split_sentences(text)) for text in documents]
        (folder / "corpus.txt").write_text("\n\n".join(sentences))
        theirs = tokenization.FullTokenizer(str(folder / "vocab.txt"), do_lower_case=True)
        start = time.perf_counter()
        instances = create.create_training_instances(
            [str(folder / "corpus.txt")],
            theirs,
            create.get_processor_text_fn(False, True),
            max_seq_length=a.length,
            dupe_factor=1,
            short_seq_prob=0.1,
            masked_lm_prob=0.15,
            max_predictions_per_seq=a.predictions,
            rng=random.Random(0),
        )
        record = str(folder / "examples.tfrecord")
        create.write_instance_to_example_files(instances, theirs, a.length, a.predictions, [record], False, True)
        seconds = time.perf_counter() - start
        settings = BertPretrainDataConfig(
            input_path=record,
            global_batch_size=a.batch,
            seq_length=a.length,
            max_predictions_per_seq=a.predictions,
            use_next_sentence_label=False,
            use_v2_feature_names=True,
        )
        data = iter(BertPretrainDataLoader(settings).load())
        per_row = sum(len(instance.tokens) for instance in instances) / len(instances)

        def turn():
            for _ in range(a.steps):
                loss = step(next(data))
            loss.numpy()
            return a.steps * a.batch * per_row

        return "real tokens", turn, lambda: {"data": f"{seconds:.1f} s", "tokens a row": f"{per_row:.1f}"}

    return setup


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", default=SAMPLE)
    parser.add_argument("--documents", type=int, default=40)
    model_arguments(parser, batch=16)
    parser.add_argument("--predictions", type=int, default=20, help="of each row")
    parser.add_argument("--steps", type=int, default=10, help="of a turn")
    main(
        {
            "bert_tf, bfloat16": bert_tf("mixed_bfloat16"),
            "bert_tf, float32": bert_tf("float32"),
            "Model Garden, bfloat16": model_garden("mixed_bfloat16"),
            "Model Garden, float32": model_garden("float32"),
        },
        parser,
        reference=["Model Garden, float32"],
    )
