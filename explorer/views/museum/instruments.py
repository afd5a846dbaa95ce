"""The museum's instruments: each measures a model in one number; some also draw a picture.

Every instrument measures every model in the same way and knows none of the mistakes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from explorer.analysis.position_schemes import measure_table
from explorer.catalog.attention_parts import head_title
from explorer.catalog.attention_parts import site as site_of
from explorer.inference.answers import class_names
from explorer.text.number_format import spread, three
from explorer.views.museum.measured_run import MeasuredRun
from models import Transformer
from models.block import Residual
from models.gradients import GradientError
from models.interventions import Scale
from models.losses import IGNORE
from models.positional import PositionalEncoding

MOST_GENERATED = MOST_PLACES = MOST_OUTPUTS = 12
MOST_WITH_PADDING = 128
"""A longer sentence is measured with padding, but not drawn."""
PADS = 10
POSITIONS_SEEN, OFFSET = 60, 5
NO_CROSS_ATTENTION = (Scale("decoder.*.cross_attn.out", 0.0),)


@dataclass(frozen=True, eq=False)
class InstrumentPicture:
    """Values (rows, columns), their labels and their title; `caption` is a line below them."""

    values: Tensor
    down: tuple[str, ...]
    across: tuple[str, ...]
    title: str
    axes: tuple[str, str] = ("query", "key")
    unit: str = "weight"
    caption: str = ""

    def is_like(self, other: "InstrumentPicture") -> bool:
        """Whether the two look the same."""
        names = self.down, self.across, other.down, other.across
        return names[:2] == names[2:] and torch.allclose(
            self.values, other.values, atol=1e-6, equal_nan=True
        )


@dataclass(frozen=True, eq=False)
class InstrumentResult:
    """A number (None if there is none), a sentence that says it, more lines, a picture.

    `phrase` is the number in other sentences, if three digits are not enough.
    """

    number: float | None
    sentence: str
    lines: tuple[tuple[str, str], ...] = ()
    picture: InstrumentPicture | None = None
    phrase: str = ""

    @property
    def short(self) -> str:
        """The number in a few words, for a sentence."""
        return self.phrase or ("nothing" if self.number is None else three(self.number))


def _shapes(run: MeasuredRun) -> InstrumentResult:
    """The shapes of the queries in the first layers, and the number of parameters."""
    queries = run.recorded("*.0.self_attn.q", "*.0.cross_attn.q")
    lines = [
        (site, f"1 × {q.shape[1]} heads × {q.shape[2]} tokens × {q.shape[3]}")
        for site, q in queries.items()
    ]
    count = run.model.n_parameters
    widths = {site.split(".")[0]: q.shape[-1] for site, q in queries.items()}
    heads = ", ".join(f"{stack} heads of width {width}" for stack, width in widths.items())
    sentence = f"{count:,} parameters; {heads or 'no queries were recorded'}"
    return InstrumentResult(float(count), sentence, tuple(lines), phrase=heads or "no queries")


def _attention_map(run: MeasuredRun) -> InstrumentResult:
    """The map of the chosen head; its labels are the source's if a mistake attends to that."""
    part, layer, head = run.head
    maps = run.recorded(f"{site_of(part, layer)}.weights")
    if not maps:
        return InstrumentResult(None, "no weights were recorded, so there is no map to draw")
    (weights,) = maps.values()
    if head >= weights.shape[1]:
        return InstrumentResult(None, f"this run has no head {head} there, so there is no picture")
    weights = weights[0, head]
    entropy = -(weights * weights.clamp(min=1e-12).log()).sum(-1).mean()
    effective_keys = float(entropy.exp())
    sentence = f"a query reads about {three(effective_keys)} tokens (e to the mean entropy)"
    rows, columns = run.forward.rows(part), run.forward.columns(part)
    if weights.shape != (len(rows), len(columns)):
        rows = columns = run.forward.source
    down, across = (tuple(token.label for token in tokens) for tokens in (rows, columns))
    title = head_title(run.opened.title, *run.head)
    picture = InstrumentPicture(weights, down, across, title)
    return InstrumentResult(effective_keys, sentence, picture=picture)


def _masked_row(run: MeasuredRun) -> InstrumentResult:
    """The weights of the first row when every key is masked as padding."""
    site = f"{run.first_stack}.0.self_attn.weights"
    maps = run.recorded(site, keep=torch.zeros_like(run.ids, dtype=torch.bool))
    if site not in maps:
        return InstrumentResult(None, "no weights were recorded")
    weights, names = maps[site][0, 0], run.names_of(run.ids[0])
    title = f"{head_title(run.opened.title, run.forward.parts[0].name, 0, 0)}, every key masked"
    picture = InstrumentPicture(weights, names, names, title)
    row, total = weights[0], float(weights[0].sum())
    if row.isnan().any():
        sentence = "a fully masked row is NaN, and so is its sum"
        return InstrumentResult(total, sentence, picture=picture, phrase="NaN")
    first = ", ".join(three(value) for value in row[:4].tolist())
    more = ", …" if len(row) > 4 else ""
    sentence = f"a fully masked row is {first}{more} and sums to {three(total)}"
    return InstrumentResult(total, sentence, picture=picture)


def _model_output(run: MeasuredRun) -> InstrumentResult:
    """The output at the last position."""
    output = run.output(read_at=slice(-MOST_PLACES, None))[0]
    last = output[-1] if output.dim() == 2 else output
    total = float(last.sum())
    low, high = three(float(last.min())), three(float(last.max()))
    lines = ("smallest", low), ("largest", high), ("argmax", str(int(last.argmax())))
    sentence = f"{last.numel():,} values between {low} and {high}, sum {three(total)}"
    picture = _output_picture(run, output)
    return InstrumentResult(total, sentence, lines, picture, f"a sum of {three(total)}")


def _output_picture(run: MeasuredRun, output: Tensor) -> InstrumentPicture:
    """The largest outputs at the last position, and those at the positions before it."""
    rows = output[None] if output.dim() == 1 else output[-MOST_PLACES:]
    largest = rows[-1].sort(descending=True, stable=True).indices[:MOST_OUTPUTS]
    head = run.model.config.head
    if head == "classifier":
        across = tuple(class_names(run.opened)[i] for i in largest.tolist())
    else:
        across = tuple(map(str, largest.tolist())) if head == "none" else run.names_of(largest)
    down = ("text",) if output.dim() == 1 else run.names_of(run.last_ids[0, -len(rows) :])
    caption = f"Last row: the {len(across)} largest at the last position. Above: the same earlier."
    if len(rows) == 1:
        caption = f"The {len(across)} largest."
    title = f"{run.opened.title} · Output at the last positions"
    return InstrumentPicture(
        rows[:, largest], down, across, title, ("position", "output"), "output", caption
    )


def _loss(run: MeasuredRun) -> InstrumentResult:
    """The cross-entropy of the output against the answer, and its gradient at the embeddings."""
    if run.labels is None:
        if run.model.config.head == "none":
            return InstrumentResult(None, "this model has no head, so there is no loss")
        return InstrumentResult(None, "its labels are not one of several, so there is no loss")
    if bool((run.labels == IGNORE).all()):
        return InstrumentResult(None, "no token follows this one, so there is no loss")
    try:
        loss = run.loss_gradients()
    except GradientError as error:
        return InstrumentResult(None, str(error))
    lines = tuple(
        (f"gradient at {site}, all tokens", three(float(gradient.norm())))
        for site, gradient in loss.gradients.items()
    )
    return InstrumentResult(loss.scalar, f"the loss is {three(loss.scalar)} nats", lines)


def _causality(run: MeasuredRun) -> InstrumentResult:
    """The change of the earlier logits, or of the earlier stream, with another last token."""
    if run.last_stack != "decoder":
        return InstrumentResult(
            None, "an encoder attends to later tokens, so there is no causality to check"
        )
    until = run.last_ids.shape[1] - 1
    if not until:
        return InstrumentResult(None, "there is only one token, so nothing comes before it")
    replaced = run.replaced_tokens(run.last_ids, slice(-1, None))
    ids, target = (replaced, None) if run.target is None else (None, replaced)
    if run.model.config.head.endswith("language-model"):
        change, what = run.logit_change(ids, target, until), "logits before it change"
    else:  # no logits before the last token
        difference = run.final_stream(ids, target)[:, :until] - run.final_stream()[:, :until]
        change, what = float(difference.abs().max()), "the stream before it changes"
    return InstrumentResult(change, f"with another last token, {what} by {three(change)}")


def _replaced_target(run: MeasuredRun) -> InstrumentResult:
    """The change of the logits with every target token replaced, cross-attention ablated or not."""
    if run.target is None:
        return InstrumentResult(
            None, "this model takes one sequence, so there is no target to replace"
        )
    replaced = run.replaced_tokens(run.target, slice(None))
    change = run.logit_change(target=replaced)
    ablated = run.logit_change(target=replaced, edits=NO_CROSS_ATTENTION)
    return InstrumentResult(
        ablated,
        "with cross-attention ablated, replacing every target token changes the logits by "
        f"{three(ablated)}",
        (("with cross-attention, it changes the logits by", three(change)),),
    )


def _padding(run: MeasuredRun) -> InstrumentResult:
    """The change of the logits with padding after the sentence."""
    pad_id, config = run.opened.config.pad_id, run.opened.config
    pads = PADS if config.positions == "none" else min(PADS, config.max_len - run.ids.shape[1])
    if pad_id is None or pads < 1:
        return InstrumentResult(
            None, "there is no padding token, or no room for it after this sentence"
        )
    longer = pad(run.ids, (0, pads), value=pad_id)
    change = run.logit_change(longer, until=run.last_ids.shape[1])
    tokens = f"{pads} padding token{'s' if pads > 1 else ''}"
    sentence = f"with {tokens} after the sentence, the logits change by {three(change)}"
    return InstrumentResult(change, sentence, picture=_padded_picture(run, longer))


def _padded_picture(run: MeasuredRun, longer: Tensor) -> InstrumentPicture | None:
    """The map of the chosen head with padding after the sentence, if it can be drawn."""
    part, layer, head = run.head
    if run.ids.shape[1] > MOST_WITH_PADDING:
        return None
    if part == "decoder.self_attn" and run.target is not None:  # it does not read the source
        part, layer, head = run.forward.parts[0].name, 0, 0
    maps = run.recorded(f"{site_of(part, layer)}.weights", ids=longer)
    rows, across = tuple(token.label for token in run.forward.rows(part)), run.names_of(longer[0])
    for weights in maps.values():
        _, heads, n_queries, n_keys = weights.shape
        if head < heads and n_queries >= len(rows) and n_keys == len(across):
            title = f"{head_title(run.opened.title, part, layer, head)}, padding after the sentence"
            return InstrumentPicture(weights[0, head, : len(rows)], rows, across, title)
    return None


def _positions(run: MeasuredRun) -> InstrumentResult:
    """The table of positions, and how far dot products at one distance vary."""
    scheme = getattr(run.model, run.first_stack).positions
    if not isinstance(scheme, PositionalEncoding):
        return InstrumentResult(None, "no computed position table is added to the embedding")
    table = scheme.pe[0, :POSITIONS_SEEN].double()
    offset = min(OFFSET, len(table) // 2)
    measurement = measure_table(table, offset)
    deviation = spread(measurement.spread)
    lines = (
        (
            "position 1, the first four values",
            " ".join(f"{value:.4f}" for value in measurement.first),
        ),
        (f"dimensions, of {table.shape[1]}, that change by less than 0.01", str(measurement.still)),
        (f"standard deviation of the dot product, {offset} apart", deviation),
    )
    down, across = (tuple(map(str, range(size))) for size in table.shape)
    title = f"{run.opened.title} · Position encodings"
    picture = InstrumentPicture(
        table.float(), down, across, title, ("position", "dimension"), "value"
    )
    sentence = (
        f"the dot product of positions {offset} apart has a standard deviation of {deviation}"
    )
    return InstrumentResult(measurement.spread, sentence, lines, picture, deviation)


def _generation(run: MeasuredRun) -> InstrumentResult:
    """What the model generates greedily, and how many of these tokens are distinct."""
    config = run.model.config
    if config.head != "language-model" or "decoder" not in config.stacks:
        return InstrumentResult(None, "this model does not generate text")
    read = 1 if run.target is not None else run.ids.shape[1]
    room = config.max_len - read
    if room < 1:
        return InstrumentResult(None, "there is no room to generate after this sentence")
    ids = run.model.generate(run.ids, max_length=min(MOST_GENERATED, room), temperature=0.0)
    new = ids[0, read:]
    names, n_distinct = run.names_of(new), len(set(new.tolist()))
    lines = (
        ("token IDs", " ".join(map(str, new.tolist()))),
        ("distinct tokens", f"{n_distinct} of {len(new)}"),
    )
    picture = InstrumentPicture(
        (new[:, None] == new).float(),
        names,
        names,
        f"{run.opened.title} · Equal tokens among those generated",
        ("token", "token"),
        "same",
        "Filled where two of the generated tokens are the same.",
    )
    phrase = f"{n_distinct} distinct tokens of {len(new)}"
    sentence = f"it generates: {' '.join(names)}"
    return InstrumentResult(float(n_distinct), sentence, lines, picture, phrase)


def _swapped_slices(run: MeasuredRun) -> InstrumentResult:
    """Whether swapping two slices of the input only swaps two heads."""
    config = run.opened.config
    if config.n_heads < 2 or config.kv_heads * config.head_width != config.d_model:
        return InstrumentResult(None, "the heads of this model do not split the stream into slices")
    site = f"{run.first_stack}.embed"
    x, width = run.recorded(site)[site], config.head_width
    first, second, rest = x.split((width, width, config.d_model - 2 * width), -1)
    swapped = torch.cat((second, first, rest), -1)
    attention = getattr(run.model, run.first_stack).blocks[0].self_attn
    with torch.no_grad():
        differences = [
            (project(x)[..., width : 2 * width] - project(swapped)[..., :width]).abs().max()
            for project in (attention.q_proj, attention.k_proj, attention.v_proj)
        ]
    difference = float(torch.stack(differences).max())
    swap = "with the first two slices swapped"
    return InstrumentResult(
        difference, f"{swap}, head 0 differs from the former head 1 by {three(difference)}"
    )


def norm_placement(model: Transformer) -> str:
    """Where the sublayers of a model have their norms as it runs, whatever its config says."""
    if model.config.norm_position == "sandwich":
        return "sandwich"
    residual = next(module for module in model.modules() if isinstance(module, Residual))
    return "pre" if residual.pre else "post"


def _residual_stream(run: MeasuredRun) -> InstrumentResult:
    """The root mean square of the residual stream after every block of the last stack."""
    streams = run.recorded(f"{run.last_stack}.*.resid_post").values()
    sizes = [float(stream.square().mean().sqrt()) for stream in streams]
    lines = tuple((f"after block {layer}", three(size)) for layer, size in enumerate(sizes))
    lines = (("norm placement", norm_placement(run.model)), *lines)
    sentence = f"after the last block, the root mean square is {three(sizes[-1])}"
    return InstrumentResult(sizes[-1], sentence, lines)


def _score_scale(run: MeasuredRun) -> InstrumentResult:
    """The factor between q·k and the scores."""
    sites = [f"{run.first_stack}.0.self_attn.{name}" for name in ("q", "k", "scores")]
    values = run.recorded(*sites)
    if sites[2] not in values or run.model.config.attention_cap is not None:
        return InstrumentResult(None, "the scores were not recorded")
    q, k, scores = (values[site][0, 0] for site in sites)
    products = q @ k.mT
    factor = float((scores * products).sum() / products.square().sum())
    width = q.shape[-1]
    sentence = f"scores are q·k × {three(factor)}; 1/√d_k would be {three(1 / math.sqrt(width))}"
    return InstrumentResult(factor, sentence, (("d_k", str(width)),))


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
