"""A text as a task: its last tenth is never trained on, and a poor text is refused in words."""

import pytest
import torch

from explorer.tasks import task_of
from explorer.tasks.language import LanguageTask
from explorer.text import TextError
from models import Transformer

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
    for step in range(2_000):
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


def test_shakespeare_learns_its_vocabulary_from_the_training_part_only() -> None:
    text = "".join(f"line {i} of the play, my lord.\n" for i in range(800))
    ending = "zyzzyva zyzzyva\n" * 160
    task = task_of("shakespeare", text + ending)
    assert isinstance(task, LanguageTask)
    labels = [task.tokenizer.label(number) for number in range(task.tokenizer.vocab_size)]
    assert any("lord" in label for label in labels)
    assert not any("zyz" in label for label in labels)


def test_a_text_nothing_can_be_learnt_from_is_refused(subtests: pytest.Subtests) -> None:
    for name, text, sentence in [
        ("characters", "", "0 characters; give at least"),
        ("characters", "short", "5 characters; give at least"),
        ("characters", "ab\ud800" * 1000, "half of a character pair"),
        ("shakespeare", "a" * 1000, "needs at least 20,000"),
        ("shakespeare", "a" * 5_000_001, "at most 5,000,000 fit"),
    ]:
        with subtests.test(name=name), pytest.raises(TextError, match=sentence):
            task_of(name, text)
