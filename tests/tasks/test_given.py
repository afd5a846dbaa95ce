"""Tasks made of a reader's own text or table: nothing held out is trained on, poor ones refused."""

import pytest
import torch

from explorer.tasks import task_of
from explorer.tasks.language import LanguageTask
from explorer.tasks.recipes import Recipe
from explorer.tasks.reviews import ReviewTask, read_table, split_reviews
from explorer.text import TextError
from models import Transformer
from models.training import train

TRAINING, HELD_OUT = "the cat sat on the mat.\n" * 450, "THE OWL SLEPT IN A TREE\n" * 50


@pytest.fixture(scope="module")
def characters() -> LanguageTask:
    task = task_of("characters", TRAINING + HELD_OUT)
    assert isinstance(task, LanguageTask)
    return task


def test_the_last_tenth_is_held_out_and_the_example_is_the_beginning(
    characters: LanguageTask,
) -> None:
    """The end is written in capitals, and a training batch never holds any."""
    assert characters.example == "the cat sat on the mat. the cat"
    decode = characters.tokenizer.decode
    assert "OWL" not in decode(characters.training_ids.tolist())
    assert set(characters.held_out_ids.tolist()) <= {characters.tokenizer.unk_id} | {
        characters.tokenizer.id_of(letter) for letter in " \n"
    }
    for step in range(500):
        batch = characters.batch(step, characters.training)
        assert not (batch.labels == characters.tokenizer.id_of("<unk>")).any()


def test_windows_begin_with_the_start_token_and_predict_the_next_one(
    characters: LanguageTask,
) -> None:
    batch = characters.batch(0, characters.training)
    read = batch.inputs[0]
    assert set(read[:, 0].tolist()) == {characters.tokenizer.bos_id}
    assert torch.equal(read[:, 1:], batch.labels[:, :-1])
    assert read.shape == (characters.training.batch_size, characters.model.max_len)
    assert not torch.equal(batch.labels, characters.batch(1, characters.training).labels)


def test_measuring_reads_the_held_out_text(characters: LanguageTask) -> None:
    model = Transformer(characters.model)
    few = characters.measure(model).value
    all_of_it = characters.measuring_everything().measure(model).value
    assert few == pytest.approx(all_of_it, rel=0.2)
    assert 1 < few < 10


def test_a_shipped_model_is_measured_on_everything_whatever_its_positions() -> None:
    for recipe in (
        Recipe("characters"),
        Recipe("twin", twin_of="characters", positions="learned"),
        Recipe("same", twin_of="characters"),
    ):
        task = recipe.task(TRAINING + HELD_OUT)
        assert isinstance(task, LanguageTask)
        assert task.measured_windows == len(task.held_out_windows), recipe.name
        assert (task.model.positions == "learned") == bool(recipe.positions)


def test_shakespeare_learns_its_vocabulary_from_the_training_part_only() -> None:
    text = "".join(f"line {i} of the play, my lord.\n" for i in range(800))
    ending = "zyzzyva zyzzyva\n" * 160
    task = task_of("shakespeare", text + ending)
    assert isinstance(task, LanguageTask)
    labels = [task.tokenizer.label(number) for number in range(task.tokenizer.vocab_size)]
    assert any("lord" in label for label in labels)
    assert not any("zyz" in label for label in labels)


ROWS = [f"meal {i} was {word},{label}" for i in range(60) for word, label in
        (("good", "up"), ("bad", "down"))]  # fmt: skip
TABLE = "text,label\n" + "\n".join(ROWS)


@pytest.fixture(scope="module")
def reviews() -> ReviewTask:
    built = task_of("reviews", TABLE)
    assert isinstance(built, ReviewTask)
    return built


def test_classes_and_shares(reviews: ReviewTask) -> None:
    assert reviews.classes == ("down", "up")
    assert reviews.model.n_classes == 2
    assert reviews.held_out_batch.labels.bincount().tolist() == [12, 12]
    assert reviews.training_rows.labels.bincount().tolist() == [48, 48]


def test_no_held_out_sentence_is_trained_on_even_when_it_comes_twice() -> None:
    labelled, _ = read_table(TABLE + "\n" + "\n".join(ROWS[:40]))
    training, held_out = split_reviews(labelled)
    assert len(labelled) == 120
    assert not {text for text, _ in training} & {text for text, _ in held_out}
    assert split_reviews(list(reversed(labelled))) == (training, held_out)


def test_batches_hide_words_but_never_the_first_token(reviews: ReviewTask) -> None:
    batch = reviews.batch(0, reviews.training)
    rows = batch.inputs[0]
    assert set(rows[:, 0].tolist()) == {reviews.tokenizer.cls_id}
    assert 0.3 < (rows[:, 1:] == 0).float().mean() < 0.7
    known = {tuple(row) for row in reviews.held_out_batch.inputs[0].tolist()}
    for step in range(500):
        batch = reviews.batch(step, reviews.training)
        assert not known & {tuple(row) for row in batch.inputs[0].tolist() if 0 not in row}


def test_it_learns(reviews: ReviewTask) -> None:
    model = Transformer(reviews.model)
    training = reviews.training.replace(steps=150)
    for _ in train(model, lambda step: reviews.batch(step, training), training):
        pass
    assert reviews.measure(model).value > 0.95


def test_what_nothing_can_be_learnt_from_is_refused(subtests: pytest.Subtests) -> None:
    many = "\n".join(f"t{i},{i}" for i in range(60))
    for name, text, sentence in [
        ("characters", "", "0 characters; give at least"),
        ("characters", "short", "5 characters; give at least"),
        ("characters", "ab\ud800" * 1000, "unpaired surrogate"),
        ("shakespeare", "a" * 1000, "give at least 20,000"),
        ("shakespeare", "a" * 5_000_001, "at most 5,000,000 characters fit"),
        ("reviews", "", "names the columns text and label"),
        ("reviews", "a,b\n1,2", "names the columns text and label"),
        ("reviews", "text,label\nhello,1", "All sentences have the label"),
        ("reviews", "text,label\nhello,1\nbye,0", "2 different sentences; give at least 40"),
        ("reviews", f"text,label\n{many}", "60 different values"),
        ("reviews", 'text,label\n"' + "a" * 200_000 + '",1', "cannot be read"),
        ("reviews", "text,label\na\ud800,1", "unpaired surrogate"),
    ]:
        with subtests.test(name=name, text=text[:20]), pytest.raises(TextError, match=sentence):
            task_of(name, text)
