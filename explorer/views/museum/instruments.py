"""The museum's instruments: each measures a model in one number; some also draw a picture.

Every instrument measures any model in the same way and knows no mistake.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.position_schemes import barely_moving, spread_at
from explorer.catalog.attention_parts import site as site_of
from explorer.catalog.folders import own_name
from explorer.text.number_format import spread as in_digits
from explorer.text.number_format import three
from explorer.views.museum import instrument_pictures
from explorer.views.museum.instrument_pictures import InstrumentPicture
from explorer.views.museum.measured_run import NOWHERE, EmbeddingLeaves, MeasuredRun, head_map
from explorer.views.museum.mistakes.stack_mistakes import stream_sizes
from models.losses import IGNORE, cross_entropy
from models.positional import PositionalEncoding

MOST_GENERATED = 12
PADS = 10
POSITIONS_SEEN, OFFSET = 60, 5


@dataclass(frozen=True, eq=False)
class InstrumentResult:
    """What an instrument found: its number (None where it has none), a sentence, more lines."""

    number: float | None
    said: str
    lines: tuple[tuple[str, str], ...] = ()
    picture: InstrumentPicture | None = None
    named: str = ""

    @property
    def short(self) -> str:
        """The number as it stands in a sentence."""
        return self.named or ("nothing" if self.number is None else three(self.number))


def _shapes(run: MeasuredRun) -> InstrumentResult:
    """The shapes of the queries in the first layers, and the number of parameters."""
    parts = ("encoder.0.self_attn", "decoder.0.self_attn", "decoder.0.cross_attn")
    queries = run.recorded({f"{part}.q": _all for part in parts})
    lines = [
        (site, f"1 × {q.shape[1]} heads × {q.shape[2]} tokens × {q.shape[3]}")
        for site, q in queries.items()
    ]
    count = sum(parameter.numel() for parameter in run.model.parameters())
    widths = {site.split(".")[0]: q.shape[-1] for site, q in queries.items()}
    heads = ", ".join(f"{stack} heads of width {width}" for stack, width in widths.items())
    said = f"{count:,} parameters; {heads or 'no queries were recorded'}"
    return InstrumentResult(float(count), said, tuple(lines), named=heads or "no queries")


def _attention_map(run: MeasuredRun) -> InstrumentResult:
    """The map of the chosen head."""
    part, layer, head = run.head
    weights = run.recorded({f"{site_of(part, layer)}.weights": head_map(head)})
    if not weights:
        return InstrumentResult(None, "no weights were recorded, so there is no map to draw")
    (drawn,) = weights.values()
    if not len(drawn):
        return InstrumentResult(None, f"this run has no head {head} there, so there is no picture")
    entropy = -(drawn * drawn.clamp(min=1e-12).log()).sum(-1).mean()
    spread = float(entropy.exp())
    said = f"{three(spread)} effective keys (e to the mean entropy of the rows)"
    return InstrumentResult(spread, said, picture=instrument_pictures.map_picture(run, drawn))


def _masked_row(run: MeasuredRun) -> InstrumentResult:
    """The same sentence with every key masked as padding: the weights of its first row."""
    site = f"{run.first_stack}.0.self_attn.weights"
    nothing = torch.zeros_like(run.ids, dtype=torch.bool)
    recorded = run.recorded({site: _first_head}, keep=nothing)
    if site not in recorded:
        return InstrumentResult(None, "no weights were recorded")
    row, picture = recorded[site][0], instrument_pictures.masked_picture(run, recorded[site])
    if row.isnan().any():
        said = "a fully masked row is NaN, and so is its sum"
        return InstrumentResult(float(row.sum()), said, picture=picture, named="NaN")
    total = float(row.sum())
    first = ", ".join(three(value) for value in row[:4].tolist())
    more = ", …" if len(row) > 4 else ""
    said = f"a fully masked row is {first}{more} and sums to {three(total)}"
    return InstrumentResult(total, said, picture=picture)


def _model_output(run: MeasuredRun) -> InstrumentResult:
    """The output at the last position."""
    output = run.logits(read_at=slice(-instrument_pictures.MOST_PLACES, None))[0]
    last = output[-1] if output.dim() == 2 else output
    total = float(last.sum())
    low, high = three(float(last.min())), three(float(last.max()))
    lines = ("smallest", low), ("largest", high), ("argmax", str(int(last.argmax())))
    said = f"{last.numel():,} values between {low} and {high}, sum {three(total)}"
    picture = instrument_pictures.output_picture(run, output)
    return InstrumentResult(total, said, lines, picture, f"a sum of {three(total)}")


def _loss(run: MeasuredRun) -> InstrumentResult:
    """The cross-entropy of the output against the answer, and its gradient at the embeddings."""
    if run.labels is None:
        return InstrumentResult(None, "this model has no head, so there is no loss")
    if bool((run.labels == IGNORE).all()):
        return InstrumentResult(None, "no token follows this one, so there is no loss")
    tap = EmbeddingLeaves()
    with torch.enable_grad():
        if run.model.config.head == "classifier":
            value = cross_entropy(run.output(tap=tap), run.labels)
            gradients = torch.autograd.grad(value, list(tap.leaves.values()), allow_unused=True)
        else:
            run.output(tap=tap, read_at=NOWHERE)
            final = tap.finals[f"{run.last_stack}.final"]
            value, back = run.loss_and_gradient(final.detach(), run.labels)
            leaves = list(tap.leaves.values())
            gradients = torch.autograd.grad(final, leaves, back, allow_unused=True)
    sizes = [0.0 if gradient is None else float(gradient.norm()) for gradient in gradients]
    lines = tuple(
        (f"gradient at {site}, all tokens", three(size))
        for site, size in zip(tap.leaves, sizes, strict=True)
    )
    nats = float(value.detach())
    return InstrumentResult(nats, f"the loss is {three(nats)} nats", lines)


def _causality(run: MeasuredRun) -> InstrumentResult:
    """Another last token: the change of the logits before it, or of the stream without logits."""
    if run.last_stack != "decoder":
        return InstrumentResult(
            None, "an encoder attends to later tokens, so there is no causality to check"
        )
    until = run.last_ids.shape[1] - 1
    if not until:
        return InstrumentResult(None, "there is only one token, so nothing comes before it")
    other = run.replaced_tokens(run.last_ids, slice(-1, None))
    ids, target = (other, None) if run.target is None else (None, other)
    if not run.model.config.head.endswith("language-model"):  # no logits before the last token
        change = run.stream_change(ids, target, until)
        said = f"with another last token, the stream before it changes by {three(change)}"
        return InstrumentResult(change, said)
    change = run.logit_change(ids, target, until)
    return InstrumentResult(
        change, f"with another last token, logits before it change by {three(change)}"
    )


def _replaced_target(run: MeasuredRun) -> InstrumentResult:
    """Every target token replaced, with cross-attention ablated and without."""
    if run.target is None:
        return InstrumentResult(
            None, "this model takes one sequence, so there is no target to replace"
        )
    other = run.replaced_tokens(run.target, slice(None))
    change, alone = (run.logit_change(target=other, is_ablated=each) for each in (False, True))
    return InstrumentResult(
        alone,
        "with cross-attention ablated, replacing every target token changes the logits by "
        f"{three(alone)}",
        (("with cross-attention, it changes the logits by", three(change)),),
    )


def _padding(run: MeasuredRun) -> InstrumentResult:
    """Padding after the sentence: the change of the logits."""
    pad, config = run.opened.config.pad_id, run.opened.config
    pads = PADS if config.positions == "none" else min(PADS, config.max_len - run.ids.shape[1])
    if pad is None or pads < 1:
        return InstrumentResult(
            None, "there is no padding token, or no room for it after this sentence"
        )
    longer = torch.nn.functional.pad(run.ids, (0, pads), value=pad)
    change = run.logit_change(longer, until=run.last_ids.shape[1])
    tokens = f"{pads} padding token{'s' if pads > 1 else ''}"
    said = f"with {tokens} after the sentence, the logits change by {three(change)}"
    return InstrumentResult(change, said, picture=instrument_pictures.padded_picture(run, longer))


def _positions(run: MeasuredRun) -> InstrumentResult:
    """The table of positions, and how the dot product of two depends on more than distance."""
    scheme = getattr(run.model, run.first_stack).positions
    if not isinstance(scheme, PositionalEncoding):
        return InstrumentResult(None, "no computed position table is added to the embedding")
    table = scheme.pe[0, :POSITIONS_SEEN].double()
    offset = min(OFFSET, len(table) // 2)
    start = " ".join(f"{value:.4f}" for value in table[1, :4].tolist())
    still, spread = barely_moving(table), spread_at(table, offset)
    deviation = in_digits(spread)
    lines = (
        ("position 1, the first four values", start),
        (f"dimensions, of {table.shape[1]}, that change by less than 0.01", str(still)),
        (f"standard deviation of the dot product, {offset} apart", deviation),
    )
    down, across = (tuple(map(str, range(size))) for size in table.shape)
    title = f"{own_name(run.opened.name)} · Position encodings"
    picture = InstrumentPicture(
        table.float(), down, across, title, ("position", "dimension"), "value"
    )
    said = f"the dot product of positions {offset} apart has a standard deviation of {deviation}"
    return InstrumentResult(spread, said, lines, picture, deviation)


def _generation(run: MeasuredRun) -> InstrumentResult:
    """What the model generates, always the likeliest token."""
    config = run.model.config
    if config.head != "language-model" or "decoder" not in config.stacks:
        return InstrumentResult(None, "this model does not generate text")
    read = 1 if run.target is not None else run.ids.shape[1]
    room = config.max_len - read
    if room < 1:
        return InstrumentResult(None, "there is no room to generate after this sentence")
    ids = run.model.generate(run.ids, max_length=min(MOST_GENERATED, room), temperature=0.0)
    new = ids[0, read:].tolist()
    different = len(set(new))
    lines = (
        ("token IDs", " ".join(map(str, new))),
        ("distinct tokens", f"{different} of {len(new)}"),
    )
    named = f"{different} distinct tokens of {len(new)}"
    said = f"it generates: {run.text_of(new)}"
    picture = instrument_pictures.repeats_picture(run, new)
    return InstrumentResult(float(different), said, lines, picture, named)


def _swapped_slices(run: MeasuredRun) -> InstrumentResult:
    """Two slices of the input swapped: whether that only swaps two heads."""
    config = run.opened.config
    if config.n_heads < 2 or config.kv_heads * config.head_width != config.d_model:
        return InstrumentResult(None, "the heads of this model do not split the stream into slices")
    site = f"{run.first_stack}.embed"
    x = run.recorded({site: _all})[site]
    width = config.head_width
    swapped = torch.cat((x[..., width : 2 * width], x[..., :width], x[..., 2 * width :]), -1)
    attention = getattr(run.model, run.first_stack).blocks[0].self_attn
    apart = 0.0
    with torch.no_grad():
        for project in (attention.q_proj, attention.k_proj, attention.v_proj):
            one = project(x)[..., width : 2 * width]
            other = project(swapped)[..., :width]
            apart = max(apart, float((one - other).abs().max()))
    swap = "with the first two slices swapped"
    return InstrumentResult(
        apart, f"{swap}, head 0 differs from the former head 1 by {three(apart)}"
    )


def _residual_stream(run: MeasuredRun) -> InstrumentResult:
    """The root mean square of the residual stream after every block of the last stack."""
    layers = range(len(getattr(run.model, run.last_stack).blocks))
    after = {f"{run.last_stack}.{layer}.resid_post": _all for layer in layers}
    sizes = stream_sizes(run.model, run.recorded(after))
    lines = tuple((f"after block {layer}", three(size)) for layer, size in enumerate(sizes))
    lines = (("norm placement in the config", run.model.config.norm_position), *lines)
    said = f"after the last block, the root mean square is {three(sizes[-1])}"
    return InstrumentResult(sizes[-1], said, lines)


def _score_scale(run: MeasuredRun) -> InstrumentResult:
    """The factor between q·k and the scores."""
    base = f"{run.first_stack}.0.self_attn"
    seen = run.recorded({f"{base}.{name}": _first_head for name in ("q", "k", "scores")})
    if f"{base}.scores" not in seen or run.model.config.attention_cap is not None:
        return InstrumentResult(None, "the scores were not recorded")
    q, k, scores = (seen[f"{base}.{name}"] for name in ("q", "k", "scores"))
    products = q @ k.mT
    factor = float((scores * products).sum() / products.square().sum())
    width = q.shape[-1]
    said = f"scores are q·k × {three(factor)}; 1/√d_k would be {three(1 / math.sqrt(width))}"
    return InstrumentResult(factor, said, (("d_k", str(width)),))


INSTRUMENTS: dict[str, Callable[[MeasuredRun], InstrumentResult]] = {
    "Shapes": _shapes,
    "Attention map": _attention_map,
    "Fully masked row": _masked_row,
    "Model output": _model_output,
    "Loss and gradients": _loss,
    "Causality check": _causality,
    "Replaced target": _replaced_target,
    "Padding": _padding,
    "Positions": _positions,
    "Generation": _generation,
    "Swapped slices": _swapped_slices,
    "Residual stream": _residual_stream,
    "Score scale": _score_scale,
}
"""By the name on screen, in the order in which one would try them."""


def _all(value: Tensor) -> Tensor:
    return value


def _first_head(value: Tensor) -> Tensor:
    return value[0, 0]
