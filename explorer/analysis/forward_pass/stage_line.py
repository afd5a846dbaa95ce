"""A stage of a model's pass, and a line of them: what each is called, what it reads, its shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models import TransformerConfig

Chain = tuple[tuple[str, ...], ...]
TOKENS: Chain = (("batch", "tokens"),)
STREAM: Chain = (("batch", "tokens", "d_model"),)


@dataclass(frozen=True)
class Stage:
    """One value of the pass.

    `name` is its place in the model; `site` is what the trace calls it, empty where the
    trace does not show it; `module` is what of the model makes it. `reads` are the names
    of the stages it is computed from. `chain` are the shapes it goes through, in symbols,
    its own last. `branch` is the part of a block it belongs to.
    """

    name: str
    title: str
    kind: str
    stack: str
    section: str
    reads: tuple[str, ...]
    chain: Chain
    site: str = ""
    module: str = ""
    layer: int | None = None
    branch: str = ""

    @property
    def part(self) -> str:
        """The kind of attention that it belongs to, or nothing."""
        return f"{self.stack}.{self.branch}" if self.branch.endswith("attn") else ""

    @property
    def is_stream(self) -> bool:
        """Whether it is the residual stream itself, not what branches off it."""
        return self.kind in ("begin", "add", "norm behind", "embed", "final")

    @property
    def per_head(self) -> bool:
        """Whether every head has one of its own."""
        return "heads" in self.chain[-1] or "kv heads" in self.chain[-1]


class Line:
    """The stages of one stack as they are put one behind the other; `stream` is the last one."""

    def __init__(self, config: TransformerConfig, stack: str) -> None:
        self.config, self.stack, self.stages = config, stack, list[Stage]()
        self.stream = ""
        self.section, self.layer, self.branch = "Input", None, ""  # type: str, int | None, str

    def put(
        self,
        tail: str,
        title: str,
        kind: str,
        chain: Chain,
        *reads: str,
        site: bool | str = False,
        module: str = "",
    ) -> str:
        """One more stage, reading the stream where nothing else is said; its name."""
        place = self.stack if self.layer is None else f"{self.stack}.{self.layer}"
        name = f"{place}.{tail}" if kind not in HEAD else tail
        if module and kind not in HEAD:
            of_stack = self.layer is None or module == "positions"
            owner = self.stack if of_stack else f"{self.stack}.blocks.{self.layer}"
            module = f"{owner}.{module}"
        stage = Stage(
            name=name,
            title=title,
            kind=kind,
            stack=self.stack,
            section=self.section,
            reads=reads or ((self.stream,) if self.stream else ()),
            chain=chain,
            site=site if isinstance(site, str) else name if site else "",
            module=module,
            layer=self.layer,
            branch=self.branch,
        )
        self.stages.append(stage)
        if stage.is_stream:
            self.stream = name
        return name


HEAD = ("transform", "pooled", "class hidden", "logits", "class logits", "probabilities")


def sizes(
    config: TransformerConfig, batch: int, tokens: int, source: int, keys: int
) -> dict[str, int]:
    """What every symbol of a shape stands for; `keys` is what a query may choose from."""
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
    }


def shapes(stage: Stage, known: Mapping[str, int]) -> list[Sequence[int]]:
    """The shapes that a stage goes through, in numbers."""
    return [[known[symbol] for symbol in shape] for shape in stage.chain]
