"""The numbers of exhibits.toml, computed: `python -m docs.document_numbers` prints them.

A test compares the two, so no number of the Museum goes out of date. Each is a pair: with the
mistake, and right.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, pad

from explorer.analysis.position_schemes import doubled_sinusoids, measure_table
from explorer.text.number_format import spread, three
from explorer.views.museum.mistakes import FILLS, MISTAKES, filled_weights
from explorer.views.museum.paired_training import lowest_loss
from models import Transformer, trace
from models.attention import attention_weights
from models.positional import sinusoids
from models.presets import (
    LECTURE_HANDOUT,
    NOTEBOOK_TUTORIAL,
    WEB_TUTORIAL_CLASSIFIER,
    WEB_TUTORIAL_ENCODER,
)

SOURCE = torch.tensor(
    [[0, 2, 5, 6, 4, 3, 9, 5, 2, 9, 10, 1], [0, 2, 8, 7, 3, 4, 5, 6, 7, 2, 10, 1]]
)
TARGET = torch.tensor(
    [[0, 1, 7, 4, 3, 5, 9, 2, 8, 10, 9, 1], [0, 1, 5, 6, 2, 4, 7, 6, 2, 8, 10, 1]]
)
THREE = ("doubled-exponent", "shared-projection", "lost-target")
Pair = tuple[str, str]


def with_mistakes(model: Transformer, *names: str) -> Transformer:
    return reduce(lambda made, name: MISTAKES[name].make(made), names, model)


def listed(values: list[float], digits: str = "") -> str:
    return " ".join(f"{value:{digits}}" for value in values).replace("nan", "NaN")


def pairs(wrong: Any, right: Any, *measures: Callable[[Any], str]) -> list[Pair]:
    """Each measure of what has the mistake, and of what is right."""
    return [(measure(wrong), measure(right)) for measure in measures]


def written(model: Transformer) -> str:
    return listed(model.generate(SOURCE[:1], max_length=12, temperature=0.0)[0, 1:].tolist())


def count(module: torch.nn.Module | None) -> int:
    assert module is not None
    return sum(parameter.numel() for parameter in module.parameters())


def untrained_notebook() -> Transformer:
    """The notebook's model without its mistakes, weights from seed 0: 177 MB."""
    return Transformer(NOTEBOOK_TUTORIAL).eval()


def numbers_of_positions(notebook: Transformer) -> list[Pair]:
    where = torch.arange(60)
    return pairs(
        measure_table(doubled_sinusoids(where, 512), 5),
        measure_table(sinusoids(where, 512), 5),
        lambda table: listed(table.first, ".4f"),
        lambda table: str(table.still),
        lambda table: spread(table.spread),
    )


def numbers_of_the_output(notebook: Transformer) -> list[Pair]:
    wrong = with_mistakes(notebook, *THREE, "batch-softmax")
    ends = wrong(SOURCE[:1], SOURCE[:1])[0, -1], notebook(SOURCE[:1], SOURCE[:1])[0, -1].softmax(-1)
    extremes = pairs(*ends, lambda x: three(float(x.max())), lambda x: three(float(x.min())))
    return [(written(with_mistakes(wrong, "never-appends")), written(notebook)), *extremes]


def numbers_of_the_target(notebook: Transformer) -> list[Pair]:
    def change(model: Transformer) -> float:
        return float((model(SOURCE, (TARGET + 3) % 11) - model(SOURCE, TARGET)).abs().max())

    lost = change(with_mistakes(notebook, *THREE))
    return [("below 1e−6: rounding" if lost < 1e-6 else three(lost), three(change(notebook)))]


def numbers_of_writing(notebook: Transformer) -> list[Pair]:
    forgets = with_mistakes(notebook, "never-appends")
    lost, right = with_mistakes(notebook, "lost-target", "never-appends"), written(notebook)
    try:
        two = f"{len(forgets.generate(SOURCE, max_length=1))} answers"
    except RuntimeError as error:
        two = str(error)
    return [(written(forgets), right), (written(lost), right), (two, "two answers")]


def numbers_of_projections(notebook: Transformer) -> list[Pair]:
    wrong = with_mistakes(notebook, "shared-projection")
    return pairs(wrong, notebook, lambda model: f"{model.n_parameters:,}")


def numbers_of_heads(notebook: Transformer) -> list[Pair]:
    right = Transformer(NOTEBOOK_TUTORIAL.replace(n_layers=1, n_heads=4))

    def width(model: Transformer, stack: str) -> str:
        q = trace(model, SOURCE, SOURCE, sites=("*.self_attn.q",))[f"{stack}.0.self_attn.q"]
        return f"{q.shape[1]} of width {q.shape[3]}"

    inner = (f"{factor * NOTEBOOK_TUTORIAL.d_model:,}" for factor in (4, 2))
    wrong = with_mistakes(right, "fixed-heads")
    rows = [(width(wrong, stack), width(right, stack)) for stack in ("encoder", "decoder")]
    return [*rows, (next(inner), next(inner))]


def numbers_of_padding(notebook: Transformer) -> list[Pair]:
    """The web tutorial's classifier, untrained, weights and text from seed 0."""
    right = Transformer(WEB_TUTORIAL_CLASSIFIER.replace(pad_id=0)).eval()
    ids = torch.randint(1, 5000, (1, 20), generator=torch.Generator().manual_seed(0))

    def logits(ids: Tensor) -> Callable[[Transformer], str]:
        return lambda model: "({})".format(", ".join(f"{x:.3f}" for x in model(ids)[0].tolist()))

    wrong = with_mistakes(right, "no-padding-mask")
    return pairs(wrong, right, logits(ids), logits(pad(ids, (0, 10))))


def numbers_of_losses(notebook: Transformer) -> list[Pair]:
    certain, label = torch.full((1, 11), -100.0), torch.tensor([3])
    certain[0, 3] = 100.0
    losses = [f"{float(cross_entropy(x, label)):.3g}" for x in (certain.softmax(-1), certain)]
    return [(losses[0], losses[1]), (three(lowest_loss(11)), "0")]


def numbers_of_fills(notebook: Transformer) -> list[Pair]:
    """A fully masked row of three keys, in float32 and in float16."""

    def row(fill: float | None, dtype: torch.dtype) -> str:
        nothing, scores = torch.zeros(3, dtype=torch.bool), torch.tensor([0.3, -1.2, 0.8]).to(dtype)
        if fill is None:
            return listed(attention_weights(scores[None], nothing[None])[0].tolist(), ".3f")
        try:
            return listed(filled_weights(scores, nothing, fill).tolist(), ".3f")
        except RuntimeError:
            return "out of range: an error"

    fills = (*FILLS.values(), None)
    return [(row(fill, torch.float32), row(fill, torch.float16)) for fill in fills]


def numbers_of_attention(notebook: Transformer) -> list[Pair]:
    with torch.device("meta"):
        encoder = Transformer(LECTURE_HANDOUT).last_stack
    one = f"{count(encoder.get_submodule('blocks.0.self_attn')):,}"
    return [(one, one), ("0", "one per head")]


def numbers_of_parameters(notebook: Transformer) -> list[Pair]:
    with torch.device("meta"):
        model = Transformer(WEB_TUTORIAL_ENCODER)
    parts = count(model), count(model.last_stack.embedding), count(model.last_stack.blocks[0])
    total, embedding, layer, norm = (f"{x:,}" for x in (*parts, count(model.last_stack.norm)))
    left = (398_272 - parts[1] - count(model.last_stack.norm)) // 4
    rest = f"{left:,} would be left"
    return [("398,272", total), (embedding, embedding), (rest, layer), (norm, norm)]


def numbers_of_scales(notebook: Transformer) -> list[Pair]:
    table = sinusoids(torch.arange(2), 512)[1]
    angles = torch.atan2(table[0::2], table[1::2])
    different = str(len({f"{angle:.12g}" for angle in angles.tolist()}))
    return [("“each dimension”: 512", different), (three(512**-0.5), three(64**-0.5))]


NUMBERS = {
    "doubled-exponent": numbers_of_positions,
    "batch-softmax": numbers_of_the_output,
    "lost-target": numbers_of_the_target,
    "never-appends": numbers_of_writing,
    "shared-projection": numbers_of_projections,
    "fixed-heads": numbers_of_heads,
    "no-padding-mask": numbers_of_padding,
    "softmax-twice": numbers_of_losses,
    "filled-row": numbers_of_fills,
    "dropped-weights": numbers_of_attention,
    "printed-count": numbers_of_parameters,
    "wrong-scale": numbers_of_scales,
}


if __name__ == "__main__":
    model = untrained_notebook()
    with torch.no_grad():
        for name, compute in NUMBERS.items():
            print(name, *compute(model), sep="\n    ")
