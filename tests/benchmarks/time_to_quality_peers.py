"""What `time_to_quality.py` trains beside bert_tf: a BERT by KerasHub, the Model Garden or transformers, for some minutes."""

import contextlib
import json
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np

START = time.perf_counter()
RATE, WARMUP = 0.15, 0.1


def part():
    """How much of the time is over."""
    return (time.perf_counter() - START) / a.seconds


def factor():
    """Of the learning rate: up in the first tenth of the time, then down."""
    return min(part() / WARMUP, max(0.0, 1 - part()) / (1 - WARMUP))


def write_folder(activation, file="config.json"):
    """The folder of the model with its configuration, by its name Hugging Face's or the original's, and its vocabulary."""
    folder = Path(a.output)
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "vocab_size": a.vocabulary_size, "hidden_act": activation, "hidden_size": a.hidden_size, "num_hidden_layers": a.layers,
        "num_attention_heads": a.heads, "intermediate_size": 4 * a.hidden_size, "max_position_embeddings": 512,
        "type_vocab_size": 2, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "initializer_range": 0.02,
    }  # fmt: skip
    if file == "config.json":
        config |= {
            "model_type": "bert",
            "architectures": ["BertForMaskedLM"],
            "layer_norm_eps": 1e-12,
            "pad_token_id": a.pad,
        }
    (folder / file).write_text(json.dumps(config))
    (folder / "vocab.txt").write_text(Path(a.vocabulary).read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "BertTokenizer", "do_lower_case": True})
    )
    return folder


def batches(corrupted):
    """tf.data of batches of rows as `corrupted` gives them, without end."""
    import tensorflow as tf

    rows = tf.data.Dataset.from_tensor_slices(np.load(a.rows)).shuffle(100_000, seed=0).repeat()
    return rows.batch(a.batch, drop_remainder=True).map(corrupted, num_parallel_calls=1).prefetch(4)


class Over(Exception):
    """The time is."""


def keras_hub():
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import keras
    import keras_hub as hub
    from safetensors.numpy import save_file

    rows = np.load(a.rows)
    predictions = round(RATE * rows.shape[1])
    mask = hub.layers.MaskedLMMaskGenerator(
        vocabulary_size=a.vocabulary_size, mask_selection_rate=RATE, mask_token_id=a.mask, mask_selection_length=predictions,
        unselectable_token_ids=[a.pad, a.cls, a.sep],
    )  # fmt: skip
    backbone = hub.models.BertBackbone(
        vocabulary_size=a.vocabulary_size, num_layers=a.layers, num_heads=a.heads, hidden_dim=a.hidden_size,
        intermediate_dim=4 * a.hidden_size,
    )  # fmt: skip
    model = hub.models.BertMaskedLM(backbone=backbone, preprocessor=None)
    optimizer = keras.optimizers.AdamW(a.learning_rate, weight_decay=0.01, global_clipnorm=1.0)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=optimizer, loss=loss, jit_compile=False)  # with XLA it is slower on a CPU

    def corrupted(ids):
        import tensorflow as tf

        found = mask(ids)
        inputs = {
            "token_ids": found["token_ids"], "segment_ids": tf.zeros_like(ids), "padding_mask": tf.cast(ids != a.pad, "int32"),
            "mask_positions": found["mask_positions"],
        }  # fmt: skip
        return inputs, found["mask_ids"], found["mask_weights"]

    class Clock(keras.callbacks.Callback):
        updates = 0

        def on_train_batch_begin(self, batch, logs=None):
            self.model.optimizer.learning_rate = a.learning_rate * factor()

        def on_train_batch_end(self, batch, logs=None):
            self.updates += 1
            if part() >= 1:
                raise Over

    clock = Clock()
    with contextlib.suppress(Over):
        model.fit(batches(corrupted), steps_per_epoch=10**9, verbose=0, callbacks=[clock])
    arrays = hugging_face_arrays(backbone, model.masked_lm_head)
    save_file({n: np.ascontiguousarray(v) for n, v in arrays.items()}, write_folder("gelu_new") / "model.safetensors")
    return clock.updates


def hugging_face_arrays(backbone, head):
    """The weights of KerasHub's BERT under Hugging Face's names."""
    arrays = {}

    def norm(name, layer):
        arrays[f"{name}.weight"], arrays[f"{name}.bias"] = map(np.asarray, (layer.gamma, layer.beta))

    def dense(name, layer, inputs=1):
        kernel = np.asarray(layer.kernel)
        width = int(np.prod(kernel.shape[:inputs]))
        arrays[f"{name}.weight"] = kernel.reshape(width, -1).T
        arrays[f"{name}.bias"] = np.asarray(layer.bias).reshape(-1)

    tables = {
        "word": backbone.token_embedding.embeddings, "position": backbone.position_embedding.position_embeddings,
        "token_type": backbone.segment_embedding.embeddings,
    }  # fmt: skip
    for name, table in tables.items():
        arrays[f"bert.embeddings.{name}_embeddings.weight"] = np.asarray(table)
    norm("bert.embeddings.LayerNorm", backbone.embeddings_layer_norm)
    for i, layer in enumerate(backbone.transformer_layers):
        prefix, attention = f"bert.encoder.layer.{i}", layer._self_attention_layer
        for name in ("query", "key", "value"):
            dense(f"{prefix}.attention.self.{name}", getattr(attention, f"_{name}_dense"))
        dense(f"{prefix}.attention.output.dense", attention._output_dense, inputs=2)
        norm(f"{prefix}.attention.output.LayerNorm", layer._self_attention_layer_norm)
        dense(f"{prefix}.intermediate.dense", layer._feedforward_intermediate_dense)
        dense(f"{prefix}.output.dense", layer._feedforward_output_dense)
        norm(f"{prefix}.output.LayerNorm", layer._feedforward_layer_norm)
    dense("cls.predictions.transform.dense", head._intermediate_dense)
    norm("cls.predictions.transform.LayerNorm", head._intermediate_layer_norm)
    arrays["cls.predictions.bias"] = np.asarray(head._bias)
    return arrays


def model_garden():
    import tensorflow as tf
    import tensorflow_text as text
    from training_step import garden_model

    sizes = SimpleNamespace(hidden_size=a.hidden_size, layers=a.layers, heads=a.heads)
    model, optimizer, step = garden_model(sizes, "float32", a.vocabulary_size)
    predictions = round(RATE * np.load(a.rows, mmap_mode="r").shape[1])
    selector = text.RandomItemSelector(predictions, selection_rate=RATE, unselectable_ids=[a.pad, a.cls, a.sep])
    chooser = text.MaskValuesChooser(a.vocabulary_size, a.mask)

    def corrupted(ids):
        ragged = tf.RaggedTensor.from_tensor(ids, padding=a.pad)
        masked, positions, labels = text.mask_language_model(
            ragged, item_selector=selector, mask_values_chooser=chooser
        )
        masked = masked.to_tensor(a.pad, shape=ids.shape)
        weights = tf.ones_like(positions, tf.float32).to_tensor(0.0, shape=[ids.shape[0], predictions])
        return {
            "input_word_ids": masked, "input_mask": tf.cast(ids != a.pad, tf.int32), "input_type_ids": tf.zeros_like(ids),
            "masked_lm_positions": tf.cast(positions.to_tensor(0, shape=[ids.shape[0], predictions]), tf.int32),
            "masked_lm_ids": labels.to_tensor(0, shape=[ids.shape[0], predictions]), "masked_lm_weights": weights,
        }  # fmt: skip

    updates = 0
    for batch in batches(corrupted):
        optimizer.learning_rate = a.learning_rate * factor()
        step(batch)
        updates += 1
        if part() >= 1:
            break
    tf.train.Checkpoint(model=model).save(str(write_folder("gelu", "bert_config.json") / "ckpt"))
    return updates


def transformers():
    import torch
    from torch.optim.lr_scheduler import LambdaLR
    from transformers import (
        BertConfig,
        BertForMaskedLM,
        BertTokenizerFast,
        DataCollatorForLanguageModeling,
        Trainer,
        TrainerCallback,
        TrainingArguments,
    )  # fmt: skip

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    config = BertConfig.from_pretrained(write_folder("gelu"))
    model = BertForMaskedLM(config)
    tokenizer = BertTokenizerFast(a.vocabulary, do_lower_case=True)
    rows = [{"input_ids": row[row != a.pad].tolist()} for row in np.load(a.rows)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=a.learning_rate, weight_decay=0.01)

    class Clock(TrainerCallback):
        def on_step_end(self, arguments, state, control, **others):
            control.should_training_stop = part() >= 1

    arguments = TrainingArguments(
        output_dir=a.output + ".trainer", per_device_train_batch_size=a.batch, num_train_epochs=10_000, save_strategy="no",
        report_to=[], disable_tqdm=True, use_cpu=True, dataloader_pin_memory=False, logging_steps=10**9,
    )  # fmt: skip
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=RATE)
    schedule = LambdaLR(optimizer, lambda step: factor())
    trainer = Trainer(
        model,
        arguments,
        train_dataset=rows,
        data_collator=collator,
        callbacks=[Clock()],
        optimizers=(optimizer, schedule),
    )
    trainer.train()
    model.save_pretrained(a.output)
    return trainer.state.global_step


if __name__ == "__main__":
    a = SimpleNamespace(**json.loads(sys.argv[2]))
    run = {"KerasHub": keras_hub, "Model Garden": model_garden, "transformers": transformers}[sys.argv[1]]
    found = run()
    (Path(a.output) / "updates.json").write_text(json.dumps(found))
