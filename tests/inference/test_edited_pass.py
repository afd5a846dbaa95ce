"""A text read again with edits: each is the edit of the core that it names, or is set aside."""

import dataclasses
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from explorer.analysis import output_change
from explorer.catalog import opened_model
from explorer.catalog.attention_parts import site
from explorer.catalog.opened_model import OpenModel
from explorer.catalog.shipped import SHIPPED
from explorer.inference import core_edits, edited_pass
from explorer.inference.core_edits import preset_mask
from explorer.inference.edited_pass import MOST_TEXTS, run_edited, why_not_applicable
from explorer.inference.forward_pass import ForwardPass, run_text
from explorer.inference.results_cache import forget
from explorer.interventions.edits import (
    AblateAttention,
    AblateHead,
    AblateMlp,
    AblateNeuron,
    CutEdge,
    HideKey,
    Intervention,
    MaskCell,
    Patch,
    PresetMask,
    ReplaceByProgram,
    ReplaceToken,
    Steer,
)
from explorer.text import byte_tokenizer
from explorer.text.token import DECODER, Token
from explorer.text.token_labels import written
from explorer.views.shared.edit_history import PRESET_WORDS, describe_edit
from models import interventions as core
from models import trace
from models.masking import causal_mask
from tests.analysis.conftest import inputs_of
from tests.closeness import assert_close_to as close
from tests.models.edits import RemoveKey
from tests.tiny import LETTERS, NAMES, saved_and_opened

D, E, C = "decoder.self_attn", "encoder.self_attn", "decoder.cross_attn"
pytestmark = pytest.mark.usefixtures("small_models")


def opened(name: str) -> tuple[OpenModel, ForwardPass]:
    found = opened_model.open_model(name)
    return found, run_text(found, found.example)


def passed(found: OpenModel, forward: ForwardPass, *edits: core.Edit) -> torch.Tensor:
    """All logits of a pass of the core with these edits."""
    return trace(found.model, *inputs_of(forward), sites=("logits",), edits=edits).output[0]


def logits(found: OpenModel, forward: ForwardPass) -> torch.Tensor:
    """The same, read position by position as the page does."""
    if not output_change.has_words(found.config):
        return output_change.logits_at(forward.trace, 0)
    count = len(forward.last_stack_tokens)
    return torch.stack([output_change.logits_at(forward.trace, place) for place in range(count)])


SAME: list[tuple[Intervention, core.Edit]] = [
    (AblateHead(D, 1, 2), core.Scale("decoder.1.self_attn.head_out", head=2)),
    (AblateHead(D, 0, 1, "mean"), core.Mean("decoder.0.self_attn.head_out", 1)),
    (AblateAttention(D, 0), core.Scale("decoder.0.self_attn.out")),
    (AblateAttention(D, 1, "mean"), core.Mean("decoder.1.self_attn.out")),
    (AblateMlp(D, 1), core.Scale("decoder.1.mlp.out")),
    (AblateNeuron(D, 0, 5), core.SetNeuron("decoder.0.mlp.hidden", 5, 0.0)),
    (AblateNeuron(D, 1, 3, "mean"), core.SetNeuron("decoder.1.mlp.hidden", 3, None)),
    (CutEdge(D, 0, 3, 2, 1), core.SetCell("decoder.0.self_attn.weights", 2, 1, head=3)),
    (CutEdge(D, 0, None, 2, 1, "mean"), core.SetCell("decoder.0.self_attn.weights", 2, 1, None)),
    (MaskCell(D, None, 1, 2, True), core.SetCell("*.self_attn.mask", 1, 2, True)),
    (HideKey(D, 1, 2), RemoveKey("decoder.1.self_attn.weights", 2)),
    (HideKey(D, None, 2), RemoveKey("*.self_attn.weights", 2)),
]


def test_an_edit_is_made_in_the_pass(subtests: pytest.Subtests) -> None:
    found, forward = opened("letters")
    for edit, of_core in SAME:
        with subtests.test(edit=edit):
            again = run_edited(found, forward, (edit,))
            assert (again.applied, again.not_applicable) == ((edit,), {})
            new, expected = logits(found, again.forward), passed(found, forward, of_core)
            close(new, expected)
            assert not torch.allclose(new, logits(found, forward), atol=1e-4)
            assert describe_edit(found, forward, edit)
            assert run_edited(found, forward, (edit,)) is again, "made once"


def test_the_map_of_one_head_is_replaced_by_a_program() -> None:
    found, forward = opened("letters")
    edit = ReplaceByProgram(D, 1, 2, (("first", 1.0),))
    weights = run_edited(found, forward, (edit,)).forward.weights
    assert (weights(D, 1, 2)[:, 0] == 1).all()
    close(weights(D, 1, 1), forward.weights(D, 1, 1))
    hidden = run_edited(found, forward, (HideKey(D, None, 0), edit)).forward.weights(D, 1, 2)
    assert (hidden[:, 0] == 0).all()
    close(hidden[1:].sum(-1), torch.ones(len(hidden) - 1))


def test_a_program_reads_the_token_that_replaces_another() -> None:
    """Its characters, its ID and its word, whatever the order of the two edits."""
    found, forward = opened("letters")
    (comma,) = found.tokenizer.ids(",")[1:]
    for program in ("key is comma and before query", "same token and before query"):
        replaced = ReplaceToken(D, 1, comma), ReplaceToken(D, 2, comma)
        edits = (*replaced, ReplaceByProgram(D, 1, 2, ((program, 1.0),)))
        for order in (edits, edits[::-1]):
            weights = run_edited(found, forward, order).forward.weights(D, 1, 2)
            close(weights[2, 1], torch.tensor(1.0))
    dog, (piece, *_) = Token(7, "dog"), opened("reviews")[0].tokenizer.encode("cat")[1:]
    assert written(opened("reviews")[0].tokenizer, piece) == " cat"
    assert written(found.tokenizer, dog) == "dog"


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_attention_is_changed_and_without_edits_nothing(name: str) -> None:
    found, forward = opened(name)
    assert run_edited(found, forward, ()).forward is forward
    close(logits(found, forward), passed(found, forward))
    if output_change.has_words(found.config):
        ids = forward.predicted_ids
        assert output_change.over_text(forward.trace, forward.trace, (ids, ids)).kl.abs().max() == 0
        assert torch.is_grad_enabled(), "whoever trains in this process goes on"
    for part in forward.parts:
        edits = (AblateHead(part.name, 0, 0), PresetMask(part.name, None, "none"))
        again = run_edited(found, forward, (*edits, HideKey(part.name, 0, 0)))
        assert not again.not_applicable
        assert (again.forward.weights(part.name, 0, 1)[:, 0] == 0).all()


def test_a_replaced_token_is_the_text_with_that_token() -> None:
    found, forward = opened("reverse")
    typed = run_text(found, found.example.replace("4", "7"))
    place = next(i for i, token in enumerate(forward.source) if token.label == "4")
    again = run_edited(found, forward, (ReplaceToken(E, place, typed.source[place].id),)).forward
    close(logits(found, again), logits(found, typed))
    assert [token.label for token in again.source] == [token.label for token in typed.source]


SAYS: dict[str, Callable[[int, int, int], bool]] = {
    "none, every query may attend to every key": lambda query, key, last: True,
    "causal, no query may attend to a later key": lambda query, key, last: key <= query,
    "padding, the last 2 keys are masked": lambda query, key, last: key <= last - 2,
    "sliding window, only keys less than 2 tokens away": lambda query, key, last: (
        abs(query - key) < 2
    ),
    "prefix, causal except for the first 2 keys": lambda query, key, last: key < 2 or key <= query,
    "blocks, only keys in the same block of 2": lambda query, key, last: query // 2 == key // 2,
}
"""What a reader takes each sentence for, of a query, a key and the last token."""


@pytest.mark.parametrize(("name", "part"), [("letters", D), ("reverse", E)])
def test_the_words_of_a_preset_say_its_mask(name: str, part: str) -> None:
    found, forward = opened(name)
    n = len(forward.rows(part))
    for preset in PRESET_WORDS:
        edit = PresetMask(part, 0, preset, 2)
        may_look = SAYS[describe_edit(found, forward, edit).partition("mask: ")[2]]
        causal = part == D and preset in ("padding", "window", "blocks")
        meant = [
            [may_look(query, key, n - 1) and not (causal and key > query) for key in range(n)]
            for query in range(n)
        ]
        assert preset_mask(edit, n, n).tolist() == meant, preset
    assert not preset_mask(PresetMask(part, 0, "padding", 99), n, n).any()
    wide = preset_mask(PresetMask(part, 0, "window", 99), n, n)
    assert torch.equal(wide, causal_mask(n)[0, 0] if part == D else torch.ones(n, n).bool())


def test_patching_from_the_same_text_changes_nothing_and_from_another_something() -> None:
    found, forward = opened("letters")
    text, n = found.example, len(forward.target)
    others = ("the hat", "cat the", "hat the")
    other = next(each for each in others if len(run_text(found, each).target) == n)
    for head in (None, 1):
        same = run_edited(found, forward, (Patch(D, 0, head, n - 1, text),))
        assert not same.not_applicable
        close(logits(found, same.forward), logits(found, forward))
        patched = run_edited(found, forward, (Patch(D, 0, head, n - 1, other),)).forward
        close(logits(found, patched)[:-1], logits(found, forward)[:-1])
    whole = tuple(Patch(D, 1, None, place, other) for place in range(n))
    carried = run_edited(found, forward, whole).forward
    close(logits(found, carried), logits(found, run_text(found, other)))


MISFITS: dict[str, Intervention] = {
    "no such attention": AblateHead(E, 0, 0),
    "no layer 2 here: there are 2": AblateAttention(D, 2),
    "no head 4 here: there are 4": AblateHead(D, 0, 4),
    "There is no neuron 16 here: there are 16.": AblateNeuron(D, 0, 16),
    "no query 99": CutEdge(D, 0, 0, 99, 0),
    "no key 99": HideKey(D, None, 99),
    "no token 99 here": ReplaceToken(D, 99, 5),
    "no token ID 9,999": ReplaceToken(D, 1, 9_999),
    "“dog” was chosen in another model": ReplaceToken(D, 1, 5, "dog"),
    "size must be at least 1": PresetMask(D, 0, "window", 0),
    "only texts of the same length": Patch(D, 0, 0, 1, "the cat and the hat"),
    "have the same positions": Patch(D, 0, 0, 1, "the"),
    "type a sentence": Patch(D, 0, 0, 1, " "),
    "difference of two texts, or of several pairs": Steer(D, 0, None, 1.0, ("the cat",)),
    "is taken from one text": Steer(D, 0, 1, 1.0, ("the cat", "the hat")),
    "between these texts has no length": Steer(D, 1, None, 1.0, ("the cat", "the cat")),
    "no layer 9 here: there are 2": Steer(D, 9, None, 1.0, ("the cat", "the hat")),
    "“blue” is none of them": ReplaceByProgram(D, 0, 0, (("key is blue", 1.0),)),
    "no head 9 here": Steer(D, 0, 9, 1.0, ("the cat",)),
    "There is nothing to read": Steer(D, 0, None, 1.0, ("the cat", " ")),
    "tokens long and this model reads at most": Steer(D, 0, None, 1.0, ("the cat", "cat " * 99)),
}


def test_what_does_not_fit_is_not_applicable_with_its_reason(subtests: pytest.Subtests) -> None:
    found, forward = opened("letters")
    good = AblateHead(D, 0, 0)
    alone = run_edited(found, forward, (good,)).forward
    for why, edit in MISFITS.items():
        with subtests.test(why=why):
            again = run_edited(found, forward, (edit, good))
            assert again.applied == (good,)
            assert list(again.not_applicable) == [0]
            assert why in again.not_applicable[0]
            assert why_not_applicable(found, forward, (), edit) == again.not_applicable[0]
            assert why_not_applicable(found, forward, (), good) == ""
            close(again.forward.trace.output, alone.trace.output)


def by_hand(found: OpenModel, part: str, layer: int, texts: tuple[str, ...]) -> torch.Tensor:
    """The mean difference of residual streams, each at the last token, or over an encoder's."""
    stream = f"{part.split('.')[0]}.{layer}.resid_post"
    values = []
    for text in texts:
        seen = run_text(found, text)
        whole = trace(found.model, *inputs_of(seen), sites=(stream,))[stream][0]
        start = 0 if seen.source else -1
        values.append(whole.mean(0) if part.startswith("encoder") else whole[start])
    return (torch.stack(values[::2]) - torch.stack(values[1::2])).mean(0)


@pytest.mark.parametrize("name", NAMES)
def test_a_direction_of_texts_is_added_after_its_layer(name: str) -> None:
    """Of one pair and of two, of texts of different lengths, as it is added by hand."""
    found, forward = opened(name)
    short = found.example[: len(found.example) // 2]
    for part in {part.name for part in forward.parts} - {C}:
        for texts in ((found.example, short), (found.example, short, short, found.example[:2])):
            edit = Steer(part, 0, None, -2.5, texts)
            again = run_edited(found, forward, (edit,))
            assert not again.not_applicable
            direction = by_hand(found, part, 0, texts)
            close(core_edits.steering_direction(found, edit), direction)
            of_core = core.Add(f"{part.split('.')[0]}.0.resid_post", direction, -2.5)
            close(logits(found, again.forward), passed(found, forward, of_core))
            assert "−2.50 × (“" in describe_edit(found, forward, edit)
    if found.config.kind == "encoder-decoder":
        across = Steer(C, 0, None, 1.0, (found.example, short)), AblateNeuron(C, 0, 0)
        why = run_edited(found, forward, across).not_applicable
        assert "under Decoder, not Cross-attention" in why[0]
        assert "no feed-forward layer" in why[1]


@pytest.mark.parametrize("name", [*NAMES, "grouped"])
def test_the_outputs_of_all_heads_add_up_to_what_their_attention_writes(
    name: str, tmp_path: Path
) -> None:
    if name == "grouped":
        how: dict[str, Any] = {"n_heads": 4, "n_kv_heads": 2}
        found = saved_and_opened(tmp_path, name, byte_tokenizer(LETTERS, 280, DECODER), **how)
    else:
        found = opened_model.open_model(name)
    forward = run_text(found, found.example)
    whole = trace(found.model, *inputs_of(forward))
    for part in forward.parts:
        layer, heads = part.layers - 1, range(part.heads)
        steers = [Steer(part.name, layer, head, 1.0, (found.example,)) for head in heads]
        at = -1 if found.config.kind == "decoder" else 0
        rows = whole[f"{site(part.name, layer)}.out"][0]
        wrote = rows.mean(0) if part.name == E else rows[at]
        stack, attention = part.name.split(".")
        block: Any = getattr(found.model, stack).blocks[layer]
        bias = getattr(block, attention).o_proj.bias
        directions = [core_edits.steering_direction(found, each) for each in steers]
        total = torch.stack(directions).sum(0) + (0 if bias is None else bias)
        close(total, wrote)
        assert run_edited(found, forward, steers[:1]).applied == tuple(steers[:1])


def test_a_history_reads_a_few_other_texts_only() -> None:
    found, forward = opened("letters")
    pairs = [*map(" ".join, product(("the", "cat", "hat", "and"), repeat=2))]
    texts = [text for text in pairs if len(run_text(found, text).target) == len(forward.target)]
    patches = tuple(Patch(D, 0, 0, 1, text) for text in texts[: MOST_TEXTS + 1])
    again = run_edited(found, forward, (*patches, AblateHead(D, 0, 0)))
    assert again.applied == (*patches[:-1], AblateHead(D, 0, 0))
    assert "At most 4 texts can be patched" in again.not_applicable[MOST_TEXTS]
    for patch, fits in ((patches[-1], False), (patches[0], True)):
        assert (why_not_applicable(found, forward, patches[:-1], patch) == "") == fits
    others = [*pairs, "the cat and", "the hat and"]
    both = zip(others[::2], others[1::2], strict=True)
    steers = tuple(Steer(D, 0, None, 1.0, each) for each in both)
    again = run_edited(found, forward, steers)
    assert list(again.not_applicable) == [8]
    assert "at most 16 texts in all" in again.not_applicable[8]


def test_the_weights_of_all_cut_layers_share_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    found, forward = opened("letters")
    layer = forward.part(D).heads * len(forward.target) ** 2
    monkeypatch.setattr(edited_pass, "MOST_WEIGHTS", layer)
    fits = (CutEdge(D, 0, 0, 2, 1), CutEdge(D, 0, 1, 2, 0))
    nowhere, strange = CutEdge(D, 1, 0, 99, 0), CutEdge(C, 0, 0, 2, 1)
    too_much = CutEdge(D, 1, 0, 2, 1)
    again = run_edited(found, forward, (nowhere, strange, *fits, too_much))
    assert again.applied == fits, "what is set aside takes nothing of what may be held"
    assert list(again.not_applicable) == [0, 1, 4]
    assert why_not_applicable(found, forward, (nowhere, strange, fits[0], too_much), fits[1]) == ""
    assert why_not_applicable(found, forward, fits, too_much) == again.not_applicable[4]
    assert "all weights of every layer with a cut edge" in again.not_applicable[4]


def test_edits_that_fit_only_one_by_one_are_not_applicable(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*given: Any) -> ForwardPass:
        raise core.EditError("Not together.")

    monkeypatch.setattr(edited_pass, "rerun", refused)
    found, forward = opened("letters")
    again = run_edited(found, forward, (AblateHead(D, 0, 3), AblateHead(D, 1, 3)))
    forget(found)
    assert again.forward is forward
    assert (again.applied, again.not_applicable) == ((), {0: "Not together.", 1: "Not together."})


NOTHING: tuple[Intervention, ...] = (
    PresetMask(D, None, "causal"),
    PresetMask(C, None, "none"),
    MaskCell(D, None, 0, 0, True),
)
SOMETHING: tuple[Intervention, ...] = (
    AblateHead(E, 0, 0),
    AblateHead(C, 0, 1),
    AblateMlp(D, 0),
    CutEdge(D, 0, None, 1, 0),
    ReplaceToken(E, 0, 7),
    ReplaceToken(D, 1, 7),
    HideKey(C, None, 0),
    HideKey(D, 0, 3),
    PresetMask(D, 0, "window", 2),
    PresetMask(C, None, "padding", 1),
    Steer(E, 0, None, 2.0, ("a black cat", "a red dog runs")),
    Steer(D, 0, None, -3.0, ("a black cat", "a red dog runs")),
    Steer(C, 0, 1, 4.0, ("a black cat",)),
)


@pytest.mark.parametrize("name", ["translation", "t5"])
def test_edits_hold_while_it_writes(name: str, published: Path, subtests: pytest.Subtests) -> None:
    """Passed whole over it, with the same edits; of a published model with some of them."""
    model = opened_model.open_checkpoint((published if name == "t5" else SHIPPED) / name, name)
    forward = run_text(model, "hello world" if name == "t5" else model.example)
    for edit in (*NOTHING, *SOMETHING)[:: 6 if name == "t5" else 1]:
        with subtests.test(edit=edit):
            passed = run_edited(model, forward, (edit,))
            written = edited_pass.generate_edited(model, passed)
            if edit in NOTHING:
                assert written == forward.output_tokens
                assert edited_pass.edited_answer(model, passed) == forward.answer
            target = (forward.target[0], *written[:-1])
            whole = dataclasses.replace(forward, target=target, output_tokens=written)
            forget(model)  # the same text, passed over another answer
            again = run_edited(model, whole, (edit,))
            forget(model)
            assert passed.applied == again.applied == (edit,)
            expected = again.forward.trace.output[0].argmax(-1).tolist()
            assert [token.id for token in written] == expected
