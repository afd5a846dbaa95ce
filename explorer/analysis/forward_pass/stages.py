"""The stages of a forward pass in the order they run, as the model itself shows them to a tap.

A model with the same parts and hardly any weights is run. What one value is computed from, and by
which module, is read from the graph that autograd makes of the pass.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor

from explorer.analysis.forward_pass.kinds import KINDS, kind_of
from explorer.analysis.forward_pass.stage import Stage
from models import GenerationConfig, Transformer, TransformerConfig
from models.trace import RecordingTap

BRANCHES = {"resid_mid": "self_attn", "resid_cross": "cross_attn", "resid_post": "mlp"}
STEPS = ("q_proj", "q_norm", "k_proj", "k_norm", "add")
"""A value with one of these names has another name where nothing follows this step."""
OF_POSITIONS = ("positions", "rotated", "bias")
BETWEEN = {"scores": "products", "output projection": "concat"}
"""Kinds that are shown as two stages: the stage of the other kind comes first."""


@dataclass
class _PassValue:
    """One value of the pass: its names in the order of the pass, and the values it comes from."""

    sites: list[str]
    reads: list["_PassValue"]
    module: str

    @property
    def name(self) -> str:
        named = (site for site in self.sites if site.split(".")[-1] not in STEPS)
        return next(named, self.sites[0])


class _ListingTap(RecordingTap):
    """Lists every value that carries a gradient, by the node of the graph that made it."""

    def __init__(self, modules: Mapping[int, list[str]]) -> None:
        super().__init__()
        self.modules, self.by_node = modules, dict[Any, _PassValue]()

    def wants(self, name: str) -> bool:
        return not name.endswith("_input")

    def __call__(self, name: str, value: Tensor) -> Tensor:
        is_absent = name == "bias" and not any(value.stride()[-2:])  # zeros without room
        if is_absent or not self.wants(name) or not value.is_floating_point():
            return value
        site, node = self._prefix + name, value.grad_fn
        while node is not None and node.name() == "AliasBackward0":
            node = node.next_functions[0][0]
        if node in self.by_node:
            self.by_node[node].sites.append(site)
            return value
        reads, names = list[_PassValue](), list[list[str]]()
        for origin in self._origins(node, set()):
            (reads if isinstance(origin, _PassValue) else names).append(origin)
        own = [min(tied, key=lambda n: not n.startswith(self._prefix[:7])) for tied in names]
        levels = zip(*(name.split(".")[:-1] for name in own), strict=False)
        common = takewhile(lambda level: len({*level}) == 1, levels)
        module = ".".join(level[0] for level in common)
        if node is None:
            value = value.detach().requires_grad_()
        value = value.view_as(value)
        self.by_node[value.grad_fn] = _PassValue([site], reads, module)
        return value

    def _origins(self, node: Any, visited: set[Any]) -> Iterator[Any]:
        """The values it comes from, in order, and the names of the weights that it is made with."""
        if node is None or node in visited:
            return
        visited.add(node)
        if node in self.by_node:
            yield self.by_node[node]
        elif hasattr(node, "variable"):
            yield from [self.modules[id(node.variable)]] * (id(node.variable) in self.modules)
        else:
            for before, _ in node.next_functions:
                yield from self._origins(before, visited)


@lru_cache(maxsize=64)
def stages_of(config: TransformerConfig) -> tuple[Stage, ...]:
    """Every stage of a model of this config, in the order it runs.

    Layers with a window are alike, and so are those without: the model that is run has one of
    each, and the other layers are copies with their own names.
    """
    windows = {bool(window): window for window in config.windows}
    two = config.kind == "encoder-decoder"
    sizes = {"n_layers": len(windows) or 1, "n_encoder_layers": 1 if two else None}
    one_of_each = config.replace(**sizes, windows=tuple(windows.values()))
    listed, stages = _listed(one_of_each), list[Stage]()
    names: dict[str, str] = {}  # from the name of a listed stage to its name here
    for stack in config.stacks:
        layers = config.encoder_layers if stack == "encoder" else config.n_layers
        own = [stage for stage in listed if stage.stack == stack]
        first = next(at for at, stage in enumerate(own) if stage.layer is not None)
        last = next(at for at in reversed(range(len(own))) if own[at].layer is not None)
        stages += [_renamed(stage, names) for stage in own[:first]]
        for layer in range(layers):
            like = [*windows].index(bool(config.window(layer))) if windows else 0
            place = next(at for at, stage in enumerate(own) if stage.layer == like)
            names[own[place - 1].name] = stages[-1].name
            stages += [_renamed(s, names, layer) for s in own if s.layer == like]
        names[own[last].name] = stages[-1].name
        stages += [_renamed(stage, names) for stage in own[last + 1 :]]
    return tuple(stages)


def _renamed(stage: Stage, names: dict[str, str], layer: int | None = None) -> Stage:
    """A listed stage in this layer; `names` maps the stages that it reads to their names here."""
    if layer is not None and layer != stage.layer:
        before, here = f"{stage.stack}.{stage.layer}.", f"{stage.stack}.{layer}."
        stage = replace(
            stage,
            name=stage.name.replace(before, here),
            site=stage.site.replace(before, here),
            module=stage.module.replace(f".blocks.{stage.layer}.", f".blocks.{layer}."),
            reads=tuple(names.get(name, name.replace(before, here)) for name in stage.reads),
            aliases=tuple(name.replace(before, here) for name in stage.aliases),
            section=f"Layer {layer}",
            layer=layer,
        )
    return replace(stage, reads=tuple(names.get(name, name) for name in stage.reads))


def _small(config: TransformerConfig) -> TransformerConfig:
    """A model with the same parts and hardly any weights."""
    two = None if config.n_kv_heads in (None, config.n_heads) else 1
    is_partly_rotary = config.d_rotary not in (None, config.head_width)
    return config.replace(
        vocab_size=4,
        src_vocab_size=None if config.src_vocab_size is None else 4,
        d_model=16,
        n_heads=2,
        n_kv_heads=two,
        d_head=None,
        d_rotary=4 if is_partly_rotary else None,
        d_ff=min(config.d_ff, 8),
        d_ff_encoder=None,
        max_len=8,
        n_buckets=8,
        max_distance=16,
        position_offset=0,
        n_segments=min(config.n_segments, 2),
        n_classes=min(config.n_classes, 2),
        d_classifier=None if config.d_classifier is None else 4,
        rope_scaling=None,
        pad_id=None if config.pad_id is None else 0,
        bos_id=None if config.bos_id is None else 0,
        generation=GenerationConfig(),
    )


def _listed(config: TransformerConfig) -> list[Stage]:
    """The stages of a model in the order of its tap, layer by layer."""
    model = Transformer(_small(config)).eval()
    ids = torch.zeros(1, 2, dtype=torch.long)
    keep = None if config.pad_id is None else torch.ones_like(ids, dtype=torch.bool)
    weights: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        weights.setdefault(id(parameter), []).append(name)
    tap = _ListingTap(weights)
    with torch.enable_grad():
        if config.kind == "encoder-decoder":
            model(ids, ids, source_keep=keep, target_keep=keep, tap=tap)
        else:
            model(ids, keep=keep, tap=tap)
    stages: list[Stage] = []
    for value in tap.by_node.values():
        stages += _stages(value, config, started={stage.stack for stage in stages})
    return stages


def _stages(value: _PassValue, config: TransformerConfig, started: set[str]) -> Iterator[Stage]:
    """The stage of a value, after those that explain how it comes about."""
    *scopes, tail = value.sites[0].split(".")
    name, reads = value.name, tuple(source.name for source in value.reads)
    stack = scopes[0] if scopes and scopes[0] in config.stacks else config.stacks[-1]
    layer = int(scopes[1]) if len(scopes) > 1 else None
    branch = scopes[2] if len(scopes) > 2 else BRANCHES.get(tail, "")
    kind = kind_of(branch, tail)
    if kind == "logits" and config.head == "none":
        return
    if kind == "logits" and config.head == "classifier":
        kind = "class logits"
    section = "Output" if kind in ("final norm",) or scopes[:1] != [stack] else "Input"
    section = section if layer is None else f"Layer {layer}"
    if stack not in started:
        yield _stage(config, f"{stack}.tokens", "tokens", stack, "Input")
    where: dict[str, Any] = {"stack": stack, "section": section, "layer": layer, "branch": branch}
    if kind in BETWEEN:
        between = f"{stack}.{layer}.{branch}.{BETWEEN[kind]}"
        yield _stage(config, between, BETWEEN[kind], reads=reads, **where)
        reads = (between,)
    module = f"{stack}.positions" if kind in OF_POSITIONS else value.module
    reads = reads or (f"{stack}.tokens",)
    more = {"site": name, "module": module, "aliases": tuple(value.sites), **where}
    yield _stage(config, name, kind, reads=reads, **more)
    if tail == "logits" and config.score_function != "none":
        shapes = KINDS[kind].shapes
        yield _stage(
            config, "probabilities", "probabilities", reads=(name,), shapes=shapes, **where
        )


def _stage(
    config: TransformerConfig,
    name: str,
    kind: str,
    stack: str,
    section: str,
    reads: tuple[str, ...] = (),
    shapes: Any = (),
    **more: Any,
) -> Stage:
    of = KINDS[kind]
    shapes = shapes or of.shapes_of(name, config)
    return Stage(name, of.title_of(name, config), kind, stack, section, reads, shapes, **more)


def sizes(
    config: TransformerConfig, batch: int, tokens: int, source: int, keys: int
) -> Mapping[str, int]:
    """The size of every symbol of a shape; `keys` is the number of keys of a query."""
    return {
        "batch": batch,
        "tokens": tokens,
        "queries": tokens,
        "keys": keys,
        "source tokens": source,
        "heads": config.n_heads,
        "kv heads": config.kv_heads,
        "d_head": config.head_width,
        "heads·d_head": config.n_heads * config.head_width,
        "kv heads·d_head": config.kv_heads * config.head_width,
        "d_model": config.d_model,
        "d_ff": config.d_ff,
        "d_classifier": config.d_classifier or 0,
        "vocabulary": config.vocab_size,
        "classes": config.n_classes,
        "1": 1,
    }
