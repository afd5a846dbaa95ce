"""What one can hold to a model to see what is wrong with it; each gives a number, some a picture.

Every instrument measures any model the same way and knows no mistake.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.position_experiments import barely_moving, spread_at
from explorer.catalog.attention_parts import site as named_site
from explorer.text.number_format import spread as in_words
from explorer.text.number_format import three
from explorer.views.museum import instrument_pictures
from explorer.views.museum.case import NOWHERE, Case
from explorer.views.museum.instrument_pictures import Picture, named_look
from explorer.views.museum.mistakes.stack_mistakes import stream_sizes
from explorer.views.museum.museum_taps import Felt, one_head
from explorer.views.museum.perturbation import loss_of, moved_by, other_tokens, stream_moved_by
from models.losses import IGNORE, cross_entropy
from models.positional import PositionalEncoding

MOST_WRITTEN = 12
PADS = 10
POSITIONS_SEEN, OFFSET = 60, 5


@dataclass(frozen=True, eq=False)
class Found:
    """What an instrument shows: its number (None where it shows nothing), and lines beside it."""

    number: float | None
    said: str
    lines: tuple[tuple[str, str], ...] = ()
    picture: Picture | None = None
    named: str = ""

    @property
    def short(self) -> str:
        """The number as it stands in a sentence."""
        return self.named or ("nothing" if self.number is None else three(self.number))


def shapes(case: Case) -> Found:
    """What every attention of the first layers holds, and how many numbers the model has."""
    parts = ("encoder.0.self_attn", "decoder.0.self_attn", "decoder.0.cross_attn")
    seen = case.seen({f"{part}.q": _all for part in parts})
    lines = [
        (site, f"1 × {q.shape[1]} heads × {q.shape[2]} tokens × {q.shape[3]}")
        for site, q in seen.items()
    ]
    count = sum(parameter.numel() for parameter in case.model.parameters())
    widths = {site.split(".")[0]: q.shape[-1] for site, q in seen.items()}
    heads = ", ".join(f"{stack} heads of {width}" for stack, width in widths.items())
    said = f"{count:,} parameters; {heads or 'no query was shown to anybody'}"
    return Found(float(count), said, tuple(lines), named=f"{heads or 'nothing shown'}")


def weights(case: Case) -> Found:
    """The map of the chosen head."""
    part, layer, head = case.look
    site = f"{named_site(part, layer)}.weights"
    seen = case.seen({site: one_head(head)})
    if site not in seen:
        return Found(None, "no weights: they were computed and dropped, so there is no picture")
    if not len(seen[site]):
        return Found(None, f"this run has no head {head} there, so there is no picture")
    drawn = seen[site]
    entropy = -(drawn * drawn.clamp(min=1e-12).log()).sum(-1).mean()
    spread = float(entropy.exp())
    said = f"{named_look(case)}: its rows are spread over {three(spread)} tokens on average"
    return Found(spread, said, picture=instrument_pictures.looks(case, drawn))


def empty_row(case: Case) -> Found:
    """A sentence of nothing but filler beside it: what its first row looks at."""
    site = f"{case.first}.0.self_attn.weights"
    nothing = torch.zeros_like(case.ids, dtype=torch.bool)
    seen = case.seen({site: _first_head}, keep=nothing)
    if site not in seen:
        return Found(None, "no weights were shown to anybody")
    row, picture = seen[site][0], instrument_pictures.of_nothing(case, seen[site])
    if row.isnan().any():
        said = "a row that may see nothing is NaN, which is no number, and so is its sum"
        return Found(float(row.sum()), said, picture=picture, named="NaN")
    total = float(row.sum())
    shown = ", ".join(three(value) for value in row[:4].tolist())
    more = ", …" if len(row) > 4 else ""
    said = f"a row that may see nothing is {shown}{more} and sums to {three(total)}"
    return Found(total, said, picture=picture)


def outputs(case: Case) -> Found:
    """What leaves the model at the last place."""
    given = case.logits(read_at=slice(-instrument_pictures.MOST_PLACES, None))[0]
    last = given[-1] if given.dim() == 2 else given
    total = float(last.sum())
    low, high = float(last.min()), float(last.max())
    lines = (
        ("smallest", three(low)),
        ("largest", three(high)),
        ("argmax", str(int(last.argmax()))),
    )
    said = f"{last.numel():,} numbers between {three(low)} and {three(high)}, sum {three(total)}"
    return Found(
        total,
        said,
        lines,
        instrument_pictures.last_outputs(case, given),
        f"a sum of {three(total)}",
    )


def loss(case: Case) -> Found:
    """Cross-entropy of what leaves the model against the answer, and its gradient per token."""
    if case.labels is None:
        return Found(None, "this model has no head, so there is no loss")
    if bool((case.labels == IGNORE).all()):
        return Found(None, "nothing comes after this one token, so there is no loss")
    felt = Felt()
    with torch.enable_grad():
        if case.model.config.head == "classifier":
            value = cross_entropy(case.passed(tap=felt), case.labels)
            backwards = torch.autograd.grad(value, list(felt.leaves.values()), allow_unused=True)
        else:
            case.passed(tap=felt, read_at=NOWHERE)
            final = felt.finals[f"{case.last}.final"]
            value, back = loss_of(case, final.detach(), case.labels)
            leaves = list(felt.leaves.values())
            backwards = torch.autograd.grad(final, leaves, back, allow_unused=True)
    sizes = [0.0 if grad is None else float(grad.norm()) for grad in backwards]
    lines = tuple(
        (f"gradient at {site}, all tokens", three(size))
        for site, size in zip(felt.leaves, sizes, strict=True)
    )
    nats = float(value.detach())
    return Found(nats, f"the loss is {three(nats)} nats", lines)


def causality(case: Case) -> Found:
    """Another last token: do the answers before it move, or the streams where none stands there?"""
    read = case.written
    if case.last != "decoder":
        return Found(None, "an encoder may look ahead, so there is nothing to check")
    if read.shape[1] < 2:
        return Found(None, "there is one token alone, so no answer stands before it")
    other = other_tokens(case, read, slice(-1, None))
    ids, target = (other, None) if case.target is None else (None, other)
    until = read.shape[1] - 1
    if not case.model.config.head.endswith("language-model"):  # no answer stands before it
        moved = stream_moved_by(case, ids, target, until)
        said = f"with another last token, the streams of those before it move by {three(moved)}"
        return Found(moved, said)
    moved = moved_by(case, ids, target, until)
    return Found(moved, f"with another last token, the logits before it move by {three(moved)}")


def target(case: Case) -> Found:
    """Another target, every token of it, while nothing comes of looking at the source."""
    if case.target is None:
        return Found(None, "this model reads one sequence, so there is no target to replace")
    other = other_tokens(case, case.target, slice(None))
    moved, alone = (moved_by(case, target=other, is_silenced=each) for each in (False, True))
    return Found(
        alone,
        f"with cross-attention silenced, a wholly other target moves the logits by {three(alone)}",
        (("with another target, the logits move by", three(moved)),),
    )


def padding(case: Case) -> Found:
    """Filler behind the sentence: do the logits notice?"""
    pad, config = case.opened.config.pad_id, case.opened.config
    pads = PADS if config.positions == "none" else min(PADS, config.max_len - case.ids.shape[1])
    if pad is None or pads < 1:
        return Found(None, "there is no filler, or no room for it behind this sentence")
    longer = torch.nn.functional.pad(case.ids, (0, pads), value=pad)
    moved = moved_by(case, longer, until=case.written.shape[1])
    filler = f"{pads} token{'s' if pads > 1 else ''} of filler"
    said = f"with {filler} behind the sentence, the logits move by {three(moved)}"
    return Found(moved, said, picture=instrument_pictures.with_filler(case, longer))


def order(case: Case) -> Found:
    """What the model adds to say where a token stands, and what it is worth."""
    scheme = getattr(case.model, case.first).positions
    if not isinstance(scheme, PositionalEncoding):
        return Found(None, "nothing is added to the embedding that follows a formula")
    table = scheme.pe[0, :POSITIONS_SEEN].double()
    offset = min(OFFSET, len(table) // 2)
    start = " ".join(f"{value:.4f}" for value in table[1, :4].tolist())
    still, spread = barely_moving(table), spread_at(table, offset)
    apart = in_words(spread)
    lines = (
        ("position 1, the first four numbers", start),
        (f"of {table.shape[1]} dimensions, these move less than 0.01", str(still)),
        (f"std of the product of two positions {offset} apart", apart),
    )
    down, across = (tuple(map(str, range(size))) for size in table.shape)
    picture = Picture(table.float(), down, across, ("position", "dimension"), "value")
    said = f"{offset} apart, the product of two positions has a spread of {apart}"
    return Found(spread, said, lines, picture, apart)


def writing(case: Case) -> Found:
    """What the model writes by itself, always the likeliest token."""
    config = case.model.config
    if config.head != "language-model" or "decoder" not in config.stacks:
        return Found(None, "this model does not write")
    room = config.max_len - (1 if case.target is not None else case.ids.shape[1])
    if room < 1:
        return Found(None, "there is no room to write behind this sentence")
    ids = case.model.generate(case.ids, max_length=min(MOST_WRITTEN, room), temperature=0.0)
    skipped = 1 if case.target is not None else case.ids.shape[1]
    new = ids[0, skipped:].tolist()
    numbers = " ".join(map(str, new))
    lines = (("token numbers", numbers), ("different ones", f"{len(set(new))} of {len(new)}"))
    different = len(set(new))
    named = f"{different} different tokens of {len(new)}"
    said = f"it writes: {case.named(new)}"
    return Found(float(different), said, lines, instrument_pictures.repeats(case, new), named)


def slices(case: Case) -> Found:
    """Two slices of the input swapped: are two heads then swapped, and nothing else?"""
    config = case.opened.config
    if config.n_heads < 2 or config.kv_heads * config.head_width != config.d_model:
        return Found(None, "the heads of this model do not cut the stream into slices")
    site = f"{case.first}.embed"
    x = case.seen({site: _all})[site]
    width = config.head_width
    swapped = torch.cat((x[..., width : 2 * width], x[..., :width], x[..., 2 * width :]), -1)
    attention = getattr(case.model, case.first).blocks[0].self_attn
    apart = 0.0
    with torch.no_grad():
        for project in (attention.q_proj, attention.k_proj, attention.v_proj):
            one = project(x)[..., width : 2 * width]
            other = project(swapped)[..., :width]
            apart = max(apart, float((one - other).abs().max()))
    swap = "with the first two slices swapped"
    return Found(apart, f"{swap}, head 0 differs from what head 1 was by {three(apart)}")


def stream(case: Case) -> Found:
    """How large the residual stream is after every block of the last stack."""
    layers = range(len(getattr(case.model, case.last).blocks))
    after = {f"{case.last}.{layer}.resid_post": _all for layer in layers}
    sizes = stream_sizes(case.model, case.seen(after))
    lines = tuple((f"after block {layer}", three(size)) for layer, size in enumerate(sizes))
    lines = (("the norm, says the config of either run", case.model.config.norm_position), *lines)
    said = f"the stream leaves the last block with a size of {three(sizes[-1])}"
    return Found(sizes[-1], said, lines)


def scale(case: Case) -> Found:
    """What q·k is multiplied with, read off the scores themselves."""
    base = f"{case.first}.0.self_attn"
    seen = case.seen({f"{base}.{name}": _first_head for name in ("q", "k", "scores")})
    if f"{base}.scores" not in seen or case.model.config.attention_cap is not None:
        return Found(None, "the scores were shown to nobody")
    q, k, scores = (seen[f"{base}.{name}"] for name in ("q", "k", "scores"))
    products = q @ k.mT
    factor = float((scores * products).sum() / products.square().sum())
    width = q.shape[-1]
    said = f"scores are q·k × {three(factor)}; 1/√d_k would be {three(1 / math.sqrt(width))}"
    return Found(factor, said, (("d_k", str(width)),))


INSTRUMENTS: dict[str, Callable[[Case], Found]] = {
    "Shapes": shapes,
    "A map": weights,
    "An empty row": empty_row,
    "What leaves the model": outputs,
    "Loss and gradients": loss,
    "Causality check": causality,
    "Another target": target,
    "Filler": padding,
    "Positions": order,
    "Writing": writing,
    "Swapped slices": slices,
    "The stream": stream,
    "The scale": scale,
}
"""By the name on the screen, in the order one would try them."""


def _all(value: Tensor) -> Tensor:
    return value


def _first_head(value: Tensor) -> Tensor:
    return value[0, 0]
