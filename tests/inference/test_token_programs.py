"""Programs over tokens: rows sum to 1 over visible keys, and do what their names say."""

import re
from itertools import product

import pytest
import torch

from explorer.inference.token_programs import (
    ALL_KINDS,
    PROGRAMS,
    LineTokens,
    ProgramError,
    ReplaceMap,
    mixture_map,
    parsed,
    program_map,
)
from explorer.text import Token

WORDS = "The cat sat , and the Cat ( a fat one ) ran . Did the cat sit ?".split()


def line(words: list[str] = WORDS) -> LineTokens:
    """A token for each word, with the space before it."""
    text = " " + " ".join(words)
    places = [(found.start(), found.end()) for found in re.finditer(r" \S+", text)]
    ids = {word: number for number, word in enumerate(dict.fromkeys(words))}
    tokens = zip(words, places, strict=True)
    return LineTokens.of([Token(ids[word], word, *place) for word, place in tokens], text)


def seen(size: int, causal: bool = True) -> torch.Tensor:
    visible = torch.ones(size, size, dtype=torch.bool)
    return visible.tril() if causal else visible


def strongest(program: str, causal: bool = True) -> list[str]:
    """The token that each query attends to most."""
    text = PROGRAMS.get(program, program)
    rows = program_map(text, line(), seen(len(WORDS), causal))
    return [WORDS[at] for at in rows.argmax(-1).tolist()]


def test_rows_sum_to_one_over_visible_keys() -> None:
    hostile = ("not sink(5)", "sink(9999) and decay(1)", "key is first and decay(1)")
    kinds = [f"query is {kind}" for kind in ALL_KINDS]
    for program, causal in product((*PROGRAMS.values(), *kinds, *hostile), (True, False)):
        visible = seen(len(WORDS), causal)
        visible[3] = False
        rows = program_map(program, line(), visible)
        assert (rows >= 0).all(), program
        assert not rows[~visible].any(), program
        assert torch.allclose(rows.sum(-1), visible.any(-1).float()), program


def test_programs_attend_where_their_names_say() -> None:
    assert strongest("previous(1)")[1:] == WORDS[:-1]
    assert strongest("next(1)", causal=False)[:-1] == WORDS[1:]
    assert strongest("last punctuation")[4:8] == [",", ",", ",", "("]
    assert strongest("token after the last same token")[15] == "Cat", "after the earlier “the”"
    assert strongest("matching bracket")[11] == "("
    assert strongest("start of the sentence")[16] == "Did"
    assert strongest("last capital")[9] == "Cat"
    assert strongest("key is number else key is comma")[5] == ","
    assert strongest("key is number")[5] == "The", "where no key fits, the first has the weight"
    assert strongest("nearest key is capital and before query and not previous(1)")[15] == "Cat"
    assert strongest("nearest (key is opening or key is comma) and before query")[9] == "("


def test_numbers_of_a_program() -> None:
    few = line("a b c d".split()), seen(4)
    decayed = torch.softmax(torch.tensor([-1.5, -1.0, -0.5, 0.0]), 0)
    assert torch.allclose(program_map("decay(2)", *few)[3], decayed)
    sunk = program_map("any or sink(3)", *few)[3]
    assert torch.allclose(sunk, torch.tensor([3.0, 1, 1, 1]) / 6)
    mixed = mixture_map((("self", 0.75), ("first", 0.25)), *few)[3]
    assert torch.allclose(mixed, torch.tensor([0.25, 0, 0, 0.75]))


REFUSED = {
    "": "a part or a parenthesis is missing",
    "key is": "“key is” is no predicate",
    "key is is": "start of word, start of sentence; “is” is none of them",
    "key is capital and": "a part or a parenthesis is missing",
    "(key is capital": "a part or a parenthesis is missing",
    "key is capital)": "a part or a parenthesis is missing",
    "self (key is first)": "a part or a parenthesis is missing",
    "self and nearest key is first": "a part or a parenthesis is missing",
    "previous(0)": "no predicate",
    "self " * 60: "more than 160 characters",
    "(" * 13 + "self" + ")" * 13: "12 of “(” and “not”",
    "__import__('os')": "is no predicate",
}


def test_a_replaced_map_keeps_the_sums_of_the_rows() -> None:
    value = torch.rand(2, 3, 4, 4).tril()
    drawn = ReplaceMap("weights", program_map("first", line(WORDS[:4]), seen(4)), 1)(value)
    torch.testing.assert_close(drawn[:, 1, :, 0], value[:, 1].sum(-1))
    assert torch.equal(drawn[:, [0, 2]], value[:, [0, 2]])


def test_what_does_not_parse_is_one_sentence(subtests: pytest.Subtests) -> None:
    for program, why in REFUSED.items():
        with subtests.test(program=program), pytest.raises(ProgramError, match=re.escape(why)):
            parsed(program)
