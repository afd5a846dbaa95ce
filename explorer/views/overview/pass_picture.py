"""The picture of the pass: the shares of all parts, the answers, and the logit lens."""

import hashlib
from collections.abc import Iterator

import torch
from torch import Tensor

from explorer.analysis.information_flow import cached_flow, first_answer, most_tokens
from explorer.analysis.logit_lens import likeliest_by_position
from explorer.analysis.output_change import has_words, last_streams
from explorer.app.address_parameters import TEXT_LIMIT
from explorer.catalog.opened_model import OpenModel
from explorer.components.pass_map import MOST_OPTIONS, MapAnswer, MapStack, PassMap
from explorer.inference.answers import class_names, score_words
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import cached, is_cached
from explorer.text.token_labels import candidate_text, labels_of

LAYERS_AT_ONCE = 4

NO_CHARACTER = "\ufffd"
Cell = tuple[str, float]


def too_long(forward: ForwardPass) -> str:
    """Why there is no picture for this text, and what to do."""
    tokens = max(len(forward.source), len(forward.target))
    return (
        f"The picture of the pass is drawn for texts of up to {most_tokens(forward):,} tokens of "
        f"this model, and this one has {tokens:,}: shorten it, or look at the page Attention maps."
    )


def picture_of(opened: OpenModel, forward: ForwardPass) -> PassMap:
    """All that the picture shows of a pass at first, computed once."""
    key = "picture of the pass", *forward.key
    # Its bytes are counted with the cached shares and the cached pass.
    return cached(opened, key, lambda: _picture(opened, forward), lambda _: 0)


def _picture(opened: OpenModel, forward: ForwardPass) -> PassMap:
    flow = cached_flow(opened, forward)
    stacks = [
        MapStack(
            name,
            name.capitalize(),
            forward.source if name == "encoder" else forward.target,
            list(flow.stacks[name][0].attentions) if flow.stacks[name] else [],
            forward.output_tokens if name == "decoder" and forward.source else (),
        )
        for name in flow.stacks
    ]
    words = has_words(forward.config)
    behind = "In place of {token}" if forward.config.kind == "encoder" else "After {token}"
    behind = behind if words else score_words(forward.config).title
    passed = repr((id(opened), *forward.key)).encode()
    of = hashlib.sha256(passed).hexdigest()[:12]
    first = first_answer(opened, forward)
    first_answers = {}
    if words:
        first_answers = {first: answers(opened, forward, range(first, first + 1))[0]}
    elif forward.config.head == "classifier":
        scores = forward.config.scores(forward.trace.output[forward.row])
        top = scores.topk(min(MOST_OPTIONS, len(scores)))
        names = map(class_names(opened).__getitem__, top.indices.tolist())
        options = [*zip(names, top.values.tolist(), strict=True)]
        first_answers = {0: MapAnswer(options[0][0], options)}
    score = score_words(forward.config).score
    return PassMap(flow, stacks, first_answers, forward.config.n_heads, behind, words, of, score)


def answers(opened: OpenModel, forward: ForwardPass, places: range) -> list[MapAnswer]:
    """The model's answers at some positions; the cost grows with these × d_model × vocabulary."""
    stream = _stream(forward, -1)[:, places.start : places.stop]
    tokens = [token.label for token in forward.last_stack_tokens]
    values, indices = likeliest_by_position(forward.trace, stream, MOST_OPTIONS)
    labels = iter(labels_of(opened.tokenizer, indices.flatten().tolist()))
    result = []
    for place, row in zip(places, values.tolist(), strict=True):
        before = tokens[: place + 1] if forward.config.kind == "decoder" else ()
        cells = [(candidate_text(next(labels), before), p) for p in row]
        result.append(MapAnswer(cells[0][0], cells))
    return result


def all_answers(opened: OpenModel, forward: ForwardPass) -> list[MapAnswer]:
    """The model's answers at every position, computed once."""
    key = "answers of the map", *forward.key
    places = range(len(forward.last_stack_tokens))
    return cached(opened, key, lambda: answers(opened, forward, places))


def continuations(opened: OpenModel, forward: ForwardPass) -> tuple[str, ...]:
    """The text followed by each of the likeliest next tokens, computed once.

    A text is empty if its token ends the text or is a part of a character. There are no
    continuations if the model does not continue a text.
    """
    config = forward.config
    if config.kind != "decoder" or config.head != "language-model":
        return ()
    key = "continued", *forward.key
    return cached(opened, key, lambda: _continuations(opened, forward))


def _continuations(opened: OpenModel, forward: ForwardPass) -> tuple[str, ...]:
    _, indices = likeliest_by_position(forward.trace, _stream(forward, -1)[:, -1:], MOST_OPTIONS)
    ids = [token.id for token in forward.target]
    before, texts = opened.tokenizer.decode(ids), []
    for option in indices[0].tolist():
        after = opened.tokenizer.decode([*ids, option])
        is_whole = after.startswith(before) and not after.endswith(NO_CHARACTER)
        added = after[len(before) :] if is_whole else ""
        fits = added and len(forward.text) + len(added) <= TEXT_LIMIT
        texts.append(forward.text + added if fits else "")
    return tuple(texts)


def _stream(forward: ForwardPass, layers: int) -> Tensor:
    """The residual stream after so many layers of the last stack, -1 for all, (1, tokens, d)."""
    stack, count = last_streams(forward.config)
    last = f"{layers - 1 if layers > 0 else count - 1}.resid_post"
    passed = forward.trace[f"{stack}.{last if layers else '0.resid_pre'}"]
    return passed[forward.row : forward.row + 1]


def lens_by_layer(
    opened: OpenModel, forward: ForwardPass
) -> Iterator[tuple[int, list[list[Cell]]]]:
    """The logit lens from the last layer down, a few layers at a time: the first, and a row each.

    The cost grows with layers × tokens × d_model × vocabulary: more than the pass itself.
    """
    _, count = last_streams(forward.config)
    for first in reversed(range(0, count, LAYERS_AT_ONCE)):
        layers = range(first, min(count, first + LAYERS_AT_ONCE))
        key = "lens of the map", *forward.key, first
        yield first, cached(opened, key, lambda: _lens(opened, forward, layers))  # noqa: B023


def lens_is_cached(opened: OpenModel, forward: ForwardPass) -> bool:
    """Whether the whole lens is in the cache."""
    return is_cached(opened, ("lens of the map", *forward.key, 0))


def embedding_words(opened: OpenModel, forward: ForwardPass) -> list[Cell]:
    """What the lens reads at every position before the first layer, computed once."""
    key = "lens of the embedding", *forward.key
    return cached(opened, key, lambda: _lens(opened, forward, range(-1, 0))[0])


def _lens(opened: OpenModel, forward: ForwardPass, layers: range) -> list[list[Cell]]:
    streams = torch.cat([_stream(forward, layer + 1) for layer in layers], 1)
    values, indices = likeliest_by_position(forward.trace, streams, 1)
    labels = labels_of(opened.tokenizer, indices[:, 0].tolist())
    names = [str(candidate_text(label)) for label in labels]
    words = [*zip(names, values[:, 0].tolist(), strict=True)]
    tokens = len(words) // len(layers)
    return [words[at * tokens : (at + 1) * tokens] for at in range(len(layers))]
