"""The scores of one head on standard prompts, and the name that they justify, if any.

What it attends to gives it a name by its programs (`explorer.analysis.head_programs`), and what it
writes by the scores here, only where they reach their thresholds. Weight on the first token
gives none: attention that finds nothing else rests there (Xiao et al. 2023, Efficient Streaming
Language Models with Attention Sinks).

Name moving, how much a head directly raises the name that it attends to, is measured at the last
token of prompts such as “When Mary and John went to the store, John gave a drink to”, with the
names in both orders, so that a preference for one name cancels.
Source: Interpretability in the Wild (Wang et al. 2022), section 3.1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import torch
from torch import Tensor

from explorer.analysis.head_circuits import copying, why_no_copying
from explorer.analysis.head_metrics import Tokens, metrics_of_heads, pattern_cells
from explorer.analysis.head_programs import NAMED, HeadPrograms, programs_of
from explorer.analysis.logit_attribution import direct_logits
from explorer.analysis.output_change import last_streams
from explorer.analysis.residual_writes import block_writes
from explorer.catalog.opened_model import OpenModel
from explorer.inference.answers import Answer
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.model_inputs import record
from explorer.inference.results_cache import cached
from explorer.system.cooperative import interruptible
from explorer.text import TextError, Token
from explorer.text.number_format import three

SEED, ROWS, LENGTH = 0, 4, 25
"""Random sequences, each of up to `LENGTH` tokens that are then repeated."""
SCORES = ("previous", "duplicate", "induction", "first")


def standard_scores(opened: OpenModel) -> dict[str, Tensor]:
    """SCORES of every head, (layers, h) each, the mean over the sequences; cached.

    Costs one pass over 200 tokens. For models of one stack.
    """
    return cached(opened, "standard scores", lambda: _measure(opened))


def repeated_random_tokens(opened: OpenModel, seed: int = SEED) -> list[tuple[Token, ...]]:
    """The sequences, each with the special tokens that the tokenizer puts around a text.

    Empty where the model reads too few tokens, or has only special ones.
    """
    before, after = _around(opened)
    room = opened.config.max_len - len(before) - len(after)
    special = opened.tokenizer.special_ids
    plain = torch.tensor([i for i in range(opened.config.vocab_size) if i not in special])
    length = min(LENGTH, room // 2, len(plain))
    if length < 1:
        return []
    source = torch.Generator().manual_seed(seed)
    rows = []
    for _ in range(ROWS):
        ids = plain[torch.randperm(len(plain), generator=source)[:length]].tolist()
        rows.append((*before, *[Token(i, "") for i in ids * 2], *after))
    return rows


def _around(opened: OpenModel) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    """The special tokens before and after every text."""
    try:
        tokens = opened.tokenizer.encode(opened.example)
    except TextError:
        return (), ()

    def added(some: Iterator[Token]) -> tuple[Token, ...]:
        return tuple(takewhile(lambda token: token.special and token.start == token.end, some))

    before = added(iter(tokens))
    return before, added(reversed(tokens[len(before) :]))[::-1]


def _measure(opened: OpenModel) -> dict[str, Tensor]:
    rows = repeated_random_tokens(opened)
    if not rows:
        shape = last_streams(opened.config)[1], opened.config.n_heads
        return {name: torch.full(shape, torch.nan) for name in SCORES}
    passed = record(opened, rows, read_at=slice(-1, None))
    stack, layers = last_streams(opened.config)
    tokens = Tokens.of(rows[0])
    by_layer = []
    for layer in interruptible(range(layers)):
        at = f"{stack}.{layer}.self_attn"
        visible = passed[f"{at}.mask"][0, 0]
        # Every row has other tokens but the same cells.
        cells = pattern_cells(tokens, tokens, visible, same_text=True)
        weights = passed.weights(at)
        metrics = metrics_of_heads(
            weights.flatten(0, 1), visible, tokens.special, cells, same_text=True
        )
        by_layer.append([metrics[name].unflatten(0, weights.shape[:2]).mean(0) for name in SCORES])
    return {name: torch.stack([layer[at] for layer in by_layer]) for at, name in enumerate(SCORES)}


NAMES = (
    *("Mary", "John", "Tom", "James", "Anna", "Paul", "Sarah", "David", "Alice", "Peter"),
    *("Robert", "Emma", "Michael", "Laura", "George", "Kate"),
)
PROMPT = "When {a} and {b} went to the store, {b} gave a drink to"
FEWEST_NAMES = 4
"""The fewest names that the model must have as one token."""


@dataclass(frozen=True, eq=False)
class NameMoving:
    """The means over the prompts for every head, (layers, h).

    `raised` is what the head adds to the logit of the name that it attends to more, minus what it
    adds to that of the other name; `weight` is its weight on that name. `prompts` counts them.
    """

    raised: Tensor
    weight: Tensor
    prompts: int


@dataclass(frozen=True)
class NamePrompt:
    """A prompt as the model reads it: `names` are the token IDs of the answer and the other."""

    text: str
    tokens: tuple[Token, ...]
    names: tuple[int, int]

    def places(self, name: int) -> list[int]:
        return [at for at, token in enumerate(self.tokens) if token.id == name]


def name_moving(opened: OpenModel) -> NameMoving | None:
    """The scores of every head, computed once; None without a decoder or with too few names.

    Costs a pass over the prompts and one position of every layer for each.
    """
    return cached(opened, "name moving", lambda: _measure_names(opened))


def name_prompts(opened: OpenModel) -> list[NamePrompt]:
    """The prompts whose names are one token each, every pair of names in both orders."""
    if (opened.config.kind, opened.config.head) != ("decoder", "language-model"):
        return []
    ids = {name: token for name in NAMES if (token := _token_of(opened, name)) is not None}
    if len(ids) < FEWEST_NAMES:
        return []
    names = list(ids)
    pairs = list(zip(names[::2], names[1::2], strict=False))
    prompts = []
    for a, b in [*pairs, *(pair[::-1] for pair in pairs)]:
        text = PROMPT.format(a=a, b=b)
        prompts.append(NamePrompt(text, opened.tokenizer.encode(text), (ids[a], ids[b])))
    length, most = len(prompts[0].tokens), opened.config.max_len
    is_read = all(
        len(prompt.tokens) == length <= most
        and all(token.id < opened.config.vocab_size for token in prompt.tokens)
        for prompt in prompts
    )
    return prompts if is_read else []


def _token_of(opened: OpenModel, name: str) -> int | None:
    """The token of a name after a space; None where it is several tokens or unknown."""
    try:
        tokens = opened.tokenizer.encode(f"to {name}")
    except TextError:
        return None
    own = [token for token in tokens if token.end > token.start and token.end > 3]
    is_one = len(own) == 1 and own[0].id != opened.tokenizer.unk_id
    return own[0].id if is_one else None


def _measure_names(opened: OpenModel) -> NameMoving | None:
    prompts = name_prompts(opened)
    if not prompts:
        return None
    passed = record(opened, [prompt.tokens for prompt in prompts], read_at=slice(-1, None))
    first = ForwardPass(
        prompts[0].text, opened.config, (), prompts[0].tokens, (), passed, Answer("next", "")
    )
    passes = [
        replace(first, text=prompt.text, target=prompt.tokens, row=row)
        for row, prompt in enumerate(prompts)
    ]
    _, layers = last_streams(opened.config)
    by_layer = [_of_layer(passes, prompts, layer) for layer in interruptible(range(layers))]
    raised, weight = (torch.stack(layers) for layers in zip(*by_layer, strict=True))
    return NameMoving(raised, weight, len(prompts))


def _of_layer(
    passes: Sequence[ForwardPass], prompts: Sequence[NamePrompt], layer: int
) -> tuple[Tensor, Tensor]:
    """The means of `raised` and `weight` in one layer over the prompts, (h,) each."""
    stack, _ = last_streams(passes[0].config)
    all_weights = passes[0].trace.weights(f"{stack}.{layer}.self_attn")[:, :, -1]
    raised, weights = [], []
    for forward, prompt, rows in zip(passes, prompts, all_weights, strict=True):
        place = len(prompt.tokens) - 1
        write = block_writes(forward, stack, layer, torch.tensor([place]))
        attention = write.attentions[f"{stack}.self_attn"]
        by_head = torch.stack(
            [attention.through(head, out)[0] for head, out in enumerate(attention.heads)]
        )
        logits = direct_logits(forward, layer, place, by_head, torch.tensor(prompt.names))
        on = torch.stack([rows[:, prompt.places(name)].sum(-1) for name in prompt.names], -1)
        better = on.argmax(-1, keepdim=True)
        raised.append((logits.gather(-1, better) - logits.gather(-1, 1 - better))[:, 0])
        weights.append(on.gather(-1, better)[:, 0])
    return torch.stack(raised).mean(0), torch.stack(weights).mean(0)


THRESHOLD = 0.5
"""Half of the attention, of the source tokens, or of a logit."""
ABOVE_CHANCE = 2
"""With few tokens, most are in the top five by chance."""


@dataclass(frozen=True)
class Score:
    """A score of a head. `place` is its rank among the `heads` with this score, if it has one."""

    title: str
    value: float
    meaning: str
    place: int | None = None
    heads: int = 0


@dataclass(frozen=True)
class HeadScores:
    """The scores of a head that have a meaning for its model, and the names they justify.

    Each of `names` is a clause: the name, the measurement behind it, and its threshold. `notes`
    say what each score is measured on, or why it is missing, in a sentence.
    """

    scores: tuple[Score, ...]
    names: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def names_in_words(self) -> str:
        """The names of the head and the measurements behind them, or that it has none."""
        if not self.names:
            return f"No name: none of its scores is enough for one (at least {three(THRESHOLD)})."
        return " ".join(f"{name[0].upper()}{name[1:]}." for name in self.names)


def name_clause(name: str, measurement: str, value: float, threshold: float = THRESHOLD) -> str:
    """A name with what justifies it; nothing where the value is below the threshold or NaN."""
    if not value >= threshold:
        return ""
    return f"{name}: {measurement} {three(value)}; the name needs {three(threshold)}"


def mover_clause(raised: float, weight: float) -> str:
    """The name of a head that attends to a name and pushes its logit, and which way it pushes."""
    if not weight >= THRESHOLD:
        return ""
    name, way = ("negative name mover", "lowers") if raised < 0 else ("name mover", "raises")
    return name_clause(name, f"it {way} the logit of the name it attends to by", abs(raised))


_ON_REPEATS = {
    "previous": ("Previous token", "weight on the token before"),
    "duplicate": ("Duplicate token", "weight on the earlier copy"),
    "induction": ("Induction", "weight on what followed the copy"),
    "first": ("First token", "weight on the first token"),
}
ON_REPEATS = f"Attention on {ROWS} sequences of random tokens, each repeated once."
ON_NAMES = (
    "Names on {prompts} indirect-object prompts, at their last token, against the other name."
)
COPYING = "1: it raises the tokens it reads, −1: lowers them (Σλ / Σ|λ| of the OV circuit)"
ON_WEIGHTS = (
    "Copying is computed from the weights alone. The last row uses {tokens} random tokens; chance "
    "would give {chance}."
)
NO_NAMES = (
    "No name-moving score: it is for decoders that continue a text and know names as one token."
)


def head_in_programs(opened: OpenModel, layer: int, head: int) -> HeadPrograms | None:
    """The programs of a head of the last stack, measured with those of all heads."""
    heads = programs_of(opened) if len(opened.config.stacks) == 1 else ()
    return heads[layer * opened.config.n_heads + head] if heads else None


def head_scores(opened: OpenModel, layer: int, head: int) -> HeadScores:
    """The scores of one head. The first head of a model costs passes over the standard prompts."""
    scores, names, notes = [], [], [ON_REPEATS]
    for key, values in standard_scores(opened).items():
        title, meaning = _ON_REPEATS[key]
        scores.append(_ranked(title, values, layer, head, meaning))
    if (of := head_in_programs(opened, layer, head)) is not None and of.name:
        names.append(name_clause(of.name, "overlap with its programs", of.overlap, NAMED))
    if (moved := name_moving(opened)) is not None:
        scores += [
            _ranked("Name moving", moved.raised, layer, head, "logits for the name it attends to"),
            _ranked("Name attended to", moved.weight, layer, head, "weight on that name"),
        ]
        notes.append(ON_NAMES.format(prompts=moved.prompts))
        names.append(mover_clause(scores[-2].value, scores[-1].value))
    else:
        notes.append(NO_NAMES)
    if why := why_no_copying(opened.config):
        notes.append(f"No copying score: {why[0].lower()}{why[1:]}")
    else:
        at = "copying", layer, head
        copied = cached(opened, at, lambda: copying(opened.model, layer, head))
        scores += [
            Score("Copying", copied.score, COPYING),
            Score("Own token in top 5", copied.own_in_top, "share of tokens in their own top 5"),
        ]
        notes.append(ON_WEIGHTS.format(tokens=len(copied.ranks), chance=three(copied.by_chance)))
        enough = max(THRESHOLD, ABOVE_CHANCE * copied.by_chance)
        share = "share of tokens in their own top 5"
        names.append(name_clause("copying head", share, copied.own_in_top, enough))
    return HeadScores(tuple(scores), tuple(filter(None, names)), tuple(notes))


def _ranked(title: str, values: Tensor, layer: int, head: int, meaning: str) -> Score:
    value = values[layer, head]
    if value.isnan():
        return Score(title, float(value), meaning)
    place = int((values > value).sum()) + 1
    return Score(title, float(value), meaning, place, int((~values.isnan()).sum()))
