"""Interventions as edits of the core, and why one does not apply to a model and a text."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from explorer.catalog.attention_parts import site
from explorer.catalog.opened_model import OpenModel
from explorer.inference.answers import first_place, masks_in
from explorer.inference.forward_pass import ForwardPass, ForwardPassError, rerun, run_text
from explorer.inference.results_cache import cached
from explorer.inference.token_programs import LineTokens, ProgramError, ReplaceMap, mixture_map
from explorer.interventions import edits
from explorer.interventions.edits import Intervention
from models import interventions as core
from models.masking import causal_mask
from models.transformer import EVERYWHERE

LIMITING = ("padding", "window", "blocks")
"""Presets that leave a decoder causal and mask more keys."""


class NotApplicableError(ValueError):
    """The model or the text lacks what an intervention names; the message says what."""


def check_applicable(opened: OpenModel, forward: ForwardPass, edit: Intervention) -> None:
    """NotApplicableError where this model or this text lacks what the intervention names."""
    parts = {part.name: part for part in forward.parts}
    if edit.part not in parts:
        raise NotApplicableError("This model has no such attention.")
    part = parts[edit.part]
    rows, columns = len(forward.rows(edit.part)), len(forward.columns(edit.part))
    is_encoder = edit.part.startswith("encoder")
    neurons = (opened.config.of_encoder if is_encoder else opened.config).d_ff
    for name, what, count in (
        ("layer", "layer", part.layers),
        ("head", "head", part.heads),
        ("query", "query", rows),
        ("position", "token", rows),
        ("key", "key", columns),
        ("neuron", "neuron", neurons),
    ):
        number = getattr(edit, name, None)
        if number is not None and number >= count:
            raise NotApplicableError(f"There is no {what} {number} here: there are {count}.")
    is_cross = edit.part == "decoder.cross_attn"
    match edit:
        case edits.PresetMask(preset=preset) if is_cross and preset not in ("none", "padding"):
            raise NotApplicableError("In cross-attention, queries and keys are of two texts.")
        case edits.PresetMask(n=n) if n < 1:
            raise NotApplicableError("The size must be at least 1.")
        case edits.AblateMlp() | edits.AblateNeuron() if is_cross or not opened.config.d_ff:
            raise NotApplicableError("There is no feed-forward layer there.")
        case edits.ReplaceToken(token=token, word=word):
            vocab_size = opened.config.vocab_size
            if edit.part.startswith("encoder"):
                vocab_size = opened.config.src_vocab_size or vocab_size
            if is_cross or token >= vocab_size:
                raise NotApplicableError(f"This model has no token ID {token:,} there.")
            if word and word != (here := token_label(opened, token)):
                raise NotApplicableError(
                    f"“{word}” was chosen in another model; its token ID is “{here}” here."
                )
        case edits.Patch(head=None) | edits.Steer(head=None) if is_cross:
            verb = "patched" if isinstance(edit, edits.Patch) else "steered"
            raise NotApplicableError(
                f"The residual stream is {verb} under Decoder, not Cross-attention."
            )
        case edits.Steer(head=head, texts=texts) if len(texts) % 2 == (head is None):
            raise NotApplicableError(
                "A direction is the difference of two texts, or of several pairs of texts."
                if head is None
                else "The output of a head is taken from one text."
            )
        case edits.ReplaceByProgram() if edit.part != forward.parts[0].name:
            raise NotApplicableError(
                f"Programs read a text that is there as a whole: choose {forward.parts[0].title}."
            )


def token_label(opened: OpenModel, token: int) -> str:
    """The label of a token ID; the ID itself where the tokenizer does not know it."""
    is_known = token < opened.tokenizer.vocab_size
    return opened.tokenizer.token(token).label if is_known else str(token)


def core_edit(opened: OpenModel, forward: ForwardPass, edit: Intervention) -> core.Edit:
    """The edit of the core; NotApplicableError where another text gives no value for it."""
    stack, attention = edit.part.split(".")
    layer = getattr(edit, "layer", None)
    block = f"{stack}.*" if layer is None else f"{stack}.{layer}"
    at = f"{block}.{attention}"
    match edit:
        case edits.AblateHead(head=head, to=to):
            return _ablation(f"{at}.head_out", to, head)
        case edits.AblateAttention(to=to):
            return _ablation(f"{at}.out", to)
        case edits.AblateMlp(to=to):
            return _ablation(f"{block}.mlp.out", to)
        case edits.AblateNeuron(neuron=neuron, to=to):
            return core.SetNeuron(f"{block}.mlp.hidden", neuron, None if to == "mean" else 0.0)
        case edits.CutEdge(head=head, query=query, key=key, to=to):
            return core.SetCell(f"{at}.weights", query, key, None if to == "mean" else 0.0, head)
        case edits.PresetMask():
            size = len(forward.rows(edit.part)), len(forward.columns(edit.part))
            return MaskPreset(f"{at}.mask", edit, *size)
        case edits.MaskCell(query=query, key=key, allowed=allowed):
            return core.SetCell(f"{at}.mask", query, key, allowed)
        case edits.HideKey(key=key):
            return core.SetCell(f"{at}.mask", None, key, False)
        case edits.Patch(head=head, position=position, text=text, source=source):
            if source is None:
                source, other_pass = position, same_length_pass(opened, forward, edit.part, text)
            else:
                other_pass = source_pass(opened, forward, text)
                if source >= (count := len(other_pass.rows(edit.part))):
                    raise NotApplicableError(f"That text has no token {source}: it has {count}.")
            if head is None:
                stream = f"{block}.resid_post"
                return core.ReplaceAt(stream, position, other_pass.trace[stream][0, source])
            value = head_output(other_pass, edit.part, edit.layer, head, source)
            return core.ReplaceAt(f"{at}.head_out", position, value, head)
        case edits.Steer(layer=layer, strength=strength):
            return core.Add(
                f"{stack}.{layer}.resid_post", steering_direction(opened, edit), strength
            )
        case edits.ReplaceByProgram(head=head):
            try:
                return ReplaceMap(f"{at}.weights", mixture_in_pass(forward, edit), head)
            except ProgramError as error:
                raise NotApplicableError(str(error)) from error
    raise NotApplicableError("A token is replaced before the pass.")


def mixture_in_pass(forward: ForwardPass, edit: edits.ReplaceByProgram) -> Tensor:
    """The map of the programs on the text of a pass, (q, k)."""
    line = LineTokens.of(forward.columns(edit.part), forward.text, forward.pair)
    return mixture_map(edit.mixture, line, forward.mask(edit.part, edit.layer))


def _ablation(where: str, to: str, head: int | None = None) -> core.Edit:
    return core.Mean(where, head) if to == "mean" else core.Scale(where, head=head)


@dataclass(frozen=True)
class MaskPreset:
    """A preset mask; while an answer is generated, its first rows and columns."""

    site: str
    preset: edits.PresetMask
    queries: int
    keys: int

    def __call__(self, value: Tensor) -> Tensor:
        queries, keys = value.shape[-2:]
        mask = preset_mask(self.preset, max(self.queries, queries), max(self.keys, keys))
        return core.fit(mask[:queries, :keys], value, self.site)


def preset_mask(edit: edits.PresetMask, queries: int, keys: int) -> Tensor:
    """Which key (column) each query (row) may attend to, (queries, keys). Sizes are tokens.

    A window, blocks or padding stay causal in a decoder. Every query may attend to a prefix
    (Raffel et al. 2020, section 3.2.1); behind it the mask is causal. Padding masks the last
    tokens, as in a batch with a longer text.
    """
    everything, causal = torch.ones(queries, keys, dtype=torch.bool), causal_mask(queries, keys)
    query, key = torch.arange(queries)[:, None], torch.arange(keys)[None]
    allowed = {
        "none": everything,
        "causal": causal[0, 0],
        "prefix": causal[0, 0] | (key < edit.n),
        "padding": (key < keys - edit.n) & everything,
        "window": (query - key).abs() < edit.n,
        "blocks": query // edit.n == key // edit.n,
    }[edit.preset]
    keeps_order = edit.part == "decoder.self_attn" and edit.preset in LIMITING
    return allowed & causal[0, 0] if keeps_order else allowed


def head_output(
    forward: ForwardPass, part: str, layer: int, head: int, position: int | slice = EVERYWHERE
) -> Tensor:
    """weights · V of one head, (tokens, d_head), or at one position (d_head,)."""
    values = forward.trace[f"{site(part, layer)}.v"][forward.row]
    values = values[forward.config.kv_head(head)]
    return forward.weights(part, layer, head)[position] @ values


def source_pass(opened: OpenModel, forward: ForwardPass, text: str) -> ForwardPass:
    """The pass over a text to patch from; NotApplicableError where it cannot be read.

    The decoder of an encoder-decoder reads the answer of `forward` there too. One more pass, kept.
    """
    try:
        other_pass = run_text(opened, text)
    except ForwardPassError as error:
        raise NotApplicableError(str(error)) from error
    if opened.config.kind == "encoder-decoder":
        same = dataclasses.replace(other_pass, output_tokens=forward.output_tokens)
        other_pass = cached(
            opened,
            ("patched from", text, forward.text),
            lambda: rerun(opened, same, same.source, forward.target, ()),
        )
    return other_pass


def same_length_pass(opened: OpenModel, forward: ForwardPass, part: str, text: str) -> ForwardPass:
    """The same; NotApplicableError also where the lengths differ."""
    other_pass = source_pass(opened, forward, text)
    ours, theirs = len(forward.rows(part)), len(other_pass.rows(part))
    if ours != theirs:
        raise NotApplicableError(
            f"That text is {theirs} tokens and yours {ours}: only texts of the same length have "
            "the same positions."
        )
    return other_pass


def steering_direction(opened: OpenModel, edit: edits.Steer) -> Tensor:
    """The direction that is added once at strength 1, (d_model,).

    NotApplicableError where there is none. It costs a pass for each text and is kept. Sources:
    Steering Llama 2 via Contrastive Activation Addition (Panickssery et al. 2024), section 3; for
    one pair, Steering Language Models With Activation Engineering (Turner et al. 2023).
    """

    def make() -> Tensor:
        try:
            values = [_value_to_steer(opened, edit, text) for text in edit.texts]
        except ForwardPassError as error:
            raise NotApplicableError(str(error)) from error
        if edit.head is not None:
            return values[0]
        toward, away = torch.stack(values[::2]), torch.stack(values[1::2])
        return (toward - away).mean(0)

    key = ("direction", edit.part, edit.layer, edit.head, edit.texts)
    direction = cached(opened, key, make)
    if not direction.isfinite().all():
        raise NotApplicableError("The direction is not finite, so it cannot be added.")
    if not direction.any():
        raise NotApplicableError("The direction between these texts has no length: change one.")
    return direction


def _value_to_steer(opened: OpenModel, edit: edits.Steer, text: str) -> Tensor:
    """The residual stream, or a head's output, at the position of the answer (d_model,).

    That is the last token of a decoder, the first step of a generated answer, or the mask; for
    any other encoder it is the mean over positions.
    """
    forward = run_text(opened, text)
    stack, attention = edit.part.split(".")
    at: int | slice = first_place(opened, forward.tokens)
    if stack == "encoder" and not masks_in(opened, forward.tokens):
        at = EVERYWHERE
    if edit.head is None:
        value = forward.trace[f"{stack}.{edit.layer}.resid_post"][forward.row, at].clone()
    else:
        block: Any = getattr(opened.model, stack).blocks[edit.layer]
        projection = getattr(block, attention).o_proj.weight.detach()
        out = head_output(forward, edit.part, edit.layer, edit.head, at)
        width = out.shape[-1]
        value = out @ projection[:, edit.head * width :][:, :width].mT
    return value.mean(0) if value.dim() == 2 else value
