"""What is counted of the data, and what the simplest models make of it, by hand."""

import math
from dataclasses import replace

import pytest
import torch

from explorer.tasks import TASKS, task_of
from explorer.tasks.baselines import NaiveBayes, bigram_nats, features
from explorer.tasks.data_summary import examples_of, masks_of, summary_of, unknown_words
from models.losses import IGNORE

TABLE = "text,label\n" + "\n".join(
    f"meal {i} was {word},{label}" for i in range(60) for word, label in (("good", 1), ("bad", 0))
)
PAIRS = "source,target\n" + "\n".join(f"{i} cat,cat {i}\n{i} dog,dog {i}" for i in range(60))
GIVEN = {
    "reviews": TABLE,
    "sentences": TABLE,
    "pairs": PAIRS,
    "subwords": "".join(f"line {i} says {i * i} and no more\n" for i in range(1_500)),
    "characters": "the cat sat on the mat\n" * 100,
    "shakespeare": "".join(f"line {i} says {i * i} and no more\n" for i in range(1_500)),
}


def test_no_held_out_example_is_in_the_batches(subtests: pytest.Subtests) -> None:
    for name in ("reverse", "induction", "negation", "addition"):
        with subtests.test(name=name):
            task = TASKS[name]
            summary = summary_of(task, task.training)
            assert summary.held_out == len(task.held_out_batch.labels)
            assert summary.leaked == 0
            assert summary.unknown == 0
            assert all(len(each) == summary.examples for each in summary.lengths)
    for name in ("reviews", "sentences", "pairs", "subwords", "shakespeare"):
        with subtests.test(name=name):
            task = task_of(name, GIVEN[name])
            assert summary_of(task, task.training).leaked == 0


def test_a_held_out_example_that_is_trained_on_is_found() -> None:
    """The count is no constant: a text that repeats itself has its end in its beginning."""
    task = task_of("reviews", TABLE)
    leaking = replace(task, held_out_rows=task.training_rows)  # type: ignore[attr-defined,call-arg]
    assert summary_of(leaking, leaking.training).leaked > 50
    repeated = task_of("characters", GIVEN["characters"])
    assert summary_of(repeated, repeated.training).leaked > 0


def test_an_example_is_what_the_batch_holds() -> None:
    for name in ("reverse", "induction", "negation", "addition"):
        task = TASKS[name]
        batch = task.batch(0, task.training)
        for row, example in enumerate(examples_of(task, batch, 3)):
            for ids, tokens in zip(batch.inputs, example.inputs, strict=True):
                assert [token.id for token in tokens] == ids[row].tolist(), name
            if task.classes:
                assert example.label == task.classes[int(batch.labels[row])]
                assert example.targets == ()
            else:
                assert [token.id for token in example.targets] == batch.labels[row].tolist()
                ignored = [token.label == "–" for token in example.targets]
                assert ignored == (batch.labels[row] == IGNORE).tolist(), name


def test_masks_leave_out_padding_and_in_a_decoder_the_future() -> None:
    task = TASKS["reverse"]
    batch = task.batch(0, task.training)
    row = int((batch.inputs[0] != 0).sum(-1).argmin())
    masks = masks_of(task, batch, row)
    real, written = (ids[row] != 0 for ids in batch.inputs)
    causal = torch.ones(len(written), len(written), dtype=torch.bool).tril()
    expected = {
        "encoder.0.self_attn": real.expand(len(real), -1),
        "decoder.0.self_attn": causal & written,
        "decoder.0.cross_attn": real.expand(len(written), -1),
    }
    for site, mask in masks.items():
        assert torch.equal(mask.expand_as(expected[site]), expected[site]), site
    assert masks.keys() == expected.keys()


def test_classes_and_what_the_vocabulary_does_not_know() -> None:
    task = task_of("reviews", TABLE)
    summary = summary_of(task, task.training)
    assert set(summary.classes) == {"0", "1"}
    assert sum(summary.classes.values()) == summary.examples
    known = "a zebra was good", "zebra and yak"
    assert unknown_words(replace(task, held_out_texts=known))[0] == ("zebra", 2)
    bytes_task = task_of("shakespeare", GIVEN["shakespeare"])
    assert unknown_words(replace(bytes_task, held_out_texts=("λ",))) == []


def test_bigrams_of_an_alternation_are_sure_and_of_noise_know_no_more_than_frequencies() -> None:
    ids = torch.tensor([0, 1] * 5_000)
    assert bigram_nats(ids, ids[:100], vocab_size=2) < 0.01
    ids = torch.tensor([0, 1] * 500)
    assert 5 < bigram_nats(ids, torch.tensor([0, 2, 3, 2]), vocab_size=4) < 20
    ids = torch.randint(8, (20_000,), generator=torch.Generator().manual_seed(0))
    assert bigram_nats(ids[:18_000], ids[18_000:], 8) == pytest.approx(math.log(8), abs=0.01)


def test_naive_bayes_uses_words_and_pairs() -> None:
    assert list(features("Not good, no")) == ["not", "good", "no", "not good", "good no"]
    bayes = NaiveBayes([("good food", 1), ("not good", 0), ("good day", 1), ("not nice", 0)])
    assert bayes.predict("a good day") == 1
    assert bayes.predict("not good") == 0
    assert bayes.accuracy([("good food", 1), ("not good", 1)]) == 0.5
