"""Sentences into pairs of segments, for next sentence and sentence order prediction."""

import random
from bisect import bisect_left

from tfrecords.packing.spans import ENDS, FILLS, excess, spans, split_long
from tfrecords.schema import EXCHANGED, IN_ORDER, NEXT, NO_PAIR, RANDOM_NEXT


def segment_pairs(sentence_splits, document_splits, room, seed, short_sequence_probability=0.1, task="nsp"):
    """Pairs of segments, each of one or more sentences; one pass over the documents.

    google-research/bert, create_pretraining_data.py, `create_instances_from_document` and
    `truncate_seq_pair` (Devlin et al. 2018, section 3.1 task 2 and appendix A.2). Sentences are
    gathered until the target length and cut into A and B at a random border. Then
    - "nsp": half of the time B is replaced by text from another random document; the
      sentences this leaves unused are put back;
    - "sop" (google-research/albert, the same function with `random_next_sentence`
      off): half of the time A and B are exchanged;
    - "none": they stay, without a label (ELECTRA cuts its texts otherwise, see `electra.electra_examples`).
    Pairs that are too long lose tokens one by one from the longer segment (B where they are
    equal), at the front or the back at random; after the exchange, so that the lengths do not reveal it.

    Kept as the originals have it:
    - the target length is drawn once a document, not once an example: with the probability given
      it is uniform in [2, room];
    - for NSP a lone sentence always gets a random B, so rather more than half are random;
    - truncation loses tokens (`Spans.truncated`), and a random B is in two examples.
    Otherwise than the originals:
    - a sentence that alone exceeds the sequence is cut into equal pieces that fill at most half
      of it, where the original throws away what does not fit;
    - the random document is drawn among the others directly, where the original draws up to ten
      times among all and may end with the same one;
    - with a single document B is drawn from the same one, outside A and the sentence that truly
      follows; where no other sentence is left, A is alone, as `NO_PAIR`;
    - a lone sentence has no order: it is alone, as `NO_PAIR`, where ALBERT gives it a random B
      and calls that exchanged;
    - instances are not shuffled: the reader does that.

    Args:
        seed: integer.
        short_sequence_probability: the fraction of documents packed to a shorter target.
        task: of `schema.PAIR_TASKS`.

    Returns:
        Spans. The labels are `NEXT` and `RANDOM_NEXT`, or `IN_ORDER` and `EXCHANGED`, or
        `NO_PAIR` for a lone segment and wherever the task is "none".
    """
    return _pairs(sentence_splits, document_splits, room, seed, short_sequence_probability, task)


def sentence_pairs(sentence_splits, document_splits, room, seed, task="nsp"):
    """Pairs of single natural sentences (Liu et al. 2019, section 4.2, SENTENCE-PAIR).

    As `segment_pairs`, but A and B are one sentence each. B is the following one, or with "nsp" half of the time a
    random one of another document; then the following one begins the next example.
    """
    return _pairs(sentence_splits, document_splits, room, seed, None, task)


def _pairs(sentence_splits, document_splits, room, seed, short_sequence_probability, task):
    single_sentences = short_sequence_probability is None
    sentence_splits, document_splits = split_long(sentence_splits, document_splits, room, room // 2)
    splits, documents = sentence_splits.tolist(), document_splits.tolist()
    generator = random.Random(seed)
    # Its stream is documented to be the same in every Python version, which randint's is not.
    draw = generator.random
    rows = []
    for document in range(len(documents) - 1):
        start, document_end = documents[document], documents[document + 1]
        target = room
        if not single_sentences and draw() < short_sequence_probability:
            target = 2 + int(draw() * (room - 1))
        while start < document_end:
            middle = start + 1
            if single_sentences:
                chunk_end = min(start + 2, document_end)
            else:
                chunk_end = min(bisect_left(splits, splits[start] + target, start + 1, document_end), document_end)
                if chunk_end - start > 1:
                    middle += int(draw() * (chunk_end - start - 1))
            lone = 0 if chunk_end - start > 1 else ENDS if chunk_end == document_end else FILLS
            a_start, a_end = splits[start], splits[middle]
            if task == "nsp" and (lone or draw() < 0.5):
                label = RANDOM_NEXT
                length = 1 if single_sentences else target - (a_end - a_start)
                b_start, b_end = _random_span(splits, documents, document, start, middle, length, draw)
                if b_start == b_end:
                    label = NO_PAIR
                start = middle
            else:
                b_start, b_end = a_end, splits[chunk_end]
                start = chunk_end
                label = NO_PAIR
                if task == "nsp":
                    label = NEXT
                elif task == "sop" and not lone:
                    label = EXCHANGED if draw() < 0.5 else IN_ORDER
                    if label == EXCHANGED:
                        a_start, a_end, b_start, b_end = b_start, b_end, a_start, a_end
            truncated = 0
            if a_end - a_start + b_end - b_start > room:
                a_drop, b_drop = excess(a_end - a_start, b_end - b_start, room)
                # Fair coins, as many as there are tokens to drop.
                a_front = generator.getrandbits(a_drop).bit_count()
                b_front = generator.getrandbits(b_drop).bit_count()
                a_start, a_end = a_start + a_front, a_end - (a_drop - a_front)
                b_start, b_end = b_start + b_front, b_end - (b_drop - b_front)
                is_random = task == "nsp" and label == RANDOM_NEXT
                truncated = a_drop + (0 if is_random else b_drop)
            rows.append((a_start, a_end, b_start, b_end, label, truncated, lone))
    return spans(rows)


def _random_span(splits, documents, document, start, middle, length, draw):
    """Start and end of a random B: from a random sentence on, until it has `length` tokens or its document ends."""
    if len(documents) > 2:
        other = int(draw() * (len(documents) - 2))
        other += other >= document
        first, end = documents[other], documents[other + 1]
        chosen = first + int(draw() * (end - first))
    else:
        # The sentences before A, and those after the one that follows A.
        first, end = documents[document], documents[document + 1]
        before, after = start - first, max(end - middle - 1, 0)
        if before + after == 0:
            return 0, 0
        chosen = int(draw() * (before + after))
        if chosen < before:
            chosen, end = first + chosen, start  # stops before A
        else:
            chosen += middle + 1 - before
    last = min(bisect_left(splits, splits[chosen] + length, chosen + 1, end), end)
    return splits[chosen], splits[last]
