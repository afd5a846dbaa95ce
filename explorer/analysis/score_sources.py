"""Why a head attends there: one score as a sum over what wrote its query and its key.

The residual stream that a query or key reads is a sum of writes: the embedding, every earlier head
and feed-forward layer, and biases. With the scale of every norm frozen at its value in the pass,
query and key are sums over these sources, so the score is a table, source of the query × source of
the key, whose cells add up to it.

A softmax depends on differences of scores alone. So the key stands for a contrast: the key minus
the mean of the other visible keys, or minus one other key.
Shapes: p positions, w width of one head, d width of the model, h heads, s sources.
Sources: A Mathematical Framework for Transformer Circuits (Elhage et al. 2021), on the QK circuit;
Tracing Attention Computation Through Feature Interactions (Kamath et al. 2025).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from explorer.analysis.head_circuits import read_with
from explorer.analysis.logit_attribution import embedded_terms
from explorer.analysis.residual_writes import (
    HeadReads,
    SublayerWrite,
    attentions_of,
    block_writes,
    head_reads,
    positions_of,
)
from explorer.catalog.attention_parts import site
from explorer.inference.forward_pass import ForwardPass
from explorer.interventions import edits
from explorer.system.cooperative import interruptible
from explorer.text.number_format import three
from explorer.text.token_labels import Label, named_at
from models.block import Residual
from models.frozen_scales import is_plain_sum, scale_of, sum_norm, without_scale
from models.shapes import Rotation

QUERY, KEY = "query", "key"
BIAS, POSITION_BIAS = "bias", "position bias"
NOISE = 1e-6  # of the largest source
SUM = Residual(nn.Identity(), pre=True)
Writes = dict[str, HeadReads | SublayerWrite]


class SourcesError(ValueError):
    """Why a score has no sources to show, in one sentence."""


@dataclass(frozen=True, eq=False)
class Source:
    """A source of a query or a key, and what it adds to the score.

    `part`, `layer` and `head` say which head it is, if it is one. `tokens` (n,) sum to `value`: by
    the token that the head read, or for another source by the position where it wrote. `read` is
    the token that a head read most of this where it wrote into the query or the key itself.
    `vector` (w,) is its part of the query, or of the contrast of keys.
    """

    name: str
    value: float
    tokens: Tensor
    vector: Tensor
    read: int
    part: str = ""
    layer: int = 0
    head: int = 0


@dataclass(frozen=True, eq=False)
class ScoreSources:
    """One score, and the sources of its query and of its key.

    `score` is that of the pass: q·k × scale, before any cap, plus the position bias. `contrast` is
    the same minus that of `against`, one key, or of the mean of all `others` visible keys; it is
    the score itself where both are absent. The sources of each side, with `position_bias`, sum to
    the contrast.
    """

    score: float
    contrast: float
    queries: tuple[Source, ...]
    keys: tuple[Source, ...]
    scale: float
    position_bias: float | None
    against: int | None
    others: int
    cap: float | None

    @property
    def table(self) -> Tensor:
        """(s of the query, s of the key): the score of every pair of sources."""
        queries, keys = (torch.stack([one.vector for one in side]) for side in self.sides)
        return self.scale * queries @ keys.mT

    @property
    def sides(self) -> tuple[tuple[Source, ...], tuple[Source, ...]]:
        return self.queries, self.keys

    @property
    def sums(self) -> tuple[float, float]:
        """The sum of each side's sources, with the position bias."""
        queries, keys = (sum(one.value for one in side) for side in self.sides)
        return queries + (self.position_bias or 0.0), keys + (self.position_bias or 0.0)

    @property
    def difference(self) -> float:
        """The error of the sums, relative to the largest source."""
        largest = max(abs(one.value) for side in self.sides for one in side)
        return max(abs(total - self.contrast) for total in self.sums) / (largest or 1.0)


def score_sources(
    forward: ForwardPass,
    part: str,
    layer: int,
    head: int,
    query: int,
    key: int,
    against: int | None = None,
    *,
    plain: bool = False,
) -> ScoreSources:
    """The sources of one score, against another key, the mean of all others, or `plain`.

    Cost grows with layers × keys × (keys × h × w + d × w); only one layer is in memory at a time.
    With interventions, a write is what that pass wrote. SourcesError for a masked key, numbers
    that are not finite, and a head whose map programs replace.
    """
    if head in [edit.head for edit in _edits(forward, part, layer, edits.ReplaceByProgram)]:
        raise SourcesError("Programs replace the map of this head: its weights come from no score.")
    visible = forward.mask(part, layer)[query]
    if against == key:
        raise SourcesError("A key has no difference from itself: choose another key.")
    for name, place in (("key", key), ("other key", against)):
        if place is not None and not visible[place]:
            raise SourcesError(f"The {name} is masked for this query: choose a key that it sees.")
    shares = torch.zeros(len(visible), dtype=forward.trace[f"{site(part, layer)}.q"].dtype)
    shares[key] = 1.0
    others = visible.clone()
    others[key] = False
    count = int(others.sum()) if against is None and not plain else 0
    if against is not None:
        shares[against] -= 1.0
    elif count:
        shares -= others.to(shares) / count
    at, config, trace = site(part, layer), forward.config, forward.trace
    places = shares.nonzero()[:, 0]
    shares = shares[places]
    with torch.no_grad():
        q = trace[f"{at}.q"][forward.row, head, query]
        keys = trace[f"{at}.k"][forward.row, config.kv_head(head), places]
        scores = config.scale * keys @ q
        bias = forward.bias(part, layer, head)
        added = None if bias is None else bias[query, places].to(scores)
        scored = scores if added is None else scores + added
        if not scored.isfinite().all():
            raise SourcesError("This query has scores that are not finite: choose another head.")
        # The scale goes with the other side's vector, which each source is multiplied with.
        at_query, one = torch.tensor([query]), shares.new_ones(1)
        of_query = ScoreSide(
            forward, part, layer, head, QUERY, query, at_query, one, config.scale * (shares @ keys)
        )
        of_keys = ScoreSide(forward, part, layer, head, KEY, key, places, shares, config.scale * q)
        is_one = of_query.stack == of_keys.stack
        for sides in [[of_query, of_keys]] if is_one else [[of_query], [of_keys]]:
            _gather(sides)
        return ScoreSources(
            score=float(scored[places.tolist().index(key)]),
            contrast=float(scored @ shares),
            queries=tuple(of_query.sources),
            keys=tuple(of_keys.sources),
            scale=config.scale,
            position_bias=None if added is None else float(added @ shares),
            against=against,
            others=count,
            cap=config.attention_cap,
        )


def multiplications(forward: ForwardPass, part: str, layer: int) -> int:
    """About how many `score_sources` takes for the last query."""
    config, keys = forward.config, len(forward.columns(part))
    layers = config.encoder_layers if part == "decoder.cross_attn" else layer
    return layers * keys * (4 * keys * config.n_heads * config.head_width + 3 * config.d_model**2)


@dataclass(frozen=True, eq=False)
class _Reading:
    """How a query or key reads a write into the residual stream at p positions.

    A write x (p, d) adds scale (p, 1) × x matrixᵀ (w, d) to it; `constant` (p, w) is what biases
    have added so far.
    """

    matrix: Tensor
    scale: Tensor
    constant: Tensor

    def before(self, norm: nn.Module, x: Tensor) -> "_Reading":
        """How it reads the input x (p, d) of a norm whose output it has read so far."""
        if isinstance(norm, nn.Identity):
            return self
        matrix, scale = read_with(without_scale(norm), self.matrix), self.scale * scale_of(norm, x)
        return replace(self.plus(getattr(norm, "bias", None)), matrix=matrix, scale=scale)

    def plus(self, bias: Tensor | None) -> "_Reading":
        """With a bias (d) that the model adds to the stream that it reads."""
        if bias is None:
            return self
        return replace(self, constant=self.constant + self.scale * (self.matrix @ bias))

    def of(self, write: Tensor) -> Tensor:
        """(…, p, w): its part of a write (…, p, d)."""
        return self.scale * (write @ self.matrix.mT)


class ScoreSide:
    """The queries or keys of one head at some positions, with the share of each in the sum.

    The sources are those of the query or key at `place`, one of them.
    `other` (w,) is the vector of the other side; `gathered` are the sources so far, the last one
    to write first; `first` blocks write before it.
    """

    def __init__(
        self,
        forward: ForwardPass,
        part: str,
        layer: int,
        head: int,
        side: str,
        place: int,
        places: Tensor,
        shares: Tensor,
        other: Tensor,
    ) -> None:
        self.forward, self.part, self.layer, self.head = forward, part, layer, head
        self.side, self.places, self.shares, self.other = side, places, shares, other
        self.own = places.tolist().index(place)
        self.sources: list[Source] = []
        crosses = part == "decoder.cross_attn" and side == KEY
        self.stack = "encoder" if crosses else part.split(".")[0]
        self.module: Any = getattr(forward.trace.model, self.stack)
        self.rotate: Rotation | None = None
        self.reads = other.expand(len(places), -1) * shares[:, None]  # (p, w)
        if part.endswith("self_attn"):
            self.rotate = self.module.positions.rotation(positions_of(forward, self.stack)[places])
        if self.rotate is not None:
            self.reads = read_with(self.rotate, self.reads[None, None])[0, 0]
        self.first = layer if part.startswith(self.stack) else len(self.module.blocks)
        self.reading = self._first_reading()

    def take(self, layer: int, block: Writes, at: Tensor, change: Tensor | None) -> None:
        """Add the sources of a block's writes, and read the stream in front of it from now on.

        Its positions are `at` among those of the block. `change` (p, d) is what the block added as
        a plain sum: what is from no head and no bias is then from the feed-forward layer.
        """
        start, reading, rest = len(self.sources), self.reading, torch.zeros_like(self.reads)
        for name, write in reversed([*block.items()]):
            into = self._before(write, at) if isinstance(write, SublayerWrite) else self.reading
            if isinstance(write, HeadReads):
                rest = rest - self._heads(layer, name, write, at, into)
            else:
                name = name.split(".")[-1].replace("_attn", "-attention")
                self._add([f"{name} {layer}"], into.of(write.out[at])[None])
        if change is not None:
            rest = rest + reading.of(change[at]) + reading.constant - self.reading.constant
            self._add([f"mlp {layer}"], rest[None])
            self.sources.insert(start, self.sources.pop())

    def _heads(self, layer: int, part: str, reads: HeadReads, at: Tensor, into: _Reading) -> Tensor:
        """Add the heads of an attention as sources; their sum (p, w)."""
        attention = getattr(self.module.blocks[layer], part.split(".")[1])
        self.reading = replace(self.reading, constant=into.plus(attention.o_proj.bias).constant)
        split, weight = (attention.n_heads, attention.d_head), attention.o_proj.weight
        is_whole, slopes = len(at) == reads.heads.shape[1], into.scale * self.reads
        heads = reads.heads if is_whole else reads.heads[:, at]
        if 3 * len(at) < attention.d_head:  # the cheaper order of the products
            parts = into.of(heads @ weight.unflatten(1, split).permute(1, 2, 0))
            slopes = (slopes @ into.matrix @ weight).unflatten(1, split).transpose(0, 1)
        else:
            through = (into.matrix @ weight).unflatten(1, split).transpose(0, 1)
            parts = into.scale * (heads @ through.mT)
            slopes = slopes @ through  # (h, p, w of the head)
        tokens = here = reads.by_key_at(int(at[self.own]), slopes[:, self.own])
        if len(at) > 1:
            every = slopes if is_whole else torch.zeros_like(reads.heads).index_copy_(1, at, slopes)
            tokens = reads.by_key(every)
        crosses = "cross " * part.endswith("cross_attn")
        names = [f"{crosses}{layer}.{head}" for head in range(attention.n_heads)]
        start, places = len(self.sources), {None, *self.places.tolist()}
        self._add(names, parts, (tokens, here), (part, layer))
        changes = _edits(self.forward, part, layer, edits.AblateHead, edits.Patch)
        for head in {one.head for one in changes if getattr(one, "position", None) in places}:
            if head is not None:  # what it wrote is from no token that it read
                self._add([f"edited head {names[head]}"], parts[[head]])
                self.sources[start + head] = self.sources.pop()
        return parts.sum(0)

    def _before(self, write: SublayerWrite, at: Tensor) -> _Reading:
        """How it reads the output of a sub-layer; the stream in front of it is read next."""
        before = (write.stream + write.residual.out_norm(write.out))[at]
        reading = self.reading.before(sum_norm(write.residual), before)
        into = reading.before(write.residual.out_norm, write.out[at])
        self.reading = replace(reading, constant=into.constant)
        return into

    def finish(self) -> None:
        """Add the terms of the embedding, and what biases add."""
        terms = embedded_terms(self.forward, self.stack, self.places)
        whole = torch.stack([*terms.values()]).sum(0)
        reading = self.reading.before(self.module.embedding_norm, whole)
        names = ["embedding" if name == "token" else name for name in terms]
        self._add(names, torch.stack([reading.of(term) for term in terms.values()]))
        if reading.constant.any():
            self._add([BIAS], reading.constant[None])

    def _add(
        self,
        names: Sequence[str],
        parts: Tensor,
        by_token: tuple[Tensor, Tensor] | None = None,
        at: tuple[str, int] = ("", 0),
    ) -> None:
        """The sources of these names, from their parts (s, p, w) of the queries or keys.

        `by_token` has a head's values by the token that it read, (s, n): in all, and at `place`.
        """
        vectors = self.shares @ (parts if self.rotate is None else self.rotate(parts[None])[0])
        values = vectors @ self.other
        if by_token is None:
            read = self.forward.source if self.stack == "encoder" else self.forward.target
            tokens = parts.new_zeros(len(parts), len(read))
            tokens[:, self.places] = (parts * self.reads).sum(-1)
            most = [int(self.places[self.own])] * len(parts)
        else:
            tokens, here = by_token
            most = (here * values.sign()[:, None]).argmax(-1).tolist()
        for head, (name, value) in enumerate(zip(names, values.tolist(), strict=True)):
            source = Source(name, value, tokens[head], vectors[head], most[head], *at, head)
            self.sources.append(source)

    def _first_reading(self) -> _Reading:
        """How the query or key reads the residual stream in front of its attention's block."""
        trace, config = self.forward.trace, self.forward.config
        stack, kind = self.part.split(".")
        block = getattr(trace.model, stack).blocks[self.layer]
        attention, residual = getattr(block, kind), getattr(block, kind.replace("attn", "residual"))
        if self.side == QUERY:
            proj, norm, at = attention.q_proj, attention.q_norm, self.head
        else:
            proj, norm, at = attention.k_proj, attention.k_norm, config.kv_head(self.head)
        rows = slice(at * attention.d_head, (at + 1) * attention.d_head)
        weight, bias = proj.weight[rows], None if proj.bias is None else proj.bias[rows]
        stream = self.stream_read()
        outer = residual.input_norm if self.stack == stack else self.module.norm
        projected = nn.functional.linear(outer(stream), weight, bias)
        scale, linear = scale_of(norm, projected), without_scale(norm)
        constant = torch.zeros_like(projected)
        for added in (getattr(norm, "bias", None), None if bias is None else scale * linear(bias)):
            constant = constant if added is None else constant + added
        whole = projected.new_ones(len(stream), 1) * scale
        return _Reading(linear(weight.mT).mT, whole, constant).before(outer, stream)

    def stream_read(self) -> Tensor:
        """The residual stream (p, d) in front of the norm that the query or key reads."""
        trace, row = self.forward.trace, self.forward.row
        if self.part.endswith("self_attn"):
            return trace[f"{self.stack}.{self.layer}.resid_pre"][row, self.places]
        if self.side == KEY:
            return trace[f"encoder.{self.first - 1}.resid_post"][row, self.places]
        block = block_writes(self.forward, self.stack, self.layer, self.places)
        return block.attentions["decoder.self_attn"].after


def _gather(sides: Sequence[ScoreSide]) -> None:
    """Give the sides, which read one stack, every write in front of them, the last one first."""
    one = sides[0]
    places, index = torch.cat([side.places for side in sides]).unique(return_inverse=True)
    of_sides = index.split([len(side.places) for side in sides])
    forward, stack = one.forward, one.stack
    # A query of cross-attention also reads what self-attention of its own block writes.
    own = one.part == "decoder.cross_attn" and one.side == QUERY
    for layer in interruptible(reversed(range(one.first + own))):
        module, block, change = one.module.blocks[layer], Writes(), None
        streams = (forward.trace[f"{stack}.{layer}.{at}"] for at in ("resid_pre", "resid_post"))
        before, after = (stream[forward.row, places] for stream in streams)
        changes, is_own = _edits(forward, stack, layer), layer == one.first
        if module.mlp and is_plain_sum(module.self_residual) and not changes and not is_own:
            change = after - before
            for kind, *_ in attentions_of(module):
                block[f"{stack}.{kind}"] = head_reads(forward, f"{stack}.{layer}.{kind}", places)
        else:
            writes = block_writes(forward, stack, layer, places)
            for part, write in writes.attentions.items():
                block[part] = write
                if _edits(forward, part, layer, edits.AblateAttention):
                    block[part] = SublayerWrite(write.residual, write.stream, write.out)
            if writes.mlp:
                block["mlp"] = writes.mlp
            patched = [edit.head for edit in _edits(forward, stack, layer, edits.Patch)]
            if None in patched or _edits(forward, stack, layer, edits.Steer):
                block["intervention"] = SublayerWrite(SUM, after, after - writes.after)
            block = dict([*block.items()][: 1 if is_own else None])
        for side, at in zip(sides, of_sides, strict=True):
            side.take(layer, block, at, change)
    for side in sides:
        side.finish()


def _edits(forward: ForwardPass, part: str, layer: int, *kinds: type) -> list[Any]:
    """The interventions in a layer of these kinds, or of all; `part` may be a stack."""
    of_part = (edit for edit in forward.edits if edit.part.startswith(part))
    of_layer = (edit for edit in of_part if getattr(edit, "layer", None) == layer)
    return [edit for edit in of_layer if isinstance(edit, kinds or object)]


def strongest_sources(side: Sequence[Source], most: int, least: float = 0.0) -> list[Source]:
    """The largest sources of a side, of either sign; `least` is relative to the largest one."""
    some = sorted(side, key=lambda one: -abs(one.value))[:most]
    return [one for one in some if abs(one.value) >= least * abs(some[0].value)]


def sources_in_words(
    sources: ScoreSources, columns: Callable[[str], Sequence[Label]], against: str = ""
) -> str:
    """What the score is compared with, and the largest sources of each side.

    `columns` has the tokens that the heads of a part read; `against` names the other key.
    """

    def named(one: Source) -> str:
        name = re.sub(r" (\d+)$", r" of layer \1", f"the {one.name}")
        name = name.replace("the mlp of", "feed-forward")
        if one.part:
            read = named_at(columns(one.part), one.read)
            name = f"head {one.name} (which read {read} most)"
        return f"{name} {'lowers' if one.value < 0 else 'raises'} it by {three(abs(one.value))}"

    side, whole = "above" if sources.contrast >= 0 else "below", "difference"
    if sources.against is None and not sources.others:
        start, whole = f"The score is {three(sources.contrast)}", "score"
    else:
        keys = "other visible key" if sources.others == 1 else "other visible keys"
        other = against or f"the mean of the {sources.others:,} {keys}"
        start = f"The score is {three(abs(sources.contrast))} {side} {other}"
    largest = (strongest_sources(of, 2, NOISE) for of in sources.sides)
    query, key = (" and ".join(map(named, some)) for some in largest)
    bias = sources.position_bias
    those = "The" if bias is None else f"With the position bias of {three(bias)}, the"
    return (
        f"{start}. Largest in the query: {query}. Largest in the key: {key}. "
        f"{those} query's sources add up to this {whole}, and so do the key's."
    )
