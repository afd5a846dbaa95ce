"""The picture of the pass for print, as a chart: what its canvas draws while nothing is pointed at.

Widths, opacities and places are those of components/pass_map/paint.js.
"""

from collections.abc import Iterator
from itertools import chain

from explorer.analysis.information_flow import Route
from explorer.charts.network import Mark, Place, Stroke, Word, network, slant
from explorer.charts.theme import LIGHT
from explorer.charts.vega_lite import Spec
from explorer.components.pass_map import PassMap
from explorer.text.token_labels import texts

STREAM, ATTENTION, MLP = "residual stream", "attention", "feed-forward"
COLOURS = dict(zip((STREAM, ATTENTION, MLP), LIGHT.series, strict=False))
LEAST_COLUMN, MOST_COLUMN, WIDTH, APART = 17, 90, 640, 40
"""Pixels of a column, of all columns where they fit, and between two stacks."""
LEAST_LAYER, MOST_LAYER, HEIGHT, ABOVE = 18, 150, 300, 22
AT = {"self_attn": 0.26, "cross_attn": 0.5, "mlp": 0.74}
"""Where a part stands in its layer, from below."""
SQUARE = 11
"""The most pixels of the side of a square."""


class PrintedMap:
    """The streams and edges that carry at least this part of an answer."""

    def __init__(self, picture: PassMap, traced: Route, least: float) -> None:
        self.picture, self.traced, self.least = picture, traced, least
        stacks = picture.flow.stacks
        self.layers = {name: len(blocks) for name, blocks in stacks.items()}
        columns = sum(len(stack.tokens) for stack in picture.stacks)
        self.column = min(MOST_COLUMN, max(LEAST_COLUMN, WIDTH / columns))
        most = max(1, *self.layers.values())
        self.height = most * min(MOST_LAYER, max(LEAST_LAYER, HEIGHT / most))
        self.left, width = dict[str, float](), 0.0
        for stack in picture.stacks:
            self.left[stack.name] = width
            width += len(stack.tokens) * self.column + APART
        self.size = width - APART, self.height + ABOVE

    def at(self, stack: str, token: int, level: float) -> Place:
        y = ABOVE + self.height * (1 - level / max(1, self.layers[stack]))
        return round(self.left[stack] + (token + 0.5) * self.column, 1), round(y, 1)

    def chart(self, answer: int) -> Spec:
        lines = [*self._streams(), *sorted(self._edges(), key=lambda line: line.width)]
        marks = [mark for mark in self._marks() if mark.size[0] > 0.8]
        return network(self.size, lines, marks, [*self._words(answer)], COLOURS)

    def _streams(self) -> Iterator[Stroke]:
        for stack, levels in self.traced.streams.items():
            for layer in range(self.layers[stack]):
                both = levels[layer].maximum(levels[layer + 1]).tolist()
                for token, value in enumerate(both):
                    if value >= self.least:
                        ends = [self.at(stack, token, layer), self.at(stack, token, layer + 1)]
                        yield Stroke(ends, STREAM, *_look(value))

    def _edges(self) -> Iterator[Stroke]:
        for part, edges in self.traced.edges.items():
            stack, name = part.split(".")
            is_own = name == "self_attn"
            source = stack if is_own else "encoder"
            for layer, query, key in (edges >= self.least).nonzero().tolist():
                if is_own and query == key:
                    continue
                x0, y0 = self.at(source, key, layer if is_own else self.layers[source])
                x1, y1 = self.at(stack, query, layer + AT[name])
                bend = x0 + max(6, abs(x1 - x0) * 0.12) * (1 if x1 > x0 else -1)
                look = _look(float(edges[layer, query, key]))
                yield Stroke([(x0, y0), (x0, y1), (bend, y1), (x1, y1)], ATTENTION, *look)

    def _marks(self) -> Iterator[Mark]:
        most = min(self.column / 2, SQUARE, 0.42 * self.height / max(1, *self.layers.values()))
        for stack, blocks in self.picture.flow.stacks.items():
            for layer, block in enumerate(blocks):
                carried = self.traced.streams[stack][layer + 1].tolist()
                parts = {name: shares.keys.sum(-1) for name, shares in block.attentions.items()}
                if block.mlp is not None:
                    parts["mlp"] = block.mlp
                for name, shares in parts.items():
                    place, kind = name.split(".")[-1], MLP if name == "mlp" else ATTENTION
                    for token, share in enumerate(shares.nan_to_num(0).clamp(min=0).tolist()):
                        value = carried[token]
                        opacity = 0.35 + 0.65 * value**0.5 if value >= self.least else 0.18
                        at, side = self.at(stack, token, layer + AT[place]), most * share**0.5
                        yield Mark(at, (side, side), COLOURS[kind], round(opacity, 3))

    def _words(self, answer: int) -> Iterator[Word]:
        bottom = self.size[1] + 12
        labels = {stack.name: texts(stack.tokens) for stack in self.picture.stacks}
        angle = slant([*chain(*labels.values())], self.column)
        for place, stack in enumerate(self.picture.stacks):
            for token, label in enumerate(labels[stack.name]):
                yield Word((self.at(stack.name, token, 0)[0], bottom), label, angle)
            layers = self.layers[stack.name]
            if not place or layers != self.layers[self.picture.stacks[0].name]:
                for layer in range(layers):
                    y = self.at(stack.name, 0, layer + 0.5)[1]
                    yield Word((self.left[stack.name] - 8, y), str(layer), muted=True)
        if answer in self.picture.answers:
            last = self.picture.stacks[-1]
            is_class = len(self.picture.flow.starts) == 1
            column = len(last.tokens) / 2 if is_class else answer + 0.5
            x = self.left[last.name] + column * self.column
            yield Word((x, ABOVE / 2), self.picture.answers[answer].label)


def _look(value: float) -> tuple[float, float]:
    """The width and the opacity of what carries this part of an answer."""
    return round(0.6 + 6 * value**0.5, 2), round(min(1.0, 0.22 + 0.9 * value**0.5), 3)
