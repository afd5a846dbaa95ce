"""A published config.json, checked: every value is asked for by name and type.

Absent and null differ: an absent value is the family's default, null means none where
the family allows it. What is not supported is refused by name.
"""

from collections.abc import Mapping
from typing import Any

from models.config import GenerationConfig
from models.loading.safe_files import quoted
from models.output_heads import PROBLEM_TYPES

READ_ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_fast": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "silu": "silu",
    "swish": "silu",
}
HEADS_BY_CLASS = {
    "LMHeadModel": "language-model",
    "ForCausalLM": "language-model",
    "ForConditionalGeneration": "language-model",
    "MTModel": "language-model",
    "ForMaskedLM": "masked-language-model",
    "ForPreTraining": "masked-language-model",
    "ForSequenceClassification": "classifier",
}
"""Ends of the class names that say which head a file has; other classes have no head of ours."""
MOST_CLASSES = 100_000
MOST_BANNED = 10_000
GENERATION_SETTINGS = (
    "eos_token_id",
    "decoder_start_token_id",
    "forced_bos_token_id",
    "force_bos_token_to_be_generated",
    "bad_words_ids",
)
"""Settings that generation_config.json may have instead of, or against, config.json."""
UNSUPPORTED_SETTINGS: Mapping[str, Any] = {
    "num_beams": 1,
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "exponential_decay_length_penalty": None,
    "guidance_scale": 1.0,
    "sequence_bias": None,
    "watermarking_config": None,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "min_length": 0,
    "min_new_tokens": 0,
    "suppress_tokens": [],
    "begin_suppress_tokens": [],
    "forced_eos_token_id": None,
}
"""Settings of generation that are not supported, with the value that has no effect."""


class Published:
    """The values of a config.json. ValueError, in one sentence, for one of the wrong type."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def over(self, defaults: Mapping[str, Any]) -> "Published":
        """The same with a family's own defaults for what is absent."""
        return Published({**defaults, **self.values})

    def optional_int(self, name: str, default: int | None = None) -> int | None:
        value = self.values.get(name, default)
        if value is None or type(value) is int:
            return value
        raise ValueError(f"{name} must be a whole number, not {quoted(repr(value))}.")

    def int(self, name: str, default: int | None = None) -> int:
        value = self.optional_int(name, default)
        if value is None:
            raise ValueError(f"{name} must be given as a whole number.")
        return value

    def optional_number(self, name: str, default: float | None = None) -> float | None:
        value = self.values.get(name, default)
        if value is None or type(value) in (int, float):
            return None if value is None else float(value)
        raise ValueError(f"{name} must be a number, not {quoted(repr(value))}.")

    def number(self, name: str, default: float) -> float:
        value = self.optional_number(name, default)
        if value is None:
            raise ValueError(f"{name} must be a number, not null.")
        return value

    def flag(self, name: str, default: bool) -> bool:
        value = self.values.get(name, default)
        if type(value) is not bool:
            raise ValueError(f"{name} must be true or false, not {quoted(repr(value))}.")
        return value

    def activation(self, name: str, default: str) -> str:
        value = self.values.get(name, default)
        if not isinstance(value, str) or value not in READ_ACTIVATIONS:
            raise ValueError(f"{name} {quoted(repr(value))} is not a supported activation.")
        return READ_ACTIVATIONS[value]

    def require(self, name: str, *allowed: object) -> None:
        """Refuses every value but these, of which the first is the default."""
        value = self.values.get(name, allowed[0])
        if value not in allowed or type(value) not in map(type, allowed):
            raise ValueError(f"{name} {quoted(repr(value))} is not supported.")

    def architecture(self) -> str | None:
        """The class that wrote the file, where it is named."""
        names = self.values.get("architectures")
        if names is None or names == []:
            return None
        if not isinstance(names, list) or not isinstance(names[0], str):
            raise ValueError("architectures must be a list of names.")
        return names[0]

    def head(self, default: str, *refused: str) -> str:
        """The head of the class named in `architectures`. ValueError for one of `refused`."""
        name = self.architecture()
        if name is None:
            return default
        head = next((head for end, head in HEADS_BY_CLASS.items() if name.endswith(end)), "none")
        if head in refused:
            raise ValueError(f"{quoted(name)} is not supported.")
        return head

    def tokens(
        self,
        *,
        pad: Any = None,
        bos: Any = None,
        eos: Any = None,
        start: Any = None,
        pad_may_begin: bool = False,
    ) -> dict[str, Any]:
        """The IDs of special tokens, by default the family's; `start` begins a decoder's output.

        A padding token that also begins or ends texts is an ordinary one there, unless the
        decoder begins with it (T5, Marian).
        """
        ends = self.values.get("eos_token_id", eos)
        ends = ends if isinstance(ends, list) else [] if ends is None else [ends]
        if not all(type(end) is int for end in ends) or len(ends) > 64:
            raise ValueError("eos_token_id must be a whole number or a few of them.")
        ends = [end for end in ends if self.is_word(end)]
        pad = self.optional_int("pad_token_id", pad)
        pad = pad if self.is_word(pad) else None
        start = self.optional_int("decoder_start_token_id", start)
        if start is None:
            start = self.optional_int("bos_token_id", bos)
            start = start if self.is_word(start) else None
        first = self.optional_int("forced_bos_token_id")
        if self.values.get("force_bos_token_to_be_generated"):  # the older name in BART
            first = self.optional_int("bos_token_id", bos)
        ordinary = pad in ends or (pad == start and not pad_may_begin)
        return {
            "pad_id": None if ordinary else pad,
            "bos_id": start,
            "generation": GenerationConfig(tuple(ends), first, self.banned()),
        }

    def is_word(self, token: Any) -> bool:
        """Whether the vocabulary has it; many tiny models name the ids of a large one."""
        size = self.values.get("vocab_size")
        return token is not None and (type(size) is not int or 0 <= token < size)

    def banned(self) -> tuple[Any, ...]:
        """Tokens that are never generated; of banned sequences only those of one token."""
        words = self.values.get("bad_words_ids")
        words = [] if words is None else words
        if not isinstance(words, list) or len(words) > MOST_BANNED:
            raise ValueError(f"bad_words_ids must be a list of at most {MOST_BANNED:,} words.")
        alone = [word[0] for word in words if isinstance(word, list) and len(word) == 1]
        if not all(type(token) is int for token in alone):
            raise ValueError("bad_words_ids must be lists of whole numbers.")
        return tuple(alone)

    def unfollowed(self) -> tuple[str, ...]:
        """The settings of generation that are not supported and have an effect."""
        names = [
            name
            for name, nothing in UNSUPPORTED_SETTINGS.items()
            if self.values.get(name) not in (None, nothing)
        ]
        words = self.values.get("bad_words_ids")
        if isinstance(words, list) and len(self.banned()) < len(words):
            names.append("bad_words_ids")
        return tuple(names)

    def labels(self) -> dict[str, Any]:
        """The number of classes, and the problem where it is one that the reference knows."""
        problem = self.values.get("problem_type")
        is_known = problem in PROBLEM_TYPES
        return {"n_classes": len(self.classes()), "problem_type": problem if is_known else None}

    def unfollowed_labels(self) -> tuple[str, ...]:
        """What is set of a classifier's labels without effect, in the reference library too."""
        names, labels = self.classes(), self.values.get("id2label")
        numbers = {name: i for i, name in enumerate(names)}
        has_effect = {
            "id2label": labels is None or len(labels) == len(names),
            "label2id": self.values.get("label2id") in (None, numbers),
            "problem_type": self.values.get("problem_type") in (None, *PROBLEM_TYPES),
            "function_to_apply": self.values.get("function_to_apply") is None,
        }
        return tuple(name for name, effective in has_effect.items() if not effective)

    def classes(self) -> list[str]:
        """The names of a classifier's classes; two numbered ones where the config has none.

        Names are not used where there are more or fewer than `num_labels`.
        """
        named = self.values.get("id2label")
        if named is not None and (not isinstance(named, dict) or len(named) > MOST_CLASSES):
            raise ValueError("id2label must name a class for every number.")
        count = self.int("num_labels", 2 if named is None else len(named))
        if named is None or count != len(named):
            if not 1 <= count <= MOST_CLASSES:
                raise ValueError(f"num_labels must be between 1 and {MOST_CLASSES:,}.")
            return [f"LABEL_{i}" for i in range(count)]
        names = [named.get(str(i)) for i in range(len(named))]
        if not names or not all(isinstance(name, str) for name in names):
            raise ValueError("id2label must name a class for every number from 0 on.")
        return [str(name) for name in names]
