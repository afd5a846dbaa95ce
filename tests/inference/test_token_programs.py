"""Programs over tokens: rows sum to 1 over visible keys, and do what their names say."""

import pytest
import torch
from torch import Tensor

from explorer.inference.token_programs import (
    ALL_KINDS,
    PROGRAMS,
    LineTokens,
    ProgramError,
    mixture_map,
    parsed,
    program_map,
)
from explorer.text import Token

TEXT = "The cat sat, and the Cat (a fat one) ran. Did the cat sit?"


def line(text: str = TEXT) -> LineTokens:
    """A token for each word, with the space before it, and for each mark."""
    tokens, at = [], 0
    for word in text.replace("(", "( ").replace(")", " )").replace(",", " ,").split(" "):
        for piece in [word[:-1], word[-1]] if len(word) > 1 and word[-1] in ".?" else [word]:
            start = text.index(piece, at)
            ids = sum(ord(c) * 31**n for n, c in enumerate(piece)) % 10_007
            tokens.append(
                Token(ids, piece, at if text[at:start].isspace() else start, start + len(piece))
            )
            at = start + len(piece)
    return LineTokens.of(tokens, text)


def of(program: str, causal: bool = True) -> list[str]:
    """The tokens that each query attends to most, joined by the word of the query."""
    tokens = line()
    visible = torch.ones(len(tokens.ids), len(tokens.ids), dtype=torch.bool)
    rows = program_map(program, tokens, visible.tril() if causal else visible)
    return [tokens.characters[at] for at in rows.argmax(-1).tolist()]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=[*PROGRAMS])
def test_rows_sum_to_one_over_visible_keys(program: str, causal: bool) -> None:
    tokens = line()
    visible = torch.ones(len(tokens.ids), len(tokens.ids), dtype=torch.bool)
    visible = visible.tril() if causal else visible
    visible[3] = False
    rows: Tensor = program_map(program, tokens, visible)
    assert not rows[~visible].any()
    assert torch.allclose(rows.sum(-1), visible.any(-1).float())


def test_programs_attend_where_their_names_say() -> None:
    words = list(line().characters)
    assert words == "The cat sat , and the Cat ( a fat one ) ran . Did the cat sit ?".split()
    assert of("previous(1)")[1:] == words[:-1]
    assert of("next(1)", causal=False)[:-1] == words[1:]
    assert of(PROGRAMS["last punctuation"])[4:8] == [",", ",", ",", "("]
    assert of(PROGRAMS["token after the last same token"])[15] == "Cat", "after the earlier “the”"
    assert of("matching bracket")[11] == "("
    assert of(PROGRAMS["start of the sentence"])[16] == "Did"
    assert of(PROGRAMS["last capital"])[9] == "Cat"
    assert of("key is number else key is comma")[5] == ","
    assert of("key is number")[5] == "The", "where no key fits, the first one has the weight"
    assert of("nearest key is capital and before query and not previous(1)")[15] == "Cat"
    assert of("nearest (key is opening or key is comma) and before query")[9] == "("


def test_numbers_of_a_program() -> None:
    tokens = line("a b c d")
    visible = torch.ones(4, 4, dtype=torch.bool).tril()
    decayed = program_map("decay(2)", tokens, visible)[3]
    assert torch.allclose(decayed, torch.softmax(torch.tensor([-1.5, -1.0, -0.5, 0.0]), 0))
    sunk = program_map("any or sink(3)", tokens, visible)[3]
    assert torch.allclose(sunk, torch.tensor([3.0, 1, 1, 1]) / 6)
    mixed = mixture_map((("self", 0.75), ("first", 0.25)), tokens, visible)[3]
    assert torch.allclose(mixed, torch.tensor([0.25, 0, 0, 0.75]))


@pytest.mark.parametrize(
    ("program", "why"),
    {
        "": "a part or a parenthesis is missing",
        "key is": "“key is” is no predicate",
        "key is capital and": "a part or a parenthesis is missing",
        "(key is capital": "a part or a parenthesis is missing",
        "key is capital)": "a part or a parenthesis is missing",
        "self (key is first)": "a part or a parenthesis is missing",
        "self and nearest key is first": "a part or a parenthesis is missing",
        "previous(0)": "no predicate",
        "decay(99999)": "no predicate",
        "self " * 60: "more than 160 characters",
        "(" * 13 + "self" + ")" * 13: "12 of “(” and “not”",
        "__import__('os')": "is no predicate",
    }.items(),
)  # fmt: skip
def test_what_does_not_parse_is_one_sentence(program: str, why: str) -> None:
    with pytest.raises(ProgramError, match=why.replace("(", r"\(").replace(")", r"\)")) as refused:
        parsed(program)
    assert str(refused.value).count("\n") == 0


def test_every_kind_of_token_can_be_named() -> None:
    for kind in ALL_KINDS:
        assert parsed(f"key is {kind}")(line(), torch.ones(19, 19)).shape == (19, 19)
        assert parsed(f"query is {kind} or self")(line(), torch.ones(19, 19)).shape == (19, 19)
