"""One pass of a model over a text, and everything the pages show of it.

A pass is made once and kept: the queries, keys and values of every head are
recorded, and the weights of the head on screen are derived from them by the
function that the model itself uses. A reading is never changed, so many
sessions may look at the same one at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from explorer.library import Opened
from explorer.parts import Part, parts, site
from explorer.text import TextError, Token
from explorer.text.labels import readable
from models import TransformerConfig, trace
from models.generation import beginning, generate
from models.trace import CHEAP_SITES, Trace

READINGS_KEPT = 48
LONGEST_ANSWER = 64
ANSWERS_SHOWN = 8


class ReadingError(ValueError):
    """A text cannot be read by a model; the message is one sentence that says what to do."""


@dataclass(frozen=True)
class Guess:
    """One thing a model considers, with its probability."""

    label: str
    probability: float


@dataclass(frozen=True)
class Answer:
    """What came out. `kind` is "text" (written), "next" (the next token) or "classes"."""

    kind: str
    text: str
    guesses: tuple[Guess, ...] = ()
    note: str = ""


@dataclass(frozen=True, eq=False)
class Reading:
    """A text, its tokens, the recorded pass and the answer.

    `source` is what the encoder read and `target` what the decoder read (empty where
    the model has no such stack). `written` is what each step of the decoder wrote.
    `row` is the place of this text in the batch that was passed.
    """

    text: str
    config: TransformerConfig
    source: tuple[Token, ...]
    target: tuple[Token, ...]
    written: tuple[Token, ...]
    trace: Trace
    answer: Answer
    notes: tuple[str, ...] = ()
    row: int = 0

    @property
    def tokens(self) -> tuple[Token, ...]:
        """What the typed text became."""
        return self.source or self.target

    @property
    def parts(self) -> tuple[Part, ...]:
        return parts(self.config)

    def part(self, name: str) -> Part:
        return next(part for part in self.parts if part.name == name)

    def rows(self, part: str) -> tuple[Token, ...]:
        """Who asks. A step of the decoder is called by the word it writes while it looks."""
        if part == "encoder.self_attn":
            return self.source
        return self.written if part == "decoder.cross_attn" else self.target

    def columns(self, part: str) -> tuple[Token, ...]:
        return self.target if part == "decoder.self_attn" else self.source

    def weights(self, part: str, layer: int, head: int) -> Tensor:
        """How much each row looks at each column; a row sums to one, or to zero if it sees none."""
        return self.trace.weights(site(part, layer), head=head)[self.row]

    def scores(self, part: str, layer: int, head: int) -> Tensor:
        """Scaled q·k of one head, before any bias and mask."""
        return self.trace.scores(site(part, layer), head=head)[self.row]

    def bias(self, part: str, layer: int, head: int) -> Tensor | None:
        """What positions add to the scores before the softmax; None where they add nothing."""
        bias = self.trace.bias(site(part, layer), slice(head, head + 1))
        return None if bias is None else bias.expand(self.row + 1, -1, -1, -1)[self.row, 0]

    def mask(self, part: str, layer: int = 0) -> Tensor:
        """Which columns each row may look at. True = may look."""
        shape = (len(self.rows(part)), len(self.columns(part)))
        mask = self.trace.mask(site(part, layer))
        return mask.expand(max(mask.shape[0], self.row + 1), -1, *shape)[self.row, 0]

    def all_weights(self, part: str) -> Tensor:
        """Weights of every head of every layer, (layers, heads, rows, columns)."""
        layers = range(self.part(part).layers)
        return torch.stack([self.trace.weights(site(part, layer))[self.row] for layer in layers])


@lru_cache(maxsize=READINGS_KEPT)
def read(opened: Opened, text: str) -> Reading:
    """The model's reading of the text, made once. ReadingError says in a sentence why not."""
    return read_batch(opened, (text,))[0]


@lru_cache(maxsize=READINGS_KEPT)
def read_batch(opened: Opened, texts: tuple[str, ...]) -> tuple[Reading, ...]:
    """Several texts in one pass: the shorter ones are padded to the length of the longest."""
    encoded = [_encode(opened, text) for text in texts]
    notes = [_unknown(opened, text, tokens) for text, tokens in zip(texts, encoded, strict=True)]
    inputs = _padded(opened, encoded)
    ids = _ids(inputs)
    if opened.config.kind != "encoder-decoder":
        passed = trace(opened.model, ids, sites=CHEAP_SITES)
        is_encoder = opened.config.kind == "encoder"
        return tuple(
            Reading(
                text=text,
                config=opened.config,
                source=tokens if is_encoder else (),
                target=() if is_encoder else tokens,
                written=(),
                trace=passed,
                answer=_answer(opened, passed.output[row], encoded[row]),
                notes=notes[row],
                row=row,
            )
            for row, (text, tokens) in enumerate(zip(texts, inputs, strict=True))
        )
    answers = _written(opened, ids)
    full = _padded(opened, answers)
    passed = trace(opened.model, ids, _ids(full)[:, :-1], sites=CHEAP_SITES)
    return tuple(
        Reading(
            text=text,
            config=opened.config,
            source=inputs[row],
            target=full[row][:-1],
            written=full[row][1:],
            trace=passed,
            answer=_translation(opened, answers[row]),
            notes=notes[row],
            row=row,
        )
        for row, text in enumerate(texts)
    )


def _encode(opened: Opened, text: str) -> tuple[Token, ...]:
    if not text.strip():
        raise ReadingError("There is nothing to read yet: type a sentence.")
    try:
        tokens = opened.tokenizer.encode(text)
    except TextError as error:
        raise ReadingError(str(error)) from error
    if all(token.special and token.start == token.end for token in tokens):
        raise ReadingError("There is nothing to read in this text: type a sentence with words.")
    fit = opened.config.max_len
    if len(tokens) > fit:
        last = max((token.end for token in tokens[: fit - 1]), default=0)
        raise ReadingError(
            f"This text is {len(tokens):,} tokens long and this model reads at most {fit}: "
            f"shorten it to about its first {last:,} characters."
        )
    return tokens


def _unknown(opened: Opened, text: str, tokens: Sequence[Token]) -> tuple[str, ...]:
    """One sentence that names what the tokenizer has no token for."""
    unknown = [t for t in tokens if t.id == opened.tokenizer.unk_id and t.end > t.start]
    words = list(dict.fromkeys(text[token.start : token.end] for token in unknown))
    if not words:
        return ()
    named = ", ".join(f"“{readable(word[:20])}”" for word in words[:5])
    more = f" and {len(words) - 5} more" if len(words) > 5 else ""
    return (f"Not in this model's vocabulary, so read as <unk>: {named}{more}.",)


def _padded(opened: Opened, rows: Sequence[tuple[Token, ...]]) -> list[tuple[Token, ...]]:
    longest = max(len(row) for row in rows)
    if all(len(row) == longest for row in rows):
        return list(rows)
    pad = opened.config.pad_id
    if pad is None:
        raise ReadingError("This model has no padding token, so it reads one text at a time.")
    return [(*row, *[opened.tokenizer.token(pad)] * (longest - len(row))) for row in rows]


def _ids(rows: Sequence[Sequence[Token]]) -> Tensor:
    return torch.tensor([[token.id for token in row] for row in rows])


def _written(opened: Opened, source: Tensor) -> list[tuple[Token, ...]]:
    """What the decoder writes for each source, from its first token to its last."""
    longest = max(2, min(opened.config.max_len, LONGEST_ANSWER))
    steps = generate(opened.model, source, max_length=longest, greedy=True)
    columns = [step.ids for step in steps]
    start, end = int(beginning(opened.model, source)[0, 0]), opened.config.eos_id
    answers = []
    for row in torch.stack(columns, dim=1).tolist():
        stop = row.index(end) + 1 if end in row else len(row)
        answers.append(tuple(opened.tokenizer.token(i) for i in [start, *row[:stop]]))
    return answers


def _translation(opened: Opened, written: Sequence[Token]) -> Answer:
    text = opened.tokenizer.decode([token.id for token in written])
    if written[-1].id == opened.config.eos_id:
        return Answer("text", text)
    note = f"Cut after {len(written) - 1} tokens: the model had not ended its answer."
    return Answer("text", text, note=note)


def _answer(opened: Opened, output: Tensor, tokens: Sequence[Token]) -> Answer:
    """The answer of a model of one stack; `output` may go on behind the tokens, over padding."""
    if opened.config.head == "none":
        return Answer("text", "")
    if opened.config.head == "classifier":
        names = class_names(opened)
        guesses = _best(output, names.__getitem__)
        return Answer("classes", guesses[0].label, guesses)
    if opened.config.kind == "encoder":
        ids = output[: len(tokens)].argmax(dim=-1).tolist()
        return Answer("text", opened.tokenizer.decode(ids))
    guesses = _best(output[len(tokens) - 1], opened.tokenizer.label)
    return Answer("next", guesses[0].label, guesses)


def class_names(opened: Opened) -> list[str]:
    """What the classes of a classifier are called."""
    named = opened.run.get("classes")
    count = opened.config.n_classes
    if isinstance(named, Sequence) and len(named) == count:
        return [str(name) for name in named]
    return [f"class {index}" for index in range(count)]


def _best(logits: Tensor, name: Callable[[int], str]) -> tuple[Guess, ...]:
    chances = torch.softmax(logits.float(), dim=-1)
    top = chances.topk(min(ANSWERS_SHOWN, len(chances)))
    return tuple(
        Guess(name(int(index)), float(value))
        for value, index in zip(top.values, top.indices, strict=True)
    )
