"""What a task warns of: text that the tokenizer does not know, and models that are not better than guesses."""

import unicodedata

#: A larger fraction of unknown tokens means that something is wrong with the text or the tokenizer.
UNKNOWN_HIGH = 0.05


def unknown_warning(examples, tokens, unknown):
    """A warning if more than 5 % of the tokens of `Examples` are unknown to the tokenizer, else None."""
    if unknown <= UNKNOWN_HIGH * tokens:
        return None
    texts = examples.texts or [word for words in examples.words for word in words]
    texts = texts + (examples.text_pairs or [])
    if any(not unicodedata.is_normalized("NFC", text) for text in texts):
        check = (
            "the text holds decomposed characters (NFD, as macOS writes them), which the vocabulary may hold composed "
            "only: compare with unicodedata.normalize('NFC', text)"
        )
    else:
        check = (
            "is the text in a language or script that the vocabulary was not made for, is it decomposed (NFD), is it "
            f"another column ({', '.join(f'{k}: {v!r}' for k, v in examples.columns.items()) or 'texts from Python'})?"
        )
    return (
        f"{100 * unknown / tokens:.1f} % of the tokens ({unknown:,} of {tokens:,}) are unknown to the tokenizer and "
        f"tell the model nothing; {check}"
    )


def not_above(metric, sign, scores, baselines):
    """A warning if a model is not better than every baseline, else None.

    Args:
        metric: the name of the metric that decides.
        sign: 1 where a higher value of it is better, -1 where a lower one is.
        scores: metrics of the model.
        baselines: name -> metrics of a guess.
    """
    scores_of_guesses = {name: baseline[metric] for name, baseline in baselines.items() if metric in baseline}
    if not scores_of_guesses:
        return None
    name, best = max(scores_of_guesses.items(), key=lambda pair: sign * pair[1])
    score = scores[metric]
    if sign * score > sign * best or score == (1.0 if sign > 0 else 0.0):
        return None
    return (
        f"{metric} is {score:.4f}, not {'above' if sign > 0 else 'below'} the {best:.4f} of the baseline '{name}', which "
        "uses no model: train longer, on more data, or from a model that was pretrained longer"
    )
