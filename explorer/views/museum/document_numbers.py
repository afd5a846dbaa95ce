"""Numbers of the documents' own configurations, with each mistake and without it."""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from explorer.analysis.position_experiments import barely_moving, doubled_sinusoids, spread_at
from explorer.catalog.parameters import count_parameters
from explorer.text.number_format import spread, three
from explorer.views.museum.mistakes import MISTAKES
from explorer.views.museum.mistakes.attention_mistakes import four_fills
from explorer.views.museum.mistakes.output_mistakes import lowest_loss
from models import Transformer, TransformerConfig, trace
from models.positional import sinusoids
from models.presets import (
    LECTURE_HANDOUT,
    NOTEBOOK_TUTORIAL,
    WEB_TUTORIAL_CLASSIFIER,
    WEB_TUTORIAL_ENCODER,
)
from models.transformer import evaluating

Line = tuple[str, ...]
"""What is measured; with the mistake; right."""

WIDTH, POSITIONS, OFFSET = 512, 60, 5
HARD_CODED_EXPANSION = 4
SOURCE = [[0, 2, 5, 6, 4, 3, 9, 5, 2, 9, 10, 1], [0, 2, 8, 7, 3, 4, 5, 6, 7, 2, 10, 1]]
TARGET = [[0, 1, 7, 4, 3, 5, 9, 2, 8, 10, 9, 1], [0, 1, 5, 6, 2, 4, 7, 6, 2, 8, 10, 1]]
PRINTED = 398_272
PADS = 10


def _position_numbers() -> list[Line]:
    """Exhibit 1, at the notebook's width of 512."""
    where = torch.arange(POSITIONS)
    tables = doubled_sinusoids(where, WIDTH), sinusoids(where, WIDTH)

    def both(of: Callable[[Tensor], str]) -> tuple[str, str]:
        return of(tables[0]), of(tables[1])

    return [
        ("PE(1)[0:4]", *both(lambda table: " ".join(f"{x:.4f}" for x in table[1, :4].tolist()))),
        (
            f"dimensions, of {WIDTH}, that change by less than 0.01 over {POSITIONS} positions",
            *both(lambda table: str(barely_moving(table))),
        ),
        (
            f"standard deviation of the dot product of positions {OFFSET} apart",
            *both(lambda table: spread(spread_at(table, OFFSET))),
        ),
    ]


def _batch_softmax_numbers() -> list[Line]:
    """Exhibit 2, with the notebook's own model and its own call."""
    model = notebook()
    as_written = with_mistakes(model, "doubled-exponent", "shared-projection", "lost-target")
    as_written = with_mistakes(as_written, "batch-softmax", "never-appends")
    source = torch.tensor(SOURCE[:1])
    with evaluating(as_written):
        written = as_written.generate(source, max_length=12)[0, 1:].tolist()
        right = model.generate(source, max_length=12, temperature=0.0)[0, 1:].tolist()
        first = as_written(source, source)[0, -1]
        first_right = model(source, source)[0, -1].softmax(-1)
    return [
        ("the twelve token IDs it prints, untrained", _listed(written), _listed(right)),
        ("largest probability, batch of 1", _top(first), _top(first_right)),
        ("smallest probability, batch of 1", _low(first), _low(first_right)),
    ]


def _lost_target_numbers() -> list[Line]:
    """Exhibit 3, at six layers."""
    model = notebook()
    lost = with_mistakes(model, "doubled-exponent", "shared-projection", "lost-target")
    changes = (three(target_change(each)) for each in (lost, model))
    return [("the whole target replaced: largest change of a logit", *changes)]


def _never_appends_numbers() -> list[Line]:
    """Exhibit 4, with and without the lost target."""
    model = notebook()
    writes, lost = (
        with_mistakes(model, "never-appends"),
        with_mistakes(model, "lost-target", "never-appends"),
    )
    source = torch.tensor(SOURCE[:1])
    with evaluating(model):
        right = _listed(model.generate(source, max_length=12, temperature=0.0)[0, 1:].tolist())
        alone = _listed(writes.generate(source, max_length=12)[0, 1:].tolist())
        both = _listed(lost.generate(source, max_length=12)[0, 1:].tolist())
    try:
        two = str(tuple(writes.generate(torch.tensor(SOURCE), max_length=1).shape))
    except RuntimeError as error:
        two = str(error)
    return [
        ("twelve token IDs, untrained", alone, right),
        ("twelve token IDs, the target lost as well", both, right),
        ("a batch of two", two, "two answers"),
    ]


def _shared_projection_numbers() -> list[Line]:
    """Exhibit 5: the parameters of the notebook's model."""
    with torch.device("meta"):
        model = Transformer(NOTEBOOK_TUTORIAL)
    counts = with_mistakes(model, "shared-projection"), model
    return [("parameters", *(f"{parameter_count(each):,}" for each in counts))]


def _fixed_heads_numbers() -> list[Line]:
    """Exhibit 6: with n_heads=4 and expansion_factor=2 as arguments."""
    model = Transformer(NOTEBOOK_TUTORIAL.replace(n_layers=1, n_heads=4))
    ids = torch.tensor(SOURCE[:1])

    def widths(each: Transformer, stack: str) -> str:
        q = trace(each, ids, ids, sites=("*.self_attn.q",))[f"{stack}.0.self_attn.q"]
        return f"{q.shape[1]} of width {q.shape[3]}"

    both = with_mistakes(model, "fixed-heads"), model
    inner = [factor * WIDTH for factor in (HARD_CODED_EXPANSION, 2)]
    asked = "expansion_factor=2, width inside the decoder's feed-forward layer"
    lines: list[Line] = [
        (f"n_heads=4, heads of the {stack}", *(widths(each, stack) for each in both))
        for stack in ("encoder", "decoder")
    ]
    return [*lines, (asked, *(f"{width:,}" for width in inner))]


def _no_padding_mask_numbers() -> list[Line]:
    """Exhibit 7: the web tutorial's classifier, untrained, weights and text from seed 0.

    The document prints no logits; quoted ones name no seed.
    """
    model = Transformer(WEB_TUTORIAL_CLASSIFIER.replace(pad_id=0)).eval()
    ids = torch.randint(1, 5000, (1, 20), generator=torch.Generator().manual_seed(0))
    longer = torch.nn.functional.pad(ids, (0, PADS))
    blind = with_mistakes(model, "no-padding-mask")
    with evaluating(model):
        return [
            (name, *(_pair(each(read)[0]) for each in (blind, model)))
            for name, read in (
                ("logits", ids),
                (f"logits with {PADS} padding tokens after it", longer),
            )
        ]


def _softmax_twice_numbers() -> list[Line]:
    """Exhibit 8: the lowest possible loss at the notebook's eleven tokens."""
    sure = torch.zeros(1, 11)
    sure[0, 3] = 100.0
    losses = [
        torch.nn.functional.cross_entropy(given, torch.tensor([3]))
        for given in (sure.softmax(-1), sure)
    ]
    return [
        ("loss of a model that is certain and right", *(three(float(each)) for each in losses)),
        ("lowest possible loss", three(lowest_loss(11)), "0"),
    ]


def _fill_numbers() -> list[Line]:
    """Exhibit 9: a fully masked row of three keys, in float32 and in float16."""
    scores = torch.tensor([0.3, -1.2, 0.8])
    single, half = (four_fills(scores, dtype) for dtype in (torch.float32, torch.float16))
    return [(name, _row(single[name]), _row(half[name])) for name in single]


def _dropped_weights_numbers() -> list[Line]:
    """Exhibit 10: the handout's attention, whose count is right."""
    with torch.device("meta"):
        model = Transformer(LECTURE_HANDOUT)
    assert model.encoder is not None
    attention = model.encoder.get_submodule("blocks.0.self_attn")
    count = f"{sum(p.numel() for p in attention.parameters()):,}"
    return [
        ("parameters of one attention at d_model 512", count, count),
        ("attention maps returned", "0", "one per head"),
    ]


def _printed_count_numbers() -> list[Line]:
    """Exhibit 11: the encoder, part by part."""
    with torch.device("meta"):
        model = Transformer(WEB_TUTORIAL_ENCODER)
    stack = model.encoder
    assert stack is not None
    embedding, norm = parameter_count(stack.embedding), parameter_count(stack.norm)
    layer, total = parameter_count(stack.blocks[0]), parameter_count(model)
    left = (PRINTED - embedding - norm) // 4
    return [
        ("total parameters", f"{PRINTED:,}", f"{total:,}"),
        ("embedding, 5,000 × 64", f"{embedding:,}", f"{embedding:,}"),
        ("each of four layers", f"{left:,} would be left", f"{layer:,}"),
        ("final norm, 2 × 64", f"{norm:,}", f"{norm:,}"),
    ]


def _wrong_scale_numbers() -> list[Line]:
    """Exhibit 14: the frequencies of the handout's table at its width."""
    table = sinusoids(torch.arange(2), WIDTH)
    angles = torch.atan2(table[1, 0::2], table[1, 1::2])
    return [
        ("distinct frequencies in 512 dimensions", "“each dimension”: 512", _different(angles)),
        ("scale at d_model 512, 8 heads", three(WIDTH**-0.5), three(64**-0.5)),
    ]


def notebook() -> Transformer:
    """The notebook's model without its mistakes, untrained, from seed 0: 177 MB."""
    return Transformer(NOTEBOOK_TUTORIAL).eval()


def with_mistakes(model: Transformer, *names: str) -> Transformer:
    """The model with these mistakes, one after another."""
    for name in names:
        model = MISTAKES[name].make(model)
    return model


def parameter_count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def target_change(model: Transformer) -> float:
    """The largest change of a logit when every token of the notebook's target is replaced."""
    source, target = torch.tensor(SOURCE), torch.tensor(TARGET)
    with evaluating(model):
        return float((model(source, (target + 3) % 11) - model(source, target)).abs().max())


def _different(angles: Tensor) -> str:
    return str(len({f"{angle:.12g}" for angle in angles.tolist()}))


def _listed(ids: list[int]) -> str:
    return " ".join(map(str, ids))


def _top(values: Tensor) -> str:
    return three(float(values.max()))


def _low(values: Tensor) -> str:
    return three(float(values.min()))


def _pair(values: Tensor) -> str:
    return "(" + ", ".join(f"{value:.3f}" for value in values.tolist()) + ")"


def _row(weights: Tensor | None) -> str:
    if weights is None:
        return "out of range: an error"
    return " ".join("NaN" if x != x else f"{x:.3f}" for x in weights.tolist())


DOCUMENT_NUMBERS: dict[str, Callable[[], list[Line]]] = {
    "doubled-exponent": cache(_position_numbers),
    "batch-softmax": cache(_batch_softmax_numbers),
    "lost-target": cache(_lost_target_numbers),
    "never-appends": cache(_never_appends_numbers),
    "shared-projection": cache(_shared_projection_numbers),
    "fixed-heads": cache(_fixed_heads_numbers),
    "no-padding-mask": cache(_no_padding_mask_numbers),
    "softmax-twice": cache(_softmax_twice_numbers),
    "filled-row": cache(_fill_numbers),
    "dropped-weights": cache(_dropped_weights_numbers),
    "printed-count": cache(_printed_count_numbers),
    "wrong-scale": cache(_wrong_scale_numbers),
}
"""By the name of the mistake; each is computed once."""
LARGE = ("batch-softmax", "lost-target", "never-appends")
"""These build the notebook's whole model."""


def parameters_and_bytes(config: TransformerConfig) -> tuple[int, int]:
    """The number of parameters and their bytes, without building the model."""
    count = count_parameters(config)
    return count, 4 * count
