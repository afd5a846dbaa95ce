"""What a published family is: two tables, one for its config and one for its weights' names."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from models.config import TransformerConfig
from models.families.layout import Same
from models.families.published import Published

PARAMETER_ENDINGS = (".weight", ".bias")
WAY_OUT = "open one such as gpt2, llama, bert or t5"
"""For who brings another; both config.json and GGUF files call these so."""
RENAMED = {".gamma": ".weight", ".beta": ".bias"}
"""How norms were called in the oldest files."""

Names = Mapping[str, str | Same]
"""Their names to ours or to a layout of ours, modules standing for their weight and bias.

`{i}` stands for every layer. Two of theirs with the same of ours are copies: one suffices.
"""


@dataclass(frozen=True)
class Family:
    """How checkpoints of some `model_type`s are read.

    `prefix` is what a file with a head puts before the names of the body; `output` is the
    name of the output matrix, which a tied model may leave out; `apart` are
    those of the embeddings of two stacks that need not share one; `optional` are names
    that a file may lack, with the field of the config that is false then. `published`
    is the way back from a config of ours, `beside` how names begin that have no prefix.
    `aliases` are other names of its settings, which count where both are given.
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
    beside: tuple[str, ...] = ("lm_head.", "embed_out.", "score.", "classifier.", "cls.")

    def read(self, values: Mapping[str, Any]) -> Published:
        """A config.json with the family's own names alone."""
        named = {own: values[alias] for alias, own in self.aliases.items() if alias in values}
        return Published({**values, **named})

    def plain(self, name: str) -> str:
        """The name without prefix and in its newer form."""
        name = name.removeprefix(self.prefix)
        for old, new in RENAMED.items():
            name = name.removesuffix(old) + new if name.endswith(old) else name
        return name

    def written(self, name: str, config: TransformerConfig) -> str:
        """The way back from `plain`; a file without a head has no prefixes."""
        bare = config.head == "none" or name.startswith(self.beside)
        return name if bare else self.prefix + name

    def layouts(self, config: TransformerConfig) -> Iterator[tuple[str, Same]]:
        """Every tensor that a file may have, by its plain name, and what of ours it holds."""
        for theirs, ours in self.names(config).items():
            layout = Same((ours,)) if isinstance(ours, str) else ours
            for i in layers_of(config, layout.ours[0]):
                yield from _numbered(theirs, layout, i)


def layers_of(config: TransformerConfig, ours: str) -> Iterable[int]:
    """The layers for which a name of ours stands; one where it has no number."""
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
