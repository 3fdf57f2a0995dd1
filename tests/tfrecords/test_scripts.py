"""Texts without blanks, and Korean: rows reach their budget with every unit of masking."""

import functools
import types

import numpy as np
import pytest
import tensorflow as tf
from shard_fixtures import as_tensors, batch_of

from bert_tf.tokenizers import train_byte_level_bpe, train_unigram
from bert_tf.tokenizers.layout import Layout
from tfrecords.corruption.masking import MaskedLMCorruption, MaskingConfig
from tfrecords.corruption.permutation import PermutationConfig, PermutationCorruption

ROWS, LENGTH = 60, 128
WORDS = {
    "chinese": "我们 他们 学生 老师 北京 上海 今天 明天 昨天 中国 大学 图书馆 电脑 语言 模型 研究 学习 工作 喜欢 知道 去 来 看 说 在 的 了 是 "
    "和 很 不 也 都 一个 两个 书 朋友 城市 天气 问题 时候 开始 因为 所以 经济 发展",
    "japanese": "私 あなた 学生 先生 東京 京都 今日 明日 日本 大学 図書館 コンピューター 言語 モデル 研究 勉強 仕事 好き 行きます 見ました "
    "話している は が を に で と も から まで です でした という こと ところ テレビ ニュース 新しい 大きい 小さな 本 友達 町",
    "korean": "우리는 그들은 학생이 학생을 선생님은 선생님께 서울에서 부산에 오늘 내일은 어제 한국의 대학교에서 도서관에 컴퓨터를 언어를 "
    "모형이 연구를 공부합니다 일했습니다 좋아하는 알고 갔다 왔습니다 보았다 말했다 책을 친구와 도시의 날씨가 문제를 때문에 경제 발전은",
}


@functools.cache
def sentences(language):
    draw, words = np.random.default_rng(3), WORDS[language].split()
    blank, end = (" ", ".") if language == "korean" else ("", "。")
    return [blank.join(draw.choice(words, draw.integers(6, 25))) + end for _ in range(700)]


@functools.cache
def tokenizer(language, kind):
    if kind == "bytes":
        return train_byte_level_bpe(sentences(language), 500)
    return train_unigram(sentences(language), 130 if language == "chinese" else 160, kind, character_coverage=1.0)


def rows(language, kind):
    """Rows of many sentences, framed by the tokenizer's own special tokens."""
    made = tokenizer(language, kind)
    ids = np.concatenate(made.tokenize(tf.constant(sentences(language))).to_list())
    texts = ids[: ROWS * (LENGTH - 2)].reshape(ROWS, LENGTH - 2)
    token_ids = np.pad(texts, ((0, 0), (1, 1)))
    token_ids[:, 0], token_ids[:, -1] = made.cls_id, made.sep_id
    return as_tensors(batch_of(token_ids) | {"segment_ids": np.zeros_like(token_ids, np.int32)})


def framed(made):
    """What a masker asks of a tokenizer, with a token before the text, which spans need."""
    names = ("special_ids", "unk_id", "mask_id", "marks_words", "starts_word", "random_ids")
    layout = Layout((made.cls_id,), (made.sep_id,), (), (made.sep_id,))
    return types.SimpleNamespace(layout=layout, **{name: getattr(made, name) for name in names})


@pytest.mark.parametrize(
    "language, kind", [("chinese", "albert"), ("chinese", "bytes"), ("japanese", "xlnet"), ("korean", "bytes")]
)
def test_rows_reach_their_budget(language, kind):
    """And spans, which have at most 10 words, are not one stretch: words are found in texts without blanks."""
    batch = rows(language, kind)
    for unit in ("whole_word", "ngram", "span"):
        corrupt = MaskedLMCorruption(framed(tokenizer(language, kind)), MaskingConfig(strategy=unit))
        features = corrupt(batch, 1)
        used = tf.reduce_sum(features["mask_weights"], 1).numpy()
        assert used.max() <= 19 and used.min() > 0, unit  # round(.15 * 126)
        assert used.mean() > (0.97 if unit != "span" else 1 - 1e-6) * 19, (unit, used.mean())
    left, real = features["span_left"].numpy(), features["mask_weights"].numpy() > 0
    assert np.mean([len(set(row[of_row])) for row, of_row in zip(left, real)]) > 3.5


@pytest.mark.parametrize("language", ["japanese", "korean"])
def test_spans_of_permutation_lm(language):
    """Chosen as spans, not as the single tokens that fill up: tokens with a chosen neighbour are the most."""
    made, batch = tokenizer(language, "xlnet"), rows(language, "xlnet")
    config = PermutationConfig(segments=1, bidirectional=False, permutation_size=64)
    features = PermutationCorruption(made, config)(batch, 1)
    assert (tf.reduce_sum(features["mask_weights"], 1).numpy() == 20).all()  # 63 of each window may be
    positions = features["mask_positions"].numpy()
    assert (np.diff(positions, axis=1) == 1).mean() > 0.3
