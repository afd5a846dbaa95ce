"""What the demos draw and the tests compare with."""

import torch
from torch import Tensor

from explorer.text import Token

WORDS = ["<s>", "the", "small", "black", "cat", "sat", "on", "the", "mat", "and", "slept", "."]
FRENCH = ["<s>", "le", "petit", "chat", "noir", "dort", "sur", "le", "tapis", "</s>"]
STRANGE = [
    "<script>document.title='taken'</script>",
    "<img src=x onerror=alert(1)>",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "שלום",
    "مرحبا بالعالم",
    "a\tb\n",
    "x" * 90,
    "\u202eturned",
]
SENTENCE = "the small black cat sat on the mat and slept while nobody was looking at it, they say"
STRANGE_SENTENCE = " ".join(STRANGE)
FILM_STEPS = (0, 1, 2, 10, 100)
NEARLY = {"matrix": 0.534990, "cells": 0.382497}
"""Numbers that are 0.5350 and 0.3825 in steps of 16 bits, and so would be rounded twice."""


FACE = ["<s>", "Oh", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "!"]
EMOJI = [Token(at, label, at, at + 1, special=not at) for at, label in enumerate(FACE)]
"""A face in four tokens of one byte each, from 2 to 5."""


def words(text: str) -> list[Token]:
    """Words with the space before them, between a start and an end."""
    found, at = [Token(1, "<s>", 0, 0, True)], 0
    for word in text.split(" "):
        start, end = max(0, at - 1), at + len(word)
        found.append(Token(10 + len(found), text[start:end], start, end, False))
        at = end + 1
    return [*found, Token(2, "</s>", len(text), len(text), True)]


def characters(text: str) -> list[Token]:
    return [Token(100 + i, c, i, i + 1, False) for i, c in enumerate(text)]


def causal(n: int) -> Tensor:
    return torch.ones(n, n).tril().bool()


def attention(n: int, seed: int = 0) -> Tensor:
    """Causal attention that likes the token before."""
    scores = 2 * torch.randn(n, n, generator=torch.Generator().manual_seed(seed))
    scores += 4 * torch.eye(n).roll(-1, 1)
    return scores.masked_fill(~causal(n), -torch.inf).softmax(-1)


def heads(*shape: int, seed: int = 0) -> Tensor:
    """Attention (…, queries, keys) in which every head likes another offset."""
    scores = 1.5 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    flat = scores.view(-1, *shape[-2:])
    for head in range(len(flat)):
        flat[head] += 5 * torch.eye(*shape[-2:]).roll(head % 5 - 1, 1)
    return scores.softmax(-1)
