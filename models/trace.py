"""A forward pass recorded, with edits: the named values that were asked for.

Names of sites, in the order of the pass: `{encoder|decoder}.{embed, positions, pos_embed,
segment_embed, sum, embed_norm}`; in each layer `….resid_pre`, `….self_attn.{q_input, k_input,
v_input, norm, q_proj, q_norm, k_proj, k_norm, q, k, v, mask, bias, scores, masked, row_scale,
weights, head_out, out, out_norm, add}`, `….resid_mid`, the same of `….cross_attn`, `….resid_cross`,
`….mlp.{input, norm, gate, up, hidden, out, out_norm, add}`, `….resid_post`; `….final`, `memory`,
`head.{transform, pooled, hidden}`, `logits`. A step that a model leaves out shows the value
before it once more.

A site that ends in `input` holds the residual stream as each head (b, h, t, d), or the
feed-forward layer, reads it before its norm; `norm` is the layer's input, after a norm where it
is before the layer. `q_proj` is projected, `q_norm` normed where queries are, `q` also rotated,
and keys alike. `scores` are scaled products; `masked` adds the bias and replaces masked scores by
the lowest number. Heads with inputs of their own show no `norm`.
"""

import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from models.attention import MultiHeadAttention, attention_scores, attention_weights, repeat_groups
from models.interventions import Edit, EditError
from models.positional import Positions
from models.shapes import Scores
from models.tap import Tap
from models.transformer import EVERYWHERE, TransformerBase, evaluating

EVERYTHING = ("*",)
CHEAP_SITES = (
    *("*.positions", "*.q", "*.k", "*.v", "*.mask", "*.row_scale"),
    *("*.resid_pre", "*.resid_post", "memory", "logits"),
)
"""Enough to derive the weights of any head, in memory of tokens × layers."""
ABSENT_IN_SOME = (*CHEAP_SITES, "*.mlp.hidden", "*.mlp.out")
"""Patterns that may match no site: some models lack positions, others a feed-forward layer."""


@lru_cache(maxsize=256)
def _pattern(sites: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(fnmatch.translate, sites)) or r"(?!)")


class RecordingTap(Tap):
    """Keeps the values whose names match `sites`, after the edits that name them."""

    def __init__(self, sites: str | Sequence[str] = EVERYTHING, edits: Sequence[Edit] = ()) -> None:
        self.values: dict[str, Tensor] = {}
        self.fired: set[int] = set()
        self.offered: dict[str, None] = {}  # every site of the pass, in its order
        self._prefix = ""
        sites = (sites,) if isinstance(sites, str) else sites
        if not isinstance(sites, Iterable) or not all(isinstance(site, str) for site in sites):
            raise TypeError("sites are names of sites, or patterns such as *.weights.")
        self._asked = tuple(sites)
        self._sites = _pattern(self._asked)
        self._edits = [(edit, _pattern((edit.site,))) for edit in edits]
        self._edited = _pattern(tuple(edit.site for edit in edits))

    def at(self, scope: str) -> "RecordingTap":
        inner = type(self).__new__(type(self))
        inner.__dict__.update(self.__dict__)  # the same store, a longer prefix
        inner._prefix = f"{self._prefix}{scope}."
        return inner

    def wants(self, name: str) -> bool:
        site = self._prefix + name
        self.offered[site] = None
        return bool(self._sites.match(site) or self._edited.match(site))

    def __call__(self, name: str, value: Tensor) -> Tensor:
        site = self._prefix + name
        self.offered[site] = None
        if self._edited.match(site):
            for i, (edit, pattern) in enumerate(self._edits):
                if pattern.match(site):
                    value = apply_edit(edit, value, site)
                    self.fired.add(i)
            self.values[site] = value  # an edited value can no longer be derived
        elif self._sites.match(site):
            self.values[site] = value
        return value

    def check_sites(self) -> None:
        """After a pass: EditError for an edit that met no value, ValueError for a site to record
        that this model does not have, except for those of `ABSENT_IN_SOME`.
        """
        missed = [edit.site for i, (edit, _) in enumerate(self._edits) if i not in self.fired]
        if missed:
            raise EditError(f"No site of this pass is called {', '.join(missed)}.")
        for site in self._asked:
            if site in self.offered or site in ABSENT_IN_SOME:
                continue
            if not any(map(_pattern((site,)).match, self.offered)):
                raise ValueError(f"This model has no site {site}: it has {listed(self.offered)}.")


def listed(sites: Iterable[str]) -> str:
    """These sites in a sentence, each layer's once."""
    layers = [int(number) for site in sites for number in re.findall(r"\.(\d+)\.", site)]
    names = dict.fromkeys(re.sub(r"\.\d+\.", ".*.", site) for site in sites)
    last = f" (* is a layer, 0 to {max(layers)})" if layers else ""
    return f"{', '.join(names) or 'none'}{last}"


def apply_edit(edit: Edit, value: Tensor, site: str) -> Tensor:
    """The edited value; EditError unless its shape and type are the same."""
    result = edit(value)
    if result.shape != value.shape or result.dtype != value.dtype:
        theirs, ours = (f"{t.dtype} {tuple(t.shape)}" for t in (result, value))
        raise EditError(f"An edit made {theirs} of {site}, which is {ours}.")
    return result


@dataclass(frozen=True, eq=False)
class Trace:
    """The recorded values of a forward pass by their sites, and the model's `output`.

    A language model's output has only the positions `read_at`. `trace["logits"]`: a name may be
    shortened to its end when only one site has it.
    """

    model: Any  # a TransformerBase of whichever config
    values: dict[str, Tensor]
    output: Tensor
    read_at: slice

    @property
    def sites(self) -> tuple[str, ...]:
        return tuple(self.values)

    @property
    def nbytes(self) -> int:
        """Bytes of the recorded values; one tensor under two names counts once."""
        return sum({value.data_ptr(): value.nbytes for value in self.values.values()}.values())

    def __contains__(self, site: object) -> bool:
        return site in self.values

    def __getitem__(self, site: str) -> Tensor:
        if site in self.values:
            return self.values[site]
        ends = [name for name in self.values if name.endswith("." + site)]
        if len(ends) == 1:
            return self.values[ends[0]]
        why = (
            f"could be {' or '.join(ends[:4])}"
            if ends
            else f"was not recorded: there is {listed(self.values)}"
        )
        raise KeyError(f"{site} {why}.")

    def scores(self, attention: str, head: int | None = None) -> Scores | Float[Tensor, "b q k"]:
        """QKᵀ/√d before bias and mask, at for example `decoder.0.self_attn`, of one head or all."""
        scores = self._scores(attention, self._heads(attention, head))
        return scores if head is None else scores[:, 0]

    def weights(self, attention: str, head: int | None = None) -> Scores | Float[Tensor, "b q k"]:
        """Attention weights of one head or all: recorded, or derived from q and k as in a pass.

        One head costs queries × keys × d_head.
        """
        heads = self._heads(attention, head)
        if f"{attention}.weights" in self:
            weights = self[f"{attention}.weights"][:, heads]
        else:
            scores, bias = self._scores(attention, heads), self.bias(attention, heads)
            bias = None if bias is None else bias.to(scores.dtype)
            weights = attention_weights(scores, self[f"{attention}.mask"], bias)
            if f"{attention}.row_scale" in self:
                weights = weights * self[f"{attention}.row_scale"][:, heads]
        return weights if head is None else weights[:, 0]

    def bias(self, attention: str, heads: slice = slice(None)) -> Tensor | None:
        """The bias on the scores of these heads (b or 1, h, q, k), or None."""
        if f"{attention}.bias" in self:
            bias = self[f"{attention}.bias"]
            return bias[:, heads] if bias.shape[1] > 1 else bias
        if not attention.endswith("self_attn"):
            return None
        stack = attention.split(".")[0]
        positions = self[f"{stack}.positions"]
        scheme: Positions = getattr(self.model, stack).positions
        return scheme.bias(positions, positions, heads)

    def _attention(self, name: str) -> MultiHeadAttention:
        stack, layer, kind = name.split(".")
        module = self.model.get_submodule(f"{stack}.blocks.{layer}.{kind}")
        assert isinstance(module, MultiHeadAttention)
        return module

    def _heads(self, attention: str, head: int | None) -> slice:
        if head is None:
            return slice(None)
        n_heads = self._attention(attention).n_heads
        if not 0 <= head < n_heads:
            raise IndexError(f"{attention} has no head {head}: there are {n_heads}.")
        return slice(head, head + 1)

    def _scores(self, attention: str, heads: slice) -> Scores:
        if f"{attention}.scores" in self:
            return self[f"{attention}.scores"][:, heads]
        q, module = self[f"{attention}.q"], self._attention(attention)
        k = repeat_groups(self[f"{attention}.k"], q.shape[1])
        return attention_scores(q[:, heads], k[:, heads], module.scale, module.cap)


def trace(
    model: TransformerBase,
    *inputs: Int[Tensor, "b _t"],
    read_at: slice = EVERYWHERE,
    sites: str | Sequence[str] = EVERYTHING,
    edits: Sequence[Edit] = (),
    recorder: type[RecordingTap] = RecordingTap,
    **how: Any,
) -> Trace:
    """Run the model once, without dropout or gradients, and keep the values named by `sites`.

    `inputs` are the IDs, or source and target, and `how` what else the model takes (`keep`,
    `segments`, …). Recording everything holds all attention weights (layers × heads × tokens²);
    `CHEAP_SITES` does not. ValueError for a site that this model does not have and for inputs that
    are no IDs (b, t); EditError when an edit does not fit or meets no site.
    """
    tap = recorder(sites, edits)
    with evaluating(model):
        output = model(*inputs, read_at=read_at, tap=tap, **how)
    tap.check_sites()
    return Trace(model, tap.values, output, read_at)
