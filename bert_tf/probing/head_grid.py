"""A number of each attention head, as a grid of layers and heads."""

from bert_tf.markup import h, svg
from bert_tf.table import number_text

WIDTH, LEFT, GAP, ROW = 380, 24, 2, 20


def head_grid(name, values):
    """The `figure` of numbers between 0 and 1: the darker a cell, the larger its number, which shows on hover.

    Args:
        name: of the numbers.
        values: float [layers, heads].
    """
    layers, heads = len(values), len(values[0])
    wide, parts = (WIDTH - LEFT) / heads, []
    for i, row in enumerate(values):
        parts.append(h("text", i + 1, x=LEFT - 8, y=i * ROW + 14, class_="tick end"))
        for j, value in enumerate(row):
            title = h("title", f"layer {i + 1}, head {j + 1}: {number_text(float(value))}")
            box = {"x": round(LEFT + j * wide, 1), "y": i * ROW, "width": round(wide - GAP, 1), "height": ROW - GAP}
            parts.append(h("rect", title, class_="cell c0", fill_opacity=round(0.05 + 0.95 * float(value), 3), **box))
    for j in range(heads):
        parts.append(h("text", j + 1, x=round(LEFT + (j + 0.5) * wide, 1), y=layers * ROW + 12, class_="tick middle"))
    drawing = svg(WIDTH, layers * ROW + 16, parts, label=f"{name} of each head")
    caption = h("figcaption", h("b", name), h("span", " layers down, heads across", class_="quiet"))
    return h("figure", caption, drawing, class_="chart")
