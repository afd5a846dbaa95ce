"""What every task promises, and what each of the built-in ones is made of."""

import datetime
from collections.abc import Iterable
from typing import TypeVar

import pytest
import torch
from torch.nn.functional import pad

from explorer.tasks import TASKS, Task, french, pattern_of, task_of
from explorer.tasks.addition import MODULUS, AdditionTask, split_sums
from explorer.tasks.batches import ONE_IN, is_held_out
from explorer.tasks.brackets import Brackets, is_balanced
from explorer.tasks.dates import FORMATS, Dates
from explorer.tasks.induction import LENGTH, LONGEST, PERIOD, SHORTEST, Induction, canonical
from explorer.tasks.letters import LetterTask
from explorer.tasks.negation import CLASSES, Negation
from explorer.tasks.translation import TranslationTask, is_held_out_sentence
from explorer.text import TextError, Token
from explorer.text.token import BOS
from models import Transformer
from models.losses import IGNORE
from models.training import Batch, train

Kind = TypeVar("Kind")


def task_as(name: str, kind: type[Kind]) -> Kind:
    task = TASKS[name]
    assert isinstance(task, kind)
    return task


def decoder_input(task: Task, text: str) -> list[Token]:
    ids = [task.tokenizer.id_of(BOS), *task.tokenizer.many_ids([text], special=False)[0]]
    return [*map(task.tokenizer.token, ids)]


def examples(batches: Iterable[Batch]) -> set[tuple[int, ...]]:
    """What the model reads first in each row, without padding."""
    parts = [batch.inputs[0] for batch in batches]
    widest = max(part.shape[1] for part in parts)
    rows = torch.cat([pad(part, (0, widest - part.shape[1])) for part in parts]).unique(dim=0)
    return {tuple(number for number in row if number) for row in rows.tolist()}


def test_training_never_sees_a_held_out_example() -> None:
    for name, task in TASKS.items():
        held_out = examples([task.held_out_batch])
        assert len(held_out) > 70, name
        assert len(held_out) == len(task.held_out_batch.labels), name
        seen = examples(task.batch(step, task.training) for step in range(20))
        assert not seen & held_out, name
        assert len(seen) >= min(500, task.training_size or 500), name


def test_a_batch_follows_from_seed_and_step() -> None:
    for name, task in TASKS.items():
        random_state = torch.get_rng_state()
        one, again = (task.batch(7, task.training) for _ in range(2))
        assert torch.equal(torch.get_rng_state(), random_state), name
        assert all(map(torch.equal, one.inputs, again.inputs)), name
        assert torch.equal(one.labels, again.labels), name
        other_step = task.batch(8, task.training)
        for other in (other_step, task.batch(7, task.training.replace(seed=1))):
            assert not torch.equal(other.inputs[0], one.inputs[0]), name


def test_the_default_model_reads_the_batches_and_the_examples(subtests: pytest.Subtests) -> None:
    for name, task in TASKS.items():
        with subtests.test(name=name):
            assert task.name == name
            assert task.model.fault() is None
            assert task.training.fault() is None
            model, batch = Transformer(task.model), task.batch(0, task.training)
            logits = model(*batch.inputs)
            assert logits.shape[:-1] == batch.labels.shape
            assert len(batch.labels) == task.training.batch_size
            labels = batch.labels[batch.labels != IGNORE]
            assert labels.min() >= 0
            assert labels.max() < logits.shape[-1]
            assert 0 <= task.measure(model).value < task.goal
            assert not [p for p in model.parameters() if p.grad is not None]
            for example in task.examples:
                ids = task.tokenizer.ids(example)
                assert task.tokenizer.unk_id not in ids, example
                assert len(ids) <= task.model.max_len


def test_the_expected_pattern_fits_the_tokens(subtests: pytest.Subtests) -> None:
    for name, task in TASKS.items():
        with subtests.test(name=name):
            source = task.tokenizer.encode(task.example)
            is_pair = task.model.kind == "encoder-decoder"
            target = decoder_input(task, task.example) if is_pair else []
            pattern = task.pattern(source, target)
            assert (pattern is None) == (task.pattern_site == "")
            if pattern is None:
                continue
            assert pattern.shape == (len(target or source), len(source))
            sums = pattern.sum(-1)
            assert ((sums - 1).abs() < 1e-5).logical_or(sums == 0).all()
            assert sums.any()
            stack, layer, attention = task.pattern_site.split(".")
            assert stack in task.model.stacks
            assert int(layer) < task.model.n_layers
            assert attention == ("cross_attn" if target else "self_attn")


def test_a_pattern_that_expects_nothing_is_none() -> None:
    """A score of it would be a mean over no rows: not a number."""
    negation = TASKS["negation"]
    neutral, telling = map(negation.tokenizer.encode, ("the film is", "the film is good"))
    square = (len(telling), len(telling))
    assert pattern_of(negation, neutral, (), (len(neutral), len(neutral))) is None
    pattern = pattern_of(negation, telling, (), square)
    assert pattern is not None
    assert pattern.any()
    assert pattern_of(negation, telling, (), (3, 4)) is None


def test_an_unknown_task_is_refused_in_a_sentence() -> None:
    with pytest.raises(TextError, match="task called 'sing'; there are reverse, reverse-encoder,"):
        task_of("sing")
    assert task_of("reverse") is TASKS["reverse"]


def test_after_x_y_and_z_the_letter_before_comes_again() -> None:
    batch = TASKS["backcopy"].batch(0, TASKS["backcopy"].training)
    texts = [*map(TASKS["backcopy"].tokenizer.decode, batch.labels.tolist())]
    copies = [text[at - 1 : at + 2] for text in texts for at in range(1, 31) if text[at] in "xyz"]
    assert len(copies) > 150
    assert all(copy[0] == copy[2] for copy in copies)
    assert not [text for text in texts if text[0] in "xyz"]


def random_rows(count: int, length: int, seed: int) -> torch.Tensor:
    return torch.randint(1, 30, (count, length), generator=torch.Generator().manual_seed(seed))


def test_the_order_of_a_row_decides_and_neither_padding_nor_company_does() -> None:
    drawn = random_rows(2_000, 6, seed=2)
    assert torch.equal(is_held_out(drawn), is_held_out(pad(drawn, (0, 4))))
    assert torch.equal(is_held_out(drawn)[7:8], is_held_out(drawn[7:8]))
    assert not torch.equal(is_held_out(drawn), is_held_out(drawn.flip(-1)))
    share = is_held_out(random_rows(20_000, 8, seed=1)).float().mean().item()
    assert abs(share - 1 / ONE_IN) < 0.01


def test_answers() -> None:
    sort = ("sort", "banana", "aaabnn")
    for name, word, answer in [("reverse", "hello", "olleh"), ("copy", "hello", "hello"), sort]:
        task = task_as(name, LetterTask)  # type: ignore[type-abstract]
        ids = torch.tensor([task.tokenizer.ids(word)[:-1] + [0] * (8 - len(word))])
        assert task.tokenizer.decode(task.answers(ids)[0].tolist()) == answer
        written = task.answer(task.tokenizer.encode(word))
        assert [token.label for token in written] == [*answer, "</s>"]
        assert task.answer(()) == []


def test_batches_have_words_of_every_length_and_end_tokens() -> None:
    for name in ("reverse", "copy", "sort"):
        task = task_as(name, LetterTask)  # type: ignore[type-abstract]
        end, begin = task.tokenizer.eos_id, task.tokenizer.bos_id
        batch = task.batch(0, task.training)
        source, decoder_input = batch.inputs
        assert set((source != 0).sum(-1).tolist()) == set(range(2, 10)), name
        for row, labels, given in zip(source, batch.labels, decoder_input, strict=True):
            length = int((row != 0).sum())
            assert (row[length - 1], labels[length - 1], given[0]) == (end, end, begin), name
            assert (labels[length:] == IGNORE).all(), name
            assert torch.equal(given[1:length], labels[: length - 1]), name


def test_reverse_looks_along_the_anti_diagonal_and_sort_wherever_the_letter_stands() -> None:
    for name, word, written, expected in [
        ("reverse", "abc", "xcba", [[0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]),
        ("sort", "bab", "xabb", [[0, 1, 0, 0], [0.5, 0, 0.5, 0], [0.5, 0, 0.5, 0], [0, 0, 0, 0]]),
    ]:
        encode = TASKS[name].tokenizer.encode
        pattern = TASKS[name].pattern(encode(word), encode(written)[:4])
        assert pattern is not None
        assert pattern.tolist() == expected, name


def test_every_sentence_has_the_label_that_it_means() -> None:
    task = task_as("negation", Negation)
    rows, labels = task.sentences.inputs[0].tolist(), task.sentences.labels
    for text, label in [
        ("the food was good", "positive"),
        ("the food was not good", "negative"),
        ("the hotel is never really awful", "positive"),
        ("the film seems so dull", "negative"),
        ("the film seems not very long", "neutral"),
        ("the book is short", "neutral"),
    ]:
        ids = task.tokenizer.ids(text)
        padded = ids + [0] * (len(rows[0]) - len(ids))
        assert rows.count(padded) == 1, text
        assert CLASSES[labels[rows.index(padded)]] == label, text
    trained_on, labels = task.training_rows.inputs[0], task.training_rows.labels
    for word in ("good", "awful", "not", "never"):
        assert len(labels[(trained_on == task.tokenizer.id_of(word)).any(-1)].unique()) >= 2, word


def test_translations() -> None:
    for english, expected in {
        "the black cat does not see the white house": "le chat noir ne voit pas la maison blanche",
        "a white cow eats a red flower": "une vache blanche mange une fleur rouge",
        "the girl does not eat a rabbit": "la fille ne mange pas de lapin",
        "the dog sleeps": "le chien dort",
        "a car does not dance": "une voiture ne danse pas",
    }.items():
        translation = french.translate(english.split())
        assert translation is not None, english
        assert " ".join(translation.french) == expected
    for text in (
        "",
        "cat",
        "the cat",
        "the cat see the dog",
        "the cat sleeps the dog",
        "cat the sees",
        "the cat does see the dog",
        "the cat sees the dog the",
    ):
        assert french.translate(text.split()) is None, text
    translation = french.translate("the black cat does not see a dog".split())
    assert translation is not None
    assert dict(zip(translation.french, translation.alignment, strict=True)) == {
        "le": (0, 2), "chat": (2,), "noir": (1,), "ne": (3, 4), "voit": (5,), "pas": (3, 4),
        "de": (6,), "chien": (7,),
    }  # fmt: skip


def test_every_word_is_trained_and_nine_pairs_never_are() -> None:
    pairs = [(adjective, noun) for adjective in french.ADJECTIVES for noun in french.NOUNS]
    assert sum(map(french.is_held_out_pair, pairs)) == 9
    task = task_as("translation", TranslationTask)
    source, target = task.training_rows
    words = french.english_words() | french.french_words()
    read = {*source.unique().tolist(), *target.unique().tolist()}
    assert read >= set(map(task.tokenizer.id_of, words))
    texts = [task.tokenizer.decode(row.tolist()) for row in source]
    assert not any(map(is_held_out_sentence, texts))
    assert len(set(texts)) == len(texts)
    held_out_texts = [task.tokenizer.decode(row.tolist()) for row in task.held_out_batch.inputs[0]]
    assert all(map(is_held_out_sentence, held_out_texts))


def test_the_pattern_stops_where_the_model_leaves_the_rules() -> None:
    task = TASKS["translation"]
    source = task.tokenizer.encode("the cat sleeps")
    for written, rows in (("le chat dort", [1, 1, 1, 0]), ("le chien dort", [1, 1, 0, 0])):
        target = decoder_input(task, written)
        pattern = task.pattern(source, target)
        assert pattern is not None
        assert pattern.sum(-1).tolist() == rows
    assert [token.label for token in task.answer(source)] == ["le", "chat", "dort", "</s>"]
    assert task.pattern(task.tokenizer.encode("cat the"), target) is None
    assert not task.answer(task.tokenizer.encode("cat the"))


def test_the_period_varies_and_labels_are_repeats() -> None:
    task = task_as("induction", Induction)
    batch = task.batch(0, task.training)
    periods = set()
    for row, labels in zip(batch.inputs[0], batch.labels, strict=True):
        assert len(row) == LENGTH
        assert row[0] == task.tokenizer.bos_id
        letters = row[1:].tolist()
        period = next(p for p in range(1, 20) if letters[p:] == letters[:-p])
        periods.add(period)
        assert len(set(letters[:period])) == period
        assert (labels[: period + 1] == IGNORE).all()
        assert labels[period + 1 : -1].tolist() == letters[period + 1 :]
    assert periods == set(range(SHORTEST, LONGEST + 1))


def test_no_fixed_offset_answers_more_than_a_fraction() -> None:
    """The trap of a fixed period: one look a constant distance back must not be enough."""
    batch = task_as("induction", Induction).held_out_batch
    letters, labels = batch.inputs[0], batch.labels
    counted = labels != IGNORE
    for offset in range(LENGTH - 1):
        guess = torch.full_like(labels, -1)
        guess[:, offset:] = letters[:, : LENGTH - offset]
        assert (guess == labels)[counted].float().mean() < 0.4
    task = task_as("induction", Induction)
    pattern = task.pattern(task.tokenizer.encode("ababa"))
    assert pattern is not None
    assert pattern.nonzero().tolist() == [[3, 2], [4, 3], [5, 2], [5, 4]]


def test_a_block_is_held_out_with_all_its_rotations() -> None:
    blocks = torch.tensor([[5, 9, 7, 0], [9, 7, 5, 0], [7, 5, 9, 0], [5, 7, 9, 0]])
    assert canonical(blocks).tolist() == [[5, 9, 7, 0]] * 3 + [[5, 7, 9, 0]]
    task = task_as("induction", Induction)
    held_out = {tuple(row) for row in canonical(_blocks(task.held_out_batch.inputs[0])).tolist()}
    for step in range(30):
        rows = task.batch(step, task.training).inputs[0]
        assert not held_out & {tuple(row) for row in canonical(_blocks(rows)).tolist()}


def _blocks(rows: torch.Tensor) -> torch.Tensor:
    """The first block of each row, padded."""
    letters = rows[:, 1 : LONGEST + 1]
    again = (letters == letters[:, :1]).float()
    again[:, 0] = 0
    period = torch.where(again.any(-1), again.argmax(-1), LONGEST)
    return letters.masked_fill(torch.arange(LONGEST) >= period[:, None], 0)


def test_half_of_a_batch_is_balanced_and_counting_alone_is_not_enough() -> None:
    assert all(map(is_balanced, ("", "()", "(())()")))
    assert not any(map(is_balanced, (")(", "(", "())(", "((")))
    task = task_as("brackets", Brackets)
    assert [len(rows) for rows in task.groups] == [196, 1078, 5460 - 196 - 1078]
    for batch in (task.batch(0, task.training), task.held_out_batch):
        texts = [task.tokenizer.decode(row.tolist()) for row in batch.inputs[0]]
        assert [is_balanced(text) for text in texts] == batch.labels.bool().tolist()
        assert batch.labels.float().mean() == 0.5
        by_count = [text.count("(") == text.count(")") for text in texts]
        assert sum(by_count) == pytest.approx(0.75 * len(texts), abs=1)
        assert not any(len(text) % 2 for text in texts)


def test_dates_in_every_format_have_one_answer() -> None:
    task, day = task_as("dates", Dates), datetime.date(2021, 9, 5)
    written = ["".join(form(day)) for form in FORMATS.values()]
    assert written == ["5 september 2021", "september 5, 2021", "5 sep 2021", "5.9.2021"]
    for text in written:
        answer = task.answer(task.tokenizer.encode(text))
        assert "".join(token.label for token in answer) == "2021-09-05</s>", text
    for text in ("", "5 september", "31 june 2021", "september 5 2021", "2021-09-05", "5.9.21"):
        assert task.answer(task.tokenizer.encode(text)) == (), text
    for text, places in {
        "5 mar 2021": [[6], [7], [8], [9], [], [2, 3, 4], [2, 3, 4], [], [0], [0]],
        "march 15, 2021": [[10], [11], [12], [13], [], [*range(5)], [*range(5)], [], [6], [7]],
        "24.12.1999": [[6], [7], [8], [9], [], [3], [4], [], [0], [1]],
    }.items():
        source = task.tokenizer.encode(text)
        target = (Token(0, "<s>"), *task.answer(source))[:-1]
        pattern = task.pattern(source, target)
        assert pattern is not None
        assert [row.nonzero()[:, 0].tolist() for row in pattern[:10]] == places, text
    assert task.pattern(task.tokenizer.encode("tomorrow"), target) is None


def test_sums_are_right_and_a_batch_holds_all_of_them() -> None:
    for name in ("addition", "addition-leak"):
        task = task_as(name, AdditionTask)
        batch = task.batch(3, task.training)
        for row, labels in zip(batch.inputs[0], batch.labels, strict=True):
            a, b = (int(task.tokenizer.label(int(row[at]))) for at in (1, 3))
            assert task.tokenizer.label(int(labels[4])) == str((a + b) % MODULUS)
            assert (labels[:4] == IGNORE).all()
        assert len(batch.inputs[0].unique(dim=0)) == task.training_size == len(batch.labels)
        assert len(task.batch(3, task.training.replace(batch_size=20)).labels) == 20
        share = len(batch.labels) / MODULUS**2
        assert share == pytest.approx(0.7, abs=0.01)


def mirrored_and_trained(ordered: bool) -> float:
    """The share of held-out sums whose mirror image is trained on."""
    trained, held_out = ({tuple(pair) for pair in part.tolist()} for part in split_sums(ordered))
    assert not trained & held_out
    return sum((b, a) in trained for a, b in held_out) / len(held_out)


def test_unordered_pairs_do_not_leak_and_ordered_ones_do() -> None:
    """Whoever only looks up b + a is right on two thirds of what the leaking split holds out."""
    assert mirrored_and_trained(ordered=False) == 0
    assert mirrored_and_trained(ordered=True) > 0.6
    assert "mistake" in TASKS["addition-leak"].explanation


def test_with_a_fixed_period_a_constant_offset_answers_everything() -> None:
    task = task_as("induction-fixed", Induction)
    batch = task.held_out_batch
    letters, labels = batch.inputs[0], batch.labels
    counted, guess = labels != IGNORE, torch.full_like(labels, -1)
    guess[:, PERIOD - 1 :] = letters[:, : letters.shape[1] - PERIOD + 1]
    assert (guess == labels)[counted].all()
    pattern = task.pattern(task.tokenizer.encode("abcdefghabcd"))
    assert pattern is not None
    assert pattern.nonzero().tolist() == [[at, at - PERIOD + 1] for at in range(9, 13)]


def test_one_layer_seems_to_learn_induction_and_fails_at_another_period() -> None:
    task, other = task_as("induction-fixed", Induction), TASKS["induction"]
    assert task.model.n_layers == 1
    model = Transformer(task.model)
    training = task.training.replace(steps=150, lr=0.006, warmup=20)
    for _ in train(model, lambda step: task.batch(step, training), training):
        pass
    assert task.measure(model).value > 0.99
    assert other.measure(model).value < 0.5
