"""A published family: how its config becomes ours, and the names of its weights ours."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from models.config import TransformerConfig
from models.families.layout import Same
from models.families.published import Published

PARAMETER_ENDINGS = (".weight", ".bias")
SUGGESTION = "open one such as gpt2, llama, bert or t5"
"""Ends a refusal; config.json and GGUF files both use these names."""
RENAMED = {".gamma": ".weight", ".beta": ".bias"}
"""What the oldest files call the parameters of norms, and what newer ones do."""

Names = Mapping[str, str | Same]
"""Published names to ours or to a layout of ours; a module stands for its weight and bias.

`{i}` stands for every layer. Two names of the same tensor of ours are copies: a file needs one.
"""


@dataclass(frozen=True)
class Family:
    """How checkpoints of some `model_type`s are read.

    A file with a head puts `prefix` before the names of the body; names that begin as in
    `unprefixed` have none. `output` is the name of the output matrix, which a tied model may
    leave out, and `apart` are those of the embeddings of two stacks that need not share one. A
    file may lack the `optional` names; the field of the config beside each is then false.
    `published` writes a config of ours as one of theirs. `aliases` are other names of settings,
    which win where a config has both.
    """

    types: tuple[str, ...]
    config: Callable[[Published], TransformerConfig]
    names: Callable[[TransformerConfig], Names]
    prefix: str = ""
    output: str = "lm_head.weight"
    apart: tuple[str, str] | None = None
    optional: Mapping[str, str] = field(default_factory=dict)
    published: Callable[[TransformerConfig], dict[str, Any]] | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    unprefixed: tuple[str, ...] = ("lm_head.", "embed_out.", "score.", "classifier.", "cls.")

    def read(self, values: Mapping[str, Any]) -> Published:
        """The values of a config.json, with aliases replaced by the family's own names."""
        named = {own: values[alias] for alias, own in self.aliases.items() if alias in values}
        return Published({**values, **named})

    def plain(self, name: str) -> str:
        """The name without its prefix, in the newer form."""
        name = name.removeprefix(self.prefix)
        for old, new in RENAMED.items():
            name = name.removesuffix(old) + new if name.endswith(old) else name
        return name

    def add_prefix(self, name: str, config: TransformerConfig) -> str:
        """The reverse of `plain`; a file without a head has no prefixes."""
        bare = config.head == "none" or name.startswith(self.unprefixed)
        return name if bare else self.prefix + name

    def layouts(self, config: TransformerConfig) -> Iterator[tuple[str, Same]]:
        """Every tensor that a file may have: its plain name, and the layout of ours in it."""
        for theirs, ours in self.names(config).items():
            layout = Same((ours,)) if isinstance(ours, str) else ours
            for i in layers_of(config, layout.ours[0]):
                yield from _numbered(theirs, layout, i)


def layers_of(config: TransformerConfig, ours: str) -> Iterable[int]:
    """The layers that a name of ours stands for; one where it has no `{i}`."""
    if "{i}" not in ours:
        return range(1)
    return range(config.encoder_layers if ours.startswith("encoder.") else config.n_layers)


def _numbered(theirs: str, layout: Same, i: int) -> Iterator[tuple[str, Same]]:
    """The tensors of one entry in layer i."""
    theirs = theirs.replace("{i}", str(i))
    ours = tuple(name.replace("{i}", str(i)) for name in layout.ours)
    if ours[0].endswith(PARAMETER_ENDINGS):
        yield theirs, layout.of(ours)
        return
    for ending in PARAMETER_ENDINGS:
        yield theirs + ending, layout.of(tuple(name + ending for name in ours))
