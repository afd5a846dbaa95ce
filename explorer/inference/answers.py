"""A model's answer to a text: the next token, the word behind a mask, a class, a text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from explorer.catalog.opened_model import OpenModel
from explorer.text import TextError, Token
from explorer.text.token_labels import candidate_text, text_of
from explorer.text.visible_text import in_quotes
from models import TransformerConfig

ANSWERS_SHOWN = 8


@dataclass(frozen=True)
class ScoreWords:
    """What the numbers of an output head are called.

    `score` names the number of one option, `logit` what it is computed from. `divergence` and
    `unit` name how much a whole output changes.
    """

    title: str
    sentence: str
    score: str = "probability"
    logit: str = "logit"
    divergence: str = "KL divergence"
    unit: str = "nats"


SCORE_WORDS = {
    "softmax": ScoreWords(
        "Class probabilities", "Softmax of the logits: the probabilities of all classes sum to 1."
    ),
    "sigmoid": ScoreWords(
        "Label probabilities", "Sigmoid of each logit: every label has a probability of its own."
    ),
    "none": ScoreWords(
        "Predicted values",
        "The outputs themselves: the model is a regression, so they are no probabilities.",
        *("value", "value", "Squared change", ""),
    ),
}


def score_words(config: TransformerConfig) -> ScoreWords:
    return SCORE_WORDS[config.score_function]


def score_sentence(config: TransformerConfig) -> str:
    """What a classifier's numbers are, and why if its folder does not say."""
    sentence = score_words(config).sentence
    if config.problem_type is None and config.n_classes == 1:
        sentence += (
            " Its config names no problem_type: with one label, the reference library takes it so."
        )
    return sentence


@dataclass(frozen=True)
class Guess:
    label: str
    score: float


@dataclass(frozen=True)
class Answer:
    """The answer; `kind` is "text" (generated), "next" (token), "mask" (word) or "classes"."""

    kind: str
    text: str
    guesses: tuple[Guess, ...] = ()
    note: str = ""


def masks_in(opened: OpenModel, tokens: Sequence[Token]) -> list[int]:
    if opened.config.head != "masked-language-model":
        return []
    return [i for i, token in enumerate(tokens) if token.id == opened.tokenizer.mask_id]


def first_place(opened: OpenModel, tokens: Sequence[Token]) -> int:
    """The position of the model's answer: the last, the mask, or the first generated word."""
    if masks := masks_in(opened, tokens):
        return masks[0]
    return len(tokens) - 1 if opened.config.kind == "decoder" else 0


def shown_place(opened: OpenModel, tokens: Sequence[Token]) -> int:
    """The position whose answer is shown first: that of the answer, or what the task names."""
    if opened.config.kind == "encoder-decoder" and opened.task:
        return min(opened.task.first_answer, len(tokens) - 1)
    return first_place(opened, tokens)


def written_answer(opened: OpenModel, tokens: Sequence[Token]) -> Answer:
    text = opened.tokenizer.decode([token.id for token in tokens])
    if tokens[-1].id in opened.config.generation.eos_ids:
        return Answer("text", text)
    note = f"Cut after {len(tokens) - 1} tokens: the model had not ended its answer."
    return Answer("text", text, note=note)


def answer_of(opened: OpenModel, output: Tensor, tokens: Sequence[Token]) -> Answer:
    """The answer of a model with one stack; `output` may have more rows, for padding.

    For a language model it may have only the row of the answer.
    """
    if opened.config.head == "none":
        return Answer("text", "")
    if opened.config.head == "classifier":
        guesses = _best(opened, output, class_names(opened).__getitem__)
        return Answer("classes", guesses[0].label, guesses, score_sentence(opened.config))
    if opened.config.head == "masked-language-model":
        return _behind_mask(opened, output, tokens)
    if opened.config.kind == "encoder":
        ids = output[: len(tokens)].argmax(dim=-1).tolist()
        return Answer("text", opened.tokenizer.decode(ids))
    before = [token.label for token in tokens]
    label = opened.tokenizer.label
    guesses = _best(
        opened,
        output[min(len(tokens), len(output)) - 1],
        lambda index: candidate_text(label(index), before),
    )
    return Answer("next", guesses[0].label, guesses)


def _behind_mask(opened: OpenModel, output: Tensor, tokens: Sequence[Token]) -> Answer:
    masks = masks_in(opened, tokens)
    mask = opened.tokenizer.mask_id
    if mask is None:
        return Answer("mask", "", note="Its tokenizer has no mask token.")
    if not masks:
        word = opened.tokenizer.label(mask)
        return Answer("mask", "", note=f"Replace a word with {word} to see predictions for it.")
    row = output[0 if len(output) == 1 else masks[0]]
    guesses = _best(opened, row, lambda index: option_name(opened, index))
    note = f"There are {len(masks)} masks; shown is the first." if len(masks) > 1 else ""
    return Answer("mask", guesses[0].label, guesses, note)


def class_names(opened: OpenModel) -> list[str]:
    named = opened.run.get("classes")
    count = opened.config.n_classes
    if isinstance(named, Sequence) and len(named) == count:
        return [str(name) for name in named]
    return [f"class {index}" for index in range(count)]


def option_name(opened: OpenModel, index: int) -> str:
    if opened.config.head == "classifier":
        return class_names(opened)[index]
    return candidate_text(opened.tokenizer.label(index))


def _best(opened: OpenModel, logits: Tensor, name: Callable[[int], str]) -> tuple[Guess, ...]:
    scores = opened.config.scores(logits.float())
    top = scores.topk(min(ANSWERS_SHOWN, len(scores)))
    return tuple(
        Guess(name(int(index)), float(value))
        for value, index in zip(top.values, top.indices, strict=True)
    )


def one_token(opened: OpenModel, typed: str) -> tuple[int | None, str]:
    """The ID of a text of one token, with or without a space before it; else why it is not one."""
    if not typed.strip(" "):
        return None, ""
    for text in (typed, f" {typed}"):
        try:
            inside = [t for t in opened.tokenizer.encode(text) if t.end > t.start]
        except TextError as error:
            return None, str(error)
        if len(inside) == 1 and inside[0].id != opened.tokenizer.unk_id:
            return inside[0].id, ""
    if len(inside) == 1:
        return None, f"{in_quotes(typed[:40])} is not in this model's vocabulary."
    named = ", ".join(in_quotes(text_of(token)) for token in inside[:6])
    return None, f"{in_quotes(typed[:40])} is {len(inside)} tokens here: {named}. Type one."
