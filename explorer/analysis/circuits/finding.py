"""A finding about a circuit is a file: a model, a question, and everything that was measured.

It has no date and no path, so the same question and the same weights make the same file.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from statistics import fmean, stdev
from typing import Any

import torch

from explorer.analysis.circuit_faithfulness import CircuitPoint
from explorer.analysis.circuit_metrics import ANSWERS_READ
from explorer.analysis.circuits.circuit_scores import METHODS, EdgeScores, correlation
from explorer.analysis.circuits.text_pairs import Question, TextPair, TokenPair, pieces_of
from explorer.analysis.wiring import Edge, Place
from explorer.catalog.folders import own_name
from explorer.catalog.opened_model import OpenModel
from explorer.inference.answers import option_name
from explorer.inference.results_cache import cached
from explorer.system import cooperative
from explorer.system.limits import FINDING_BYTES
from explorer.text.visible_text import NEWLINE, SPACE
from models.config_fields import PlainData
from models.file_text import parse_json

FORMAT, VERSION = "attention-explorer finding", 1
MOST_EDGES_KEPT = 1_000
"""Edges in the file, the strongest; it also says how many edges the model has."""


def _count() -> Any:
    """A field that holds a whole number from 0 on."""
    return field(metadata={"range": (0, 2**53)})


class FindingPart(PlainData):
    """Gives other runs their turn while it is checked, since a stranger's file can be long."""

    def fault(self) -> str | None:
        cooperative.step()
        return super().fault()


class FindingError(ValueError):
    """Why a file cannot be opened as a finding, in one sentence."""


@dataclass(frozen=True)
class Shape(PlainData):
    """What two models must share for their heads to be compared one by one."""

    kind: str
    head: str
    layers: int = _count()
    heads: int = _count()
    d_model: int = _count()
    d_ff: int = _count()
    vocab_size: int = _count()

    @property
    def in_words(self) -> str:
        layers = f"{self.layers} layer{'s' if self.layers != 1 else ''}"
        heads = f"{self.heads} head{'s' if self.heads != 1 else ''}"
        return f"{layers} of {heads}, width {self.d_model:,}"


@dataclass(frozen=True)
class PairResult(FindingPart):
    """The two texts and their tokens, the answers as a reader can type them, and their names.

    An answer that cannot be typed is empty, which stands for the likeliest one.
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
class MeanAndSpread(PlainData):
    """A mean over the pairs and its standard deviation, None for one pair."""

    mean: float
    spread: float | None


@dataclass(frozen=True)
class PartResult(FindingPart):
    """The effect of a part on the metric: its estimate, the spread of this, and its exact value."""

    estimate: float
    spread: float | None
    exact: float | None


@dataclass(frozen=True)
class LayerResult(PartResult):
    layer: int = _count()


@dataclass(frozen=True)
class HeadResult(LayerResult):
    head: int = _count()


@dataclass(frozen=True, kw_only=True)
class Finding(PlainData):
    """The measurements for one question.

    `exact` is None where nothing was patched; `edges` are the strongest of `edges_in_all`.
    `faithfulness` is empty and `minimum` None where no circuit was run. `correlation` is that of
    estimate and exact value over the heads.
    """

    format: str
    version: int
    model: str
    digest: str
    shape: Shape
    metric: str
    method: str
    steps: int = _count()
    pairs: tuple[PairResult, ...]
    clean: MeanAndSpread
    corrupted: MeanAndSpread
    embedding: PartResult
    heads: tuple[HeadResult, ...]
    feed_forward: tuple[LayerResult, ...]
    edges: tuple[Edge, ...]
    edges_in_all: int = _count()
    correlation: float | None
    faithfulness: tuple[CircuitPoint, ...]
    minimum: int | None = _count()

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def fault(self) -> str | None:
        """Which value is invalid, too long or of no part of the model, in a sentence."""
        if fault := super().fault():
            return fault
        if self.metric not in ANSWERS_READ:
            return f"metric must be one of {', '.join(ANSWERS_READ)}."
        if self.method not in METHODS:
            return f"method must be one of {', '.join(METHODS)}."
        if not self.pairs:
            return "There is no pair of texts in it."
        if len(self.edges) > MOST_EDGES_KEPT:
            return f"edges must be a list of at most {MOST_EDGES_KEPT:,}."
        nodes = [node for edge in self.edges for node in (edge.source, edge.target)]
        parts = [(node.layer, node.head) for node in nodes]
        parts += [(result.layer, result.head) for result in self.heads]
        parts += [(result.layer, 0) for result in self.feed_forward]
        for layer, head in parts:
            if layer >= self.shape.layers or head >= self.shape.heads:
                return f"Layer {layer}, head {head} is not one of {self.shape.in_words}."
        return None


def finding_from(data: bytes) -> Finding:
    """The finding in a file. FindingError where it cannot be opened."""
    FINDING_BYTES.check(len(data), FindingError)
    damaged = "This finding is damaged and cannot be opened."
    try:
        values = parse_json(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise FindingError("This file is no text, so it is no finding: choose another.") from error
    except (ValueError, RecursionError) as error:
        raise FindingError(f"{damaged} The file is not readable JSON.") from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise FindingError(
            "This file is no finding about a circuit: choose one that the Circuits page or the "
            "command line wrote."
        )
    if (version := values.get("version")) != VERSION:
        raise FindingError(
            f"This finding is of version {str(version)[:20]} and this app reads version {VERSION}: "
            "open it with the app that wrote it."
        )
    try:
        return Finding.from_dict(values)
    except ValueError as error:
        raise FindingError(f"{damaged} {error}") from error


def weights_digest(opened: OpenModel) -> str:
    """A BLAKE2 digest of the names, shapes and numbers of all weights; cached.

    Reads the weights once: about 0.6 s for 540 MB.
    """

    def make() -> str:
        digest = blake2b(digest_size=16)
        for name, weight in sorted(opened.model.named_parameters()):
            digest.update(f"{name} {tuple(weight.shape)} {weight.dtype}\n".encode())
            digest.update(
                weight.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data
            )
        return digest.hexdigest()

    return cached(opened, "weights digest", make, len)


def shape_of(opened: OpenModel) -> Shape:
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


def model_difference(finding: Finding, opened: OpenModel) -> str:
    """How the model of a finding differs from this one, in a sentence; empty where it does not."""
    if finding.digest == weights_digest(opened):
        return ""
    theirs, here = finding.shape, shape_of(opened)
    difference = "other weights of the same shape"
    if theirs != here:
        difference = f"another shape ({theirs.in_words}, not {here.in_words})"
    return (
        f"This finding is of {finding.model[:60]}, which has {difference}: here its pairs and its "
        f"metric are measured with {own_name(opened.name)[:60]}."
    )


@dataclass(frozen=True)
class CircuitMeasurement:
    """What has been measured of a question.

    `exact` has the exact value of each writer by its column, None where it was not patched;
    `exact_edges` those of the strongest edges, as far as these were patched. `points` are circuits
    of every size, and `smallest` is the number of edges that restore 90 %.
    """

    method: str
    scores: EdgeScores
    exact: Sequence[float | None]
    exact_edges: Sequence[float] = ()
    points: Sequence[CircuitPoint] = ()
    smallest: int | None = None


def finding_of(opened: OpenModel, question: Question, measurement: CircuitMeasurement) -> Finding:
    """The finding of these measurements. Computes only the digest of the weights."""
    scores, exact = measurement.scores, measurement.exact
    results = {
        place: PartResult(
            float(scores.writers[at]),
            None if scores.writers_spread is None else float(scores.writers_spread[at]),
            exact[at],
        )
        for at, place in enumerate(scores.wiring.columns)
    }
    heads = tuple(
        HeadResult(**vars(result), layer=place.layer, head=place.head)
        for place, result in results.items()
        if place.kind == "head"
    )
    both = [(head.estimate, head.exact) for head in heads if head.exact is not None]
    patched = dict(enumerate(measurement.exact_edges))
    strongest = scores.strongest(MOST_EDGES_KEPT)
    return Finding(
        format=FORMAT,
        version=VERSION,
        model=own_name(opened.name),
        digest=weights_digest(opened),
        shape=shape_of(opened),
        metric=question.metric,
        method=measurement.method,
        steps=METHODS[measurement.method],
        pairs=tuple(_pair_result(opened, question.metric, pair) for pair in question.pairs),
        clean=_mean(scores.clean),
        corrupted=_mean(scores.corrupted),
        embedding=results[Place("embedding")],
        heads=heads,
        feed_forward=tuple(
            LayerResult(**vars(result), layer=place.layer)
            for place, result in results.items()
            if place.kind == "feed-forward"
        ),
        edges=tuple(scores.edge(*edge, patched.get(at)) for at, edge in enumerate(strongest)),
        edges_in_all=len(scores.order),
        correlation=correlation([estimate for estimate, _ in both], [value for _, value in both]),
        faithfulness=tuple(measurement.points),
        minimum=measurement.smallest,
    )


def _pair_result(opened: OpenModel, metric: str, pair: TokenPair) -> PairResult:
    """A pair, with its answers as text so that another model can read them."""
    texts = pair.texts
    answers = (
        (texts.clean, texts.answer, pair.answer),
        (texts.corrupted, texts.against, pair.against),
    )
    texts_of_answers = [_answer_text(opened, *answer) for answer in answers[: ANSWERS_READ[metric]]]
    answer, against = [*texts_of_answers, "", ""][:2]
    return PairResult(
        clean=texts.clean,
        corrupted=texts.corrupted,
        answer=answer,
        against=against,
        clean_tokens=tuple(token.label for token in pair.clean),
        corrupted_tokens=tuple(token.label for token in pair.corrupted),
        names=pair.names,
        clean_value=pair.clean_value,
        corrupted_value=pair.corrupted_value,
    )


def _answer_text(opened: OpenModel, before: str, typed: str, option: int) -> str:
    """The typed answer, else a text that is read as this option; empty where there is none."""
    if typed.strip():
        return typed
    if opened.config.head == "classifier":
        return option_name(opened, option)
    text = opened.tokenizer.label(option).replace(SPACE, " ").replace(NEWLINE, "\n")
    pieces = pieces_of(opened, before, text) if text.strip() else ()
    return text if [token.id for token in pieces] == [option] else ""


def _mean(values: Sequence[float]) -> MeanAndSpread:
    return MeanAndSpread(fmean(values), stdev(values) if len(values) > 1 else None)
