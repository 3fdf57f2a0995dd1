"""Axes: ticks at round numbers."""

import math


def ticks(low, high, count=5):
    """About `count` round numbers (1, 2 or 5 times a power of ten apart) that span [low, high].

    Args:
        low, high: finite numbers.
        count: the number of steps wished for.

    Returns:
        list of floats, ascending; the first is at most `low`, the last at least `high`.

    Example:
        ticks(0.13, 0.87)  # [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    if not high > low:
        room = abs(high) / 10 or 1.0
        low, high = low - room, high + room
    step = _round_step((high - low) / count)
    # A multiple of the step that rounding puts just outside is still the end.
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [i * step for i in range(first, last + 1)]


def whole_ticks(low, high, count=5):
    """As `ticks` for steps and epochs: integers within [low, high]."""
    step = max(1, round(_round_step(max(high - low, 1) / count)))
    return [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _round_step(rough):
    power = 10.0 ** math.floor(math.log10(rough))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))


def tick_text(value):
    """A tick as text.

    Example:
        tick_text(0.2), tick_text(20_000), tick_text(2e-5)  # ('0.2', '20k', '2e-05')
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= max(size, 10_000):
            return f"{value / size:.10g}{unit}"
    return f"{value:.10g}"
