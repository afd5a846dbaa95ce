"""A published family as the reference library has it and as our core opened it, compared.

The reference is built tiny, with random weights, saved as a real folder and opened by
`load_checkpoint`. Both then read the same texts, and every value that the reference
shows is looked up under the name of our site.
"""

import copy
import fnmatch
import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import GenerationConfig

from models.config import TransformerConfig
from models.generation import UNNAMED
from models.loading.checkpoint import Checkpoint, load_checkpoint
from models.trace import CHEAP_SITES, EVERYTHING, Trace, trace
from tests.closeness import TOLERANCE, assert_close_to
from tests.tiny import keep_of_lengths

LENGTH = 11
PASSES = (("none", LENGTH), ("right", LENGTH), ("left", LENGTH), ("none", 1))
"""Padding and number of tokens of the texts that are compared."""
WRITTEN = 12
"""Tokens that both generate."""
BATCH = 3
COARSE = 4096
"""Shaken weights are multiples of 1/4096: one can be added to them without rounding (Gemma)."""


class AllInDouble(TorchFunctionMode):
    """The reference goes on in float64 where it would take its norms and softmax in float32."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        double = bool(args) and isinstance(args[0], Tensor) and args[0].dtype == torch.float64
        if double and "softmax" in getattr(func, "__name__", "") and "dtype" in kwargs:
            kwargs["dtype"] = torch.float64
        if double and (func is Tensor.float or (func is Tensor.to and args[1:] == ONLY_FLOAT)):
            return args[0]
        return func(*args, **kwargs)


ONLY_FLOAT = (torch.float32,)


@dataclass(frozen=True, eq=False)
class Case:
    """One published model: a tiny config with pairwise distinct sizes, and the class that runs it.

    `published` is its config.json as others wrote it, in place of what this version of the
    library saves. `exact` is false where the reference has a constant of few digits, so that
    float64 tells nothing. `unused` are patterns of names that a folder of it holds beyond our
    model, `fixed` those that are no weights and must not be shaken. `shards` saves it in many
    files; `by` is the size of the noise.
    """

    name: str
    config: Any
    reference: Any
    published: Mapping[str, Any] | None = None
    exact: bool = True
    unused: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    shards: bool = False
    by: float = 0.2

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Pair:
    """The reference and what `load_checkpoint` made of its folder."""

    case: Case
    reference: Any
    ours: Checkpoint

    def double(self) -> Self:
        """Both in float64, in place."""
        self.reference.double()
        self.ours.model.double()
        return self


@dataclass(frozen=True, eq=False)
class Inputs:
    """What both read: ids, for an encoder-decoder also a target; True keeps a real token."""

    ids: Tensor
    keep: Tensor | None = None
    target: Tensor | None = None
    target_keep: Tensor | None = None
    segments: Tensor | None = None


def build_reference(case: Case, shaken: bool = True, seed: int = 7) -> Any:
    """The reference in eager attention with weights that follow from the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any = case.reference(copy.deepcopy(case.config))
    model.set_attn_implementation("eager")
    if shaken:
        shake(model, case.by, case.fixed)
    return model.eval()


def shake(model: nn.Module, by: float, fixed: tuple[str, ...] = ()) -> None:
    """Noise on every number that is saved: zero biases and unit norms would hide a mistake."""
    generator = torch.Generator().manual_seed(1)
    saved = model.state_dict(keep_vars=True)
    seen: set[int] = set()
    with torch.no_grad():
        for name, value in saved.items():
            if id(value) in seen or any(fnmatch.fnmatch(name, pattern) for pattern in fixed):
                continue
            seen.add(id(value))
            if value.is_floating_point():
                value.add_(torch.randn(value.shape, generator=generator), alpha=by)
                value.mul_(COARSE).round_().div_(COARSE)


def open_pair(case: Case, folder: Path, *, shaken: bool = True) -> Pair:
    """Build, save and open; nothing of the file may be left over but what the case names."""
    reference = build_reference(case, shaken)
    reference.save_pretrained(folder, max_shard_size="20KB" if case.shards else "1GB")
    assert (folder / "model.safetensors.index.json").exists() == case.shards
    if case.published is not None:
        (folder / "config.json").write_text(json.dumps(case.published))
    ours = load_checkpoint(folder)
    assert ours.family == case.config.model_type
    beyond = [n for n in ours.unused if not any(fnmatch.fnmatch(n, p) for p in case.unused)]
    assert beyond == []
    return Pair(case, reference, ours)


def inputs_of(pair: Pair, length: int, padding: str = "none", *, segments: bool = False) -> Inputs:
    """Texts of ordinary tokens, padded on one side to the longest; targets are a bit shorter."""
    config = pair.ours.config
    special = {config.pad_id, config.bos_id, *config.generation.eos_ids}
    filler = 0 if config.pad_id is None else config.pad_id
    generator = torch.Generator().manual_seed(length)

    def texts(vocabulary: int, length: int) -> tuple[Tensor, Tensor | None]:
        ordinary = torch.tensor([i for i in range(vocabulary) if i not in special])
        picked = torch.randint(len(ordinary), (BATCH, length), generator=generator)
        if padding == "none":
            return ordinary[picked], None
        lengths = [length, max(1, length - 2), max(1, length // 2)]
        keep = keep_of_lengths(lengths, length, padding)
        return ordinary[picked].masked_fill(~keep, filler), keep

    if config.kind == "encoder-decoder":
        ids, keep = texts(config.src_vocab_size or config.vocab_size, length)
        target, target_keep = texts(config.vocab_size, max(1, length - 1))
        return Inputs(ids, keep, target, target_keep)
    ids, keep = texts(config.vocab_size, length)
    if not segments:
        return Inputs(ids, keep)
    shape = ids.shape
    return Inputs(ids, keep, segments=torch.randint(2, shape, generator=generator))


def reference_values(pair: Pair, inputs: Inputs) -> dict[str, Tensor]:
    """What the reference shows of one pass, by the names of our sites, real tokens only."""
    config, takes = pair.ours.config, inspect.signature(pair.reference.forward).parameters
    given: dict[str, Any] = {"input_ids": inputs.ids, "attention_mask": inputs.keep}
    if inputs.target is not None:
        given |= {"decoder_input_ids": inputs.target, "decoder_attention_mask": inputs.target_keep}
    elif inputs.keep is not None and config.kind == "decoder" and "position_ids" in takes:
        # Those that follow the padding, as its own generation hands them over.
        given["position_ids"] = (inputs.keep.cumsum(-1) - 1).clamp(min=0)
    if inputs.segments is not None:
        given["token_type_ids"] = inputs.segments
    given = {name: g.long() if g is not None else None for name, g in given.items()}
    shown: Any = {"output_hidden_states": True, "output_attentions": True, "use_cache": False}
    with torch.no_grad(), AllInDouble():
        out = pair.reference(**given, **shown)
    values = dict(_shown(pair, out, inputs))
    answers = ("logits", "prediction_logits", "last_hidden_state")
    values["logits"] = next(out[name] for name in answers if name in out)
    # A classifier of the first token reads it, whatever it is.
    if classifies_the_first(config) and inputs.keep is not None and not inputs.keep[:, 0].all():
        del values["logits"]
    return real(values, inputs)


def classifies_the_first(config: TransformerConfig) -> bool:
    return config.head == "classifier" and config.pooling == "first"


def _shown(pair: Pair, out: Any, inputs: Inputs) -> Iterator[tuple[str, Tensor]]:
    config = pair.ours.config
    for stack in config.stacks:
        prefix = f"{stack}_" if len(config.stacks) > 1 else ""
        streams, attentions = out[f"{prefix}hidden_states"], out[f"{prefix}attentions"]
        layers = config.encoder_layers if stack == "encoder" else config.n_layers
        assert len(streams) == layers + 1
        assert len(attentions) == layers
        for i in range(layers):
            yield f"{stack}.{i}.resid_pre", streams[i]
            if i:
                yield f"{stack}.{i - 1}.resid_post", streams[i]
            yield f"{stack}.{i}.self_attn.weights", attentions[i]
        yield f"{stack}.final", streams[-1]
    if inputs.target is not None:
        assert len(out.cross_attentions) == config.n_layers
        for i, weights in enumerate(out.cross_attentions):
            yield f"decoder.{i}.cross_attn.weights", weights
        yield "memory", out.encoder_last_hidden_state


def our_trace(pair: Pair, inputs: Inputs, sites: tuple[str, ...] = EVERYTHING) -> Trace:
    model = pair.ours.model
    if inputs.target is None:
        return trace(model, inputs.ids, keep=inputs.keep, segments=inputs.segments, sites=sites)
    keeps: Any = {"source_keep": inputs.keep, "target_keep": inputs.target_keep}
    return trace(model, inputs.ids, inputs.target, sites=sites, **keeps)


def our_values(seen: Trace, inputs: Inputs, names: list[str]) -> dict[str, Tensor]:
    """The same of ours; weights that were not recorded are derived, what is not there is left."""
    values = {}
    for name in names:
        if name.endswith(".weights"):
            values[name] = seen.weights(name.removesuffix(".weights"))
        elif name == "logits":
            values[name] = seen.output
        elif name in seen:
            values[name] = seen[name]
    return real(values, inputs)


def real(values: dict[str, Tensor], inputs: Inputs) -> dict[str, Tensor]:
    """The values at real tokens alone, one row after another."""
    if inputs.keep is None:
        return values
    decoder = inputs.keep if inputs.target_keep is None else inputs.target_keep
    chosen = {}
    for name, value in values.items():
        reads_encoder = name == "memory" or name.startswith("encoder.")
        rows = inputs.keep if reads_encoder else decoder
        if name.endswith(".weights"):
            columns = inputs.keep if ".cross_attn." in name else rows
            both = rows[:, None, :, None] & columns[:, None, None, :]
            chosen[name] = value[both.expand_as(value)]
        else:
            chosen[name] = value[rows] if value.dim() == 3 else value
    return chosen


def is_the_reference(case: Case, folder: Path, *, first: bool) -> None:
    """Shaken weights in float32 and float64, with and without padding.

    The first case of a family has padding on either side and writes. Its weights are also those
    that the reference makes: some mistakes only show at unit norms.
    """
    pair = open_pair(case, folder / "shaken")
    side = "right" if classifies_the_first(pair.ours.config) else "left"
    if first:
        made = open_pair(case, folder / "made", shaken=False)
        compare(made, inputs_of(made, LENGTH, side))
    passes = PASSES if first else (PASSES[0], (side, LENGTH))
    same_values(pair, passes[:1] if case.exact else passes)
    pair.double()
    if case.exact:
        same_values(pair, passes[1:])
    is_writer = pair.ours.config.head == "language-model" and pair.ours.model.decoder is not None
    if first and is_writer:
        same_writing(pair)


def same_values(pair: Pair, passes: Sequence[tuple[str, int]]) -> None:
    """Streams, attention weights and logits agree on every text, watched and derived."""
    for padding, length in passes:
        compare(pair, inputs_of(pair, length, padding))
    if pair.ours.config.n_segments > 1:
        compare(pair, inputs_of(pair, LENGTH, "right", segments=True))


def compare(pair: Pair, inputs: Inputs) -> None:
    """A weight is as exact as its score: what float32 leaves of a score grows with the score."""
    theirs = reference_values(pair, inputs)
    scores = dict[str, float]()
    for sites in (EVERYTHING, CHEAP_SITES):
        seen = our_trace(pair, inputs, sites)
        for name in seen.sites:
            if name.endswith(".scores"):
                largest = float(seen[name].nan_to_num(0, 0, 0).abs().max())
                scores[name.replace(".scores", ".weights")] = max(1.0, largest)
        ours = our_values(seen, inputs, list(theirs))
        assert sites == CHEAP_SITES or ours.keys() == theirs.keys()
        for name, value in ours.items():
            assert_close(value, theirs[name], name, scores.get(name, 1.0))


def assert_close(ours: Tensor, theirs: Tensor, what: str, size: float = 1.0) -> None:
    """No difference but rounding of numbers of this size between finite ones of one type."""
    assert ours.dtype == theirs.dtype, what
    assert torch.isfinite(ours).all(), what
    assert_close_to(ours, theirs, size * TOLERANCE[ours.dtype], what)


def same_writing(pair: Pair) -> None:
    """Greedy generation: the same tokens, ours with and without its cache.

    In float64, where no two tokens are likely to be equally good up to rounding.
    """
    for padding in ("none", "left"):
        inputs = inputs_of(pair, LENGTH, padding)
        theirs = reference_writing(pair, inputs)
        assert theirs.shape[1] > 2
        for use_cache in (True,) if padding == "none" else (True, False):
            ours = pair.ours.model.generate(
                inputs.ids, max_length=WRITTEN, keep=inputs.keep, greedy=True, use_cache=use_cache
            )
            assert ours.tolist() == theirs.tolist(), f"{padding} padding, cache {use_cache}"


def reference_writing(pair: Pair, inputs: Inputs, **settings: Any) -> Tensor:
    """What the reference writes, told to begin, stop and fill up as our config says."""
    config = pair.ours.config
    ends = list(config.generation.eos_ids)
    filler = next(i for i in (config.pad_id, *ends, UNNAMED) if i is not None)
    settings = {"eos_token_id": ends or None, "pad_token_id": filler} | settings
    settings |= {"do_sample": False, "max_new_tokens": WRITTEN}
    if config.kind == "encoder-decoder":
        settings["decoder_start_token_id"] = config.bos_id
    pair.reference.generation_config = GenerationConfig(**settings)
    keep = torch.ones_like(inputs.ids) if inputs.keep is None else inputs.keep.long()
    with torch.no_grad(), AllInDouble():
        return pair.reference.generate(inputs.ids, attention_mask=keep)
