"""A finding about a circuit is a file: a model, a question, and everything that was measured.

It has no date and no path in it: the same question of the same weights makes the same file.
"""

import json
from dataclasses import asdict, dataclass, field
from hashlib import blake2b

import torch

from explorer.analysis.circuit_curves import CircuitPoint
from explorer.analysis.circuits.checked_json import AT_MOST, FieldError, parsed, read_as
from explorer.analysis.circuits.graph import Edge
from explorer.analysis.circuits.measure import METHODS
from explorer.analysis.circuits.outcome import ANSWERS_READ
from explorer.analysis.circuits.text_pairs import TextPair
from explorer.catalog.folders import own_name
from explorer.catalog.opened_model import Opened
from explorer.inference.results_cache import kept
from explorer.system.limits import FINDING_BYTES

FORMAT, VERSION = "attention-explorer finding", 1
MOST_EDGES_KEPT = 1_000
"""The strongest edges are in the file; how many there are in all is too."""


class FindingError(ValueError):
    """Why a file is no finding that can be opened, in one sentence."""


@dataclass(frozen=True)
class Shape:
    """What two models must share for their heads to be compared one by one."""

    kind: str
    head: str
    layers: int
    heads: int
    d_model: int
    d_ff: int
    vocab_size: int

    @property
    def in_words(self) -> str:
        layers = f"{self.layers} layer{'s' if self.layers != 1 else ''}"
        heads = f"{self.heads} head{'s' if self.heads != 1 else ''}"
        return f"{layers} of {heads}, width {self.d_model:,}"


@dataclass(frozen=True)
class FoundPair:
    """The two texts and their tokens, the answers as they can be typed, and by their names.

    An answer that no typed text stands for is empty: the likeliest is meant.
    """

    clean: str
    corrupted: str
    answer: str
    against: str
    clean_tokens: tuple[str, ...]
    corrupted_tokens: tuple[str, ...]
    names: tuple[str, str]
    clean_value: float
    corrupted_value: float

    @property
    def texts(self) -> TextPair:
        return TextPair(self.clean, self.corrupted, self.answer, self.against)


@dataclass(frozen=True)
class MeanAndSpread:
    """A mean over the pairs and its standard deviation, None for one pair."""

    mean: float
    spread: float | None


@dataclass(frozen=True)
class Found:
    """What a part carries of the metric: by attribution, its spread, and by patching."""

    estimate: float
    spread: float | None
    exact: float | None


@dataclass(frozen=True)
class FoundLayer(Found):
    layer: int


@dataclass(frozen=True)
class FoundHead(FoundLayer):
    head: int


@dataclass(frozen=True)
class Finding:
    """What was found. `exact` is None where nothing was patched; `edges` are the strongest of
    `edges_in_all`. `faithfulness` is empty and `minimum` None where no circuit was run.

    `correlation` is that of estimate and exact value over the heads.
    """

    format: str
    version: int
    model: str
    digest: str
    shape: Shape
    metric: str
    method: str
    steps: int
    pairs: tuple[FoundPair, ...]
    clean: MeanAndSpread
    corrupted: MeanAndSpread
    embedding: Found
    heads: tuple[FoundHead, ...]
    feed_forward: tuple[FoundLayer, ...]
    edges: tuple[Edge, ...] = field(metadata={AT_MOST: MOST_EDGES_KEPT})
    edges_in_all: int
    correlation: float | None
    faithfulness: tuple[CircuitPoint, ...]
    minimum: int | None

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @property
    def fault(self) -> str:
        """Which number is of no part of its model, in a sentence; empty where none is."""
        if self.metric not in ANSWERS_READ:
            return f"metric must be one of {', '.join(ANSWERS_READ)}."
        if self.method not in METHODS:
            return f"method must be one of {', '.join(METHODS)}."
        if not self.pairs:
            return "There is no pair of texts in it."
        nodes = [node for edge in self.edges for node in (edge.source, edge.target)]
        parts = [(each.layer, each.head) for each in self.heads]
        parts += [(each.layer, each.head) for each in nodes]
        parts += [(each.layer, 0) for each in self.feed_forward]
        shape = self.shape
        for layer, head in parts:
            if layer >= shape.layers or head >= shape.heads:
                return f"Layer {layer}, head {head} is not one of {shape.in_words}."
        return ""


def finding_from(data: bytes) -> Finding:
    """The finding in a file. FindingError says why it is none, in one sentence."""
    if not FINDING_BYTES.allows(len(data)):
        raise FindingError(FINDING_BYTES.refusal(len(data)))
    try:
        values = parsed(data.decode("utf-8-sig"))
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise FindingError(
                "This file is no finding about a circuit: choose one that the Circuits page or "
                "the command line wrote."
            )
        if values.get("version") != VERSION:
            found = str(values.get("version"))[:20]
            raise FindingError(
                f"This finding is of version {found} and this app reads version {VERSION}: open "
                "it with the app that wrote it."
            )
        finding = read_as(Finding, values)
    except UnicodeDecodeError as error:
        raise FindingError("This file is no text, so it is no finding: choose another.") from error
    except FieldError as error:
        raise FindingError(f"This finding is damaged and cannot be opened. {error}") from error
    if fault := finding.fault:
        raise FindingError(f"This finding is damaged and cannot be opened. {fault}")
    return finding


def digest_of(opened: Opened) -> str:
    """A BLAKE2 digest of the names, shapes and numbers of all weights; made once, kept.

    Reads the weights once: some 0.6 s for 540 MB.
    """

    def make() -> str:
        digest = blake2b(digest_size=16)
        for name, weight in sorted(opened.model.named_parameters()):
            digest.update(f"{name} {tuple(weight.shape)} {weight.dtype}\n".encode())
            digest.update(
                weight.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data
            )
        return digest.hexdigest()

    return kept(opened, "weights digest", make, len)


def shape_of(opened: Opened) -> Shape:
    config = opened.config
    layers = config.encoder_layers if config.kind == "encoder" else config.n_layers
    return Shape(
        config.kind,
        config.head,
        layers,
        config.n_heads,
        config.d_model,
        config.d_ff,
        config.vocab_size,
    )


def other_model(finding: Finding, opened: Opened) -> str:
    """How the model of a finding differs from this one, in a sentence; empty where it does not."""
    if finding.digest == digest_of(opened):
        return ""
    of, here = finding.shape, shape_of(opened)
    if of == here:
        differs = "other weights of the same shape"
    else:
        differs = f"another shape ({of.in_words}, not {here.in_words})"
    return (
        f"This finding is of {finding.model[:60]}, which has {differs}: here its pairs and its "
        f"metric are asked of {own_name(opened.name)[:60]}."
    )
