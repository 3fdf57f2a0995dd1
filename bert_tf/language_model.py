"""What `bert_tf.load` returns: a model, its tokenizer, and what one does with them."""

from __future__ import annotations

import copy
import functools
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.checkpoints.opened_model import OpenedModel
from bert_tf.config import nearest
from bert_tf.errors import ConfigError, DataError
from bert_tf.generation.generation_config import GenerationConfig
from bert_tf.parsing import brief
from bert_tf.tokenizers.special_tokens import SpecialToken
from bert_tf.types import StrPath

#: The outputs of `bert_tf.export.ServedEmbedding` that are one vector for each text.
POOLINGS = ("mean", "cls")
#: The length to which `fill_mask` truncates texts. Some models (XLNet) have no largest length.
_LONGEST_WITH_MASKS = 512
#: The parts of a model that hold weights, once they are made.
_PARTS = {"backbone", "encoder", "objective", "model", "generator", "scorer"}


class LanguageModel(OpenedModel):
    """A model on disk, opened: its parts, as Keras models and objects of this library, and the verbs.

    A string is one text, and its answer is one; a list of texts has a list of answers. The verbs use the parts as they
    are: what was trained since it was opened counts.

    Example:
        ner = bert_tf.load("bert-base-NER")
        ner.predict("Anna met Paul.")  # {"words": [...], "entities": [{"type": "PER", "text": "Anna", ...}, ...]}
        lm = bert_tf.load("gpt")
        lm.generate("The state of", max_new_tokens=40)
        vectors = bert_tf.load("run").embed(["a good film", "a bad film"])  # float32 [2, H]
    """

    @functools.cached_property
    def results(self) -> dict[str, Any] | None:
        """What the training of a run measured, as `bert_tf.finetune` or `pretrain` returned it; None of another model."""
        if self.source.format != "run":
            return None
        from bert_tf.training.run_records import results_of

        return results_of(self.path)

    def predict(self, texts: Any, batch_size: int = 32) -> Any:
        """The answers of a fine-tuned model.

        Args:
            texts: a text, a pair (text, text), or a list of them; dicts where the task reads more, such as {"question":
                ..., "options": [...]}.
            batch_size: texts of a batch.

        Returns:
            For each text a dict, as `bert-tf predict` prints it.

        Raises:
            DataError: the model is not fine-tuned, or an input that its task does not read.

        Example:
            bert_tf.load("bert-base-NER").predict(["Anna met Paul.", "Rain in Seoul."])
        """
        rows, is_one = _as_list(texts)
        return _answers(self.task.predict(self.model, rows, batch_size), is_one)

    def evaluate(
        self, data: Any, columns: dict[str, Any] | None = None, report: bool = False, batch_size: int = 32
    ) -> dict[str, Any]:
        """The metrics of a fine-tuned model on labelled data.

        Args:
            data: a file in the format of the training file; or Python objects: a list of dicts, a dict of columns, a
                DataFrame of pandas, or a split of the package datasets.
            columns: which columns are read where that differs from the training file, or of Python objects from the names
                of the roles: {"text": "document", "label": "stars"}.
            report: whether the scores of each label are among them, under "report".
            batch_size: examples of a batch.

        Raises:
            DataError: the model is not fine-tuned, or data that its task does not read.

        Example:
            bert_tf.load("bert-base-NER").evaluate("test.conll")["f1"]
        """
        return self.task.evaluate(self.model, self.task.read(data, columns=columns), batch_size, report)

    def fill_mask(self, texts: str | Sequence[str], top_k: int = 5) -> Any:
        """The most probable tokens at each mask, of a model that was pretrained with masked LM.

        Args:
            texts: a text with one mask or several, or a list of such texts.
            top_k: guesses for each mask.

        Returns:
            For each text a list with, for each of its masks, a list of (token, probability), best first.

        Raises:
            ConfigError: a model that does not fill masks.
            DataError: a text without a mask.

        Example:
            bert_tf.load("bert-base-uncased").fill_mask("The [MASK] of the United States.")[0][0]
        """
        from bert_tf.export.fill_mask import ServedMaskedLM
        from bert_tf.objectives import MaskedLM

        if not isinstance(self.objective, MaskedLM):
            raise ConfigError(
                f"a model pretrained with {self.objective.settings.name} cannot fill masks; use one pretrained with masked_lm"
            )
        rows, is_one = _as_list(texts)
        length = min(self.config.max_positions, _LONGEST_WITH_MASKS)
        return _answers(self._served(ServedMaskedLM, self.objective, length, top_k=top_k).fill(rows), is_one)

    def embed(
        self,
        texts: str | Sequence[str],
        pooling: str = "mean",
        normalize: bool = False,
        sequence_length: int | None = None,
        batch_size: int = 32,
    ) -> np.ndarray:
        """One vector for each text: of the last hidden states, by the code that `bert-tf export --kind embedding` serves.

        Args:
            texts: a text, or a list of texts.
            pooling: "mean" over all tokens, special ones included; "cls": the vector of [CLS], of a decoder that of the
                last token.
            normalize: whether each vector gets the length 1, so that a product of two is their cosine.
            sequence_length: longer texts are truncated to so many tokens; None: the length of the training.
            batch_size: texts of a batch.

        Returns:
            float32 [N, H]; of one text [H].

        Raises:
            ConfigError: another `pooling`.

        Example:
            bert_tf.load("all-MiniLM-L6-v2").embed(["a good film", "a bad film"], normalize=True).shape  # [2, 384]
        """
        from bert_tf.export.embedding import ServedEmbedding

        if pooling not in POOLINGS:
            raise ConfigError(f"pooling is {brief(pooling)}{nearest(str(pooling), POOLINGS)}")
        rows, is_one = _as_list(texts)
        module = self._served(ServedEmbedding, self.encoder, sequence_length or self.sequence_length)
        vectors = np.zeros((len(rows), self.encoder.config.hidden_size), np.float32)
        by_length = sorted(range(len(rows)), key=lambda i: len(rows[i]))  # so that a batch has little padding
        for begin in range(0, len(rows), batch_size):
            batch = by_length[begin : begin + batch_size]
            vectors[batch] = module.answer_here([rows[i] for i in batch])[pooling]
        if normalize:
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors[0] if is_one else vectors

    def _served(self, module_class, model, length, **options):
        """The `ServingModule` that answers here, kept with its graph for as long as the model has the same variables."""
        modules = vars(self).setdefault("_modules", {})
        key, parts = (module_class, length, *options.values()), [model, *model.variables]  # LoRA has more, int8 others
        module, traced = modules.get(key, (None, []))
        if [*map(id, traced)] != [*map(id, parts)]:
            module = module_class(model, self.tokenizer, length, **options)
            modules[key] = module, parts
        return module

    def generate(self, prompts: str | Sequence[str], **settings: Any) -> Any:
        """The texts with which a decoder continues prompts, or an encoder-decoder answers them.

        Args:
            prompts: a text, or a list of texts.
            settings: of `GenerationConfig`: `max_new_tokens`, `method`, `temperature`, `top_p`, `seed`, `beams`, ... The
                others are those of the run's task. Without `max_new_tokens` no text is written beyond the length that the
                model was trained on.

        Returns:
            For each prompt a str, without the prompt; with `n_best` above 1 a list of them, best first.

        Raises:
            ConfigError, DataError: a model that writes no text, wrong settings, or prompts without a token.

        Example:
            bert_tf.load("gpt").generate("The state of", max_new_tokens=8, method="sample", top_p=0.9, seed=2)
        """
        rows, is_one = _as_list(prompts)
        config = self.generation_config(rows, settings)
        found = [[answer.text for answer in answers] for answers in self.generator(rows, config)]
        return _answers(found if config.n_best > 1 else [texts[0] if texts else "" for texts in found], is_one)

    def stream(self, prompt: str, **settings: Any) -> Iterator[str]:
        """Yields the text of one prompt piece by piece; the arguments are those of `generate`.

        Example:
            for piece in bert_tf.load("gpt").stream("The state of", max_new_tokens=8):
                print(piece, end="")
        """
        return self.generator.stream(prompt, self.generation_config([prompt], settings))

    def generation_config(self, prompts: Sequence[str], settings: dict[str, Any]) -> GenerationConfig:
        """The settings of `generate`: those given, those of the run's task, and no text beyond the trained length."""
        generator = self.generator
        config = generator.config.replace(settings)
        if "max_new_tokens" in settings or generator.prompts.frame.is_source:
            return config
        longest = max((len(generator.prompts.ids(text)) for text in prompts), default=0)
        room = self.sequence_length - longest
        if room < 1:
            raise DataError(
                f"a prompt has {longest} tokens, and {self.path} was trained on sequences of {self.sequence_length}; shorten "
                "it, or set max_new_tokens to write at untrained positions"
            )
        return config.replace({"max_new_tokens": min(config.max_new_tokens, room)})

    def score(self, context: str | Sequence[tuple[str, str]], text: str | None = None) -> Any:
        """The natural log-likelihood of a text after a context, of a model that writes text.

        A space between the two belongs to the text. `scorer` has more: the tokens, whether greedy generation would give
        the text, and the perplexity of documents.

        Args:
            context: a text, which may be empty; or a list of pairs (context, text).
            text: the continuation; None with pairs.

        Returns:
            float; of pairs a list of them.

        Example:
            lm = bert_tf.load("gpt")
            lm.score("The capital of France is", " Paris") > lm.score("The capital of France is", " bread")
        """
        pairs = [(context, text)] if isinstance(context, str) else list(context)
        found = [score.log_likelihood for score in self.scorer.continuations(pairs)]
        return found[0] if isinstance(context, str) else found

    def add_tokens(self, tokens: Iterable[str | SpecialToken], special: bool = False) -> LanguageModel:
        """The model with further tokens, such as the words of a domain or markup: tokenizer and tables grow.

        A new row is the mean of the rows of the pieces that the token was cut into before, and is trained like the others.
        Save the result as a run to train it.

        Args:
            tokens: a list of str or of `SpecialToken`; those that are tokens already keep their ids.
            special: whether they stand for no text; see `bert_tf.tokenizers.added_tokens.add_tokens`.

        Returns:
            Another `LanguageModel`.

        Raises:
            ConfigError: parts of this one were made, and may have been trained; a tokenizer that takes no tokens.
            DataError: an empty token.

        Example:
            bert_tf.load("bert-base-uncased").add_tokens(["covid", "<e1>", "</e1>"]).save("covid-bert", format="run")
            bert_tf.finetune("covid-bert", train=rows, output="run", task="classification")
        """
        from bert_tf.checkpoints.added_tokens import with_tokens

        if made := sorted(_PARTS & vars(self).keys()):
            raise ConfigError(
                f"this model has been used already (its {made[0]} was made), and what it learned would be lost; save it, load "
                "it again, and add the tokens first"
            )
        grown = copy.copy(self)
        grown.source = with_tokens(self.source, tokens, special)
        return grown

    def export(
        self,
        output: StrPath | None = None,
        kind: str | None = None,
        version: int | None = None,
        sequence_length: int | None = None,
        **options: Any,
    ) -> Path:
        """Writes a SavedModel for TensorFlow Serving with the tokenizer inside: `<output>/<version>/`.

        Args:
            output: the folder that holds the versions; None: `export/` in the run.
            kind, version, sequence_length, options: as of `bert_tf.export.export_run`. The precision is that of the model
                (`dtype` of `bert_tf.load`).

        Returns:
            The path of the version.

        Raises:
            ConfigError, RunDirectoryError, ExportError: as `export_run`.

        Example:
            bert_tf.load("bert-base-NER").export("served/ner")  # served/ner/1
        """
        from bert_tf.backend import EXPORTS
        from bert_tf.export.elsewhere import export_elsewhere
        from bert_tf.export.run import served_module
        from bert_tf.export.saved_model import write_saved_model

        if output is None and self.source.format != "run":
            raise ConfigError(f"{self.path} is not a run directory; say where the export is written: export(OUTPUT)")
        output = self.path / "export" if output is None else output
        if EXPORTS:
            return write_saved_model(served_module(self, kind, sequence_length, options), output, version)
        given = options | {"kind": kind, "version": version, "sequence_length": sequence_length}
        with tempfile.TemporaryDirectory() as folder:
            self.save(f"{folder}/run", format="run")
            precision = self.backbone.dtype_policy.name
            return export_elsewhere(f"{folder}/run", output=output, precision=precision, **given)

    def save(
        self,
        path: StrPath,
        format: str = "hf",
        encoder_only: bool = False,
        approximate: bool = False,
        license: str | None = None,
    ) -> None:
        """Writes the model with its tokenizer, and the head of its task or its pretraining.

        A Hugging Face folder has a model card: what the model is, its scores beside the baselines, and its settings.

        Args:
            path: a folder that does not exist yet, or is empty; for word vectors and "keras" a file.
            format: "run", a run directory, or one of `bert_tf.save`.
            encoder_only: whether the heads are left out.
            approximate: as of `bert_tf.save`.
            license: an identifier for the card, such as "apache-2.0"; None names none.

        Raises:
            ConfigError, DataError, RunDirectoryError: as `bert_tf.save`.

        Example:
            bert_tf.load("run").save("published", format="hf")
        """
        from bert_tf.training.converting import convert

        convert(self, path, format, encoder_only, approximate, license)

    def push(
        self, repository: str, license: str | None = None, private: bool = True, encoder_only: bool = False
    ) -> str:
        """Publishes the model on the Hugging Face Hub, as `save` writes it with the format "hf".

        Args:
            repository: "owner/name", which is made if there is none; "owner/name@branch" for a branch.
            license, encoder_only: as of `save`.
            private: whether only its owners see it, if it is new.

        Returns:
            The address of its page.

        Raises:
            ConfigError: a model that Hugging Face has no class for.
            DataError: the hub does not answer, or the token of 'hf auth login' may not write there.

        Example:
            bert_tf.load("run").push("my-name/sentiment", license="apache-2.0")
        """
        from bert_tf.training.converting import push

        return push(self, f"hf://{repository.removeprefix('hf://')}", license, private, encoder_only)[1]


def _as_list(texts):
    """(list, whether `texts` is one text or one pair, whose answer is one)."""
    is_one = isinstance(texts, (str, dict)) or (isinstance(texts, tuple) and len(texts) == 2)
    try:
        return ([texts] if is_one else list(texts)), is_one
    except TypeError:
        raise DataError(f"the texts are {brief(texts)}; give a text, or a list of texts") from None


def _answers(answers, is_one):
    return answers[0] if is_one else answers
