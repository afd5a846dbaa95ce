"""Tasks of a reader's own text or table: split cleanly, learnable, or refused in a sentence."""

import csv
import io
import random
import re
from contextlib import suppress
from functools import partial

import pytest
import tokenizers
import torch
from tokenizers import models, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing

from explorer.system import limits
from explorer.tasks import CUSTOM_TASKS, Task, bundled_text, stored_tokenizer, task_of
from explorer.tasks.labelled_sentences import SentenceTask, read_table, split_sentences
from explorer.tasks.language_modelling import LanguageTask
from explorer.tasks.own_data import read_pairs
from explorer.tasks.recipes import Recipe
from explorer.text import CLASSIFIER, SOURCE, TextError, character_tokenizer
from explorer.text.checked_text import decoded
from models import Transformer
from models.losses import IGNORE
from models.training import train

NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
MOODS = (("laughs", "glad"), ("weeps", "sad"))
ROWS = [f"{a} {b} {mood},{label}" for a in NUMBERS for b in NUMBERS for mood, label in MOODS]
SENTENCES = "text,label\n" + "\n".join(ROWS)
PAIRS = "source,target\n" + "\n".join(f"{a} {b},{b} {a}" for a in NUMBERS for b in NUMBERS)
TEXT = "".join(f"{a} and {b} make a line.\n" for a in NUMBERS for b in NUMBERS) * 3
OWN = {"sentences": SENTENCES, "pairs": PAIRS, "subwords": TEXT, "characters": TEXT}


def made(name: str, tokenizer: str | None = None) -> Task:
    return task_of(name, OWN[name], tokenizer)


def rows(inputs: torch.Tensor) -> set[tuple[int, ...]]:
    return {tuple(number for number in row if number) for row in inputs.tolist()}


def stranger() -> str:
    """The tokenizer.json of another model: WordPiece, with ends of its own."""
    made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=120, special_tokens=["[UNK]", "[CLS]"])
    made.train_from_iterator([SENTENCES, PAIRS, TEXT], trainer)
    made.post_processor = TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 1)])
    return str(made.to_str())


def test_all_tasks_of_a_text_read_batches_with_each_tokenizer(subtests: pytest.Subtests) -> None:
    """Also with that of another model, where a task takes any."""
    theirs = stranger()
    for name in OWN:
        tokenizers = CUSTOM_TASKS[name].tokenizers
        for tokenizer in (None, *tokenizers, *([theirs] if tokenizers else [])):
            with subtests.test(name=name, tokenizer=str(tokenizer)[:20]):
                task = made(name, tokenizer)
                assert task.name == name
                assert task.model.fault() is None
                assert task.training.fault() is None
                batch = task.batch(3, task.training)
                assert len(batch.labels) == task.training.batch_size
                model = Transformer(task.model)
                assert model(*batch.inputs).shape[:-1] == batch.labels.shape
                low, high = task.measured_between
                assert low <= task.measure(model).value < 2 * high
                assert len(task.tokenizer.ids(task.example)) <= task.model.max_len
                if tokenizer == theirs:
                    assert task.tokenizer.kind == "wordpiece"
                    read = task.tokenizer.decode(task.held_out_batch.inputs[0][0].tolist())
                    assert read
                    assert all(part in OWN[name] for part in read.split())
                    assert not rows(task.held_out_batch.inputs[0]) & rows(batch.inputs[0])


def test_every_task_of_a_text_has_one_that_comes_with_the_app_and_names_whose_it_is() -> None:
    licences = (bundled_text.FOLDER / "README.md").read_text("utf-8")
    packed = {kind.bundled.file: kind.bundled for kind in CUSTOM_TASKS.values()}
    assert {path.name for path in bundled_text.FOLDER.glob("*.gz")} == packed.keys()
    for file, bundled in packed.items():
        licence = bundled.attribution.rpartition(", ")[2].removeprefix("in the ").rstrip(".")
        assert f"`{file}`" in licences
        assert licence in licences
        assert len(bundled.text) <= limits.CORPUS_CHARACTERS.public
    assert (task_of("pairs").training_size, task_of("reviews").training_size) == (3_602, 2_183)
    assert task_of("reviews").classes == ("negative", "positive")


def test_a_task_is_the_same_again_from_what_a_run_keeps() -> None:
    """A worker in another process has the text and the tokenizer's file, and nothing else."""
    for name in ("sentences", "pairs", "subwords"):
        for tokenizer in (*CUSTOM_TASKS[name].tokenizers, stranger()):
            kept = stored_tokenizer(name, OWN[name], tokenizer)
            assert kept is not None
            first, again = made(name, tokenizer), made(name, kept)
            assert first is not again
            one, other = (task.batch(5, task.training) for task in (first, again))
            assert torch.equal(one.labels, other.labels)
            assert all(map(torch.equal, one.inputs, other.inputs))
    assert stored_tokenizer("pairs", PAIRS, None) is None


BODY, ENDING = "the cat sat on the mat.\n" * 450, "THE OWL SLEPT IN A TREE\n" * 50


@pytest.fixture(scope="module")
def characters() -> LanguageTask:
    task = task_of("characters", BODY + ENDING)
    assert isinstance(task, LanguageTask)
    return task


def test_the_last_tenth_is_held_out_and_windows_predict_the_next(characters: LanguageTask) -> None:
    """The end is written in capitals, and a training batch never holds any."""
    assert characters.example == "the cat sat on the mat. the cat"
    tokenizer = characters.tokenizer
    assert "OWL" not in tokenizer.decode(characters.training_ids.tolist())
    known = {tokenizer.id_of(letter) for letter in " \n"}
    assert set(characters.held_out_ids.tolist()) <= {tokenizer.unk_id} | known
    for step in range(30):
        batch = characters.batch(step, characters.training)
        assert not (batch.labels == tokenizer.id_of("<unk>")).any()
    read = batch.inputs[0]
    assert set(read[:, 0].tolist()) == {tokenizer.bos_id}
    assert torch.equal(read[:, 1:], batch.labels[:, :-1])
    assert read.shape == (characters.training.batch_size, characters.model.max_len)
    assert not torch.equal(batch.labels, characters.batch(1, characters.training).labels)


def test_measuring_reads_held_out_text_or_all_for_a_shipped_model(characters: LanguageTask) -> None:
    model = Transformer(characters.model)
    few = characters.measure(model).value
    assert few == pytest.approx(characters.measuring_everything().measure(model).value, rel=0.2)
    assert 1 < few < 10
    twin = Recipe("twin", twin_of="characters", positions="learned")
    for recipe in (Recipe("characters"), twin, Recipe("same", twin_of="characters")):
        task = recipe.task(BODY + ENDING)
        assert isinstance(task, LanguageTask)
        assert task.measured_windows == len(task.held_out_windows), recipe.name
        assert (task.model.positions == "learned") == bool(recipe.positions)


def test_shakespeare_learns_its_vocabulary_from_the_training_part_only() -> None:
    text = "".join(f"line {i} of the play, my lord.\n" for i in range(800))
    task = task_of("shakespeare", text + "zyzzyva zyzzyva\n" * 160)
    assert isinstance(task, LanguageTask)
    labels = [task.tokenizer.label(number) for number in range(task.tokenizer.vocab_size)]
    assert any("lord" in label for label in labels)
    assert not any("zyz" in label for label in labels)


def test_nothing_held_out_is_trained_on() -> None:
    for name in ("sentences", "pairs"):
        for tokenizer in CUSTOM_TASKS[name].tokenizers:
            task = made(name, tokenizer)
            held_out = rows(task.held_out_batch.inputs[0])
            assert len(held_out) >= 18, name
            if isinstance(task, SentenceTask):
                assert not held_out & rows(task.training_rows.inputs[0])
                continue
            for step in range(30):
                assert not held_out & rows(task.batch(step, task.training).inputs[0])


def test_a_sentence_that_comes_twice_is_on_one_side() -> None:
    labelled, _, note = read_table(SENTENCES + "\n" + "\n".join(ROWS[:40]))
    training, held_out = split_sentences(labelled)
    assert note == "Left out of the table: 40 repeated rows."
    assert len(labelled) == len(ROWS)
    assert not {text for text, _ in training} & {text for text, _ in held_out}
    assert split_sentences(list(reversed(labelled))) == (training, held_out)
    # In capitals alone they differ for the reader, and not for a model of small letters.
    table = "\n".join(["text,label", *(f"{row}\n{row.title()}" for row in ROWS)])
    task = task_of("sentences", table.replace("Glad", "glad").replace("Sad", "sad"))
    assert isinstance(task, SentenceTask)
    assert not rows(task.held_out_batch.inputs[0]) & rows(task.training_rows.inputs[0])
    assert len(task.held_out_texts) == len(task.held_out_batch.labels)


def test_classes_have_their_shares_and_batches_hide_words_but_never_the_first_token() -> None:
    task = made("sentences")
    assert isinstance(task, SentenceTask)
    assert (task.classes, task.model.n_classes) == (("glad", "sad"), 2)
    assert task.held_out_batch.labels.bincount().tolist() == [20, 20]
    assert task.training_rows.labels.bincount().tolist() == [80, 80]
    read = task.batch(0, task.training).inputs[0]
    assert set(read[:, 0].tolist()) == {task.tokenizer.cls_id}
    assert 0.3 < (read[:, 1:] == 0).float().mean() < 0.7


def test_pairs_teach_the_target_shifted_by_one_and_a_source_is_on_one_side() -> None:
    task = made("pairs")
    batch = task.batch(0, task.training)
    source, read = batch.inputs
    ends, begins = task.tokenizer.eos_id, task.tokenizer.bos_id
    assert set(read[:, 0].tolist()) == {begins}
    for row, labels, given in zip(source, batch.labels, read, strict=True):
        length = int((labels != IGNORE).sum())
        assert labels[length - 1] == row[int((row != 0).sum()) - 1] == ends
        assert torch.equal(given[1:length], labels[: length - 1])
    pairs = [f"{a} {b}" for a in NUMBERS for b in NUMBERS]
    table = "source,target\n" + "\n".join(f"{both},first\n{both},second" for both in pairs)
    task = task_of("pairs", table)
    sources, targets = task.held_out_batch.inputs
    assert len(rows(sources)) * 2 == len(targets) == 40
    assert task.held_out == "40 pairs, all those of 20 sources"


def test_both_learn() -> None:
    for name, steps, least in (("sentences", 100, 0.95), ("pairs", 150, 0.8)):
        model = Transformer((task := made(name)).model)
        how = task.training.replace(steps=steps, batch_size=32)
        for _ in train(model, partial(task.batch, training=how), how):
            pass
        assert task.measure(model).value > least, name


def test_a_table_is_read_as_spreadsheets_write_it() -> None:
    wanted = [("a, b", "1"), ("c", "2")]
    for table in (
        'text,label\n"a, b",1\nc,2\n',
        '\ufeffText , Label\r\n"a, b",1\r\n\r\nc,2\r\n',
        "label;text\n1;a, b\n2;c\n2;c\n",
        "sep=;\r\ntext;label\r\na, b;1\r\nc;2\r\n",
        '\n"sep=|"\ntext|label\na, b|1\nc|2',
        "\ttext\tlabel\n0\ta, b\t1\n1\tc\t2\n",
        "id\ttext\tlabel\n7\ta, b\t1\n8\t c \t2\n,\n".replace("\n,\n", "\n"),
    ):
        assert [*read_pairs(table, ("text", "label"))[0]] == wanted, table
    (pair,) = read_pairs("text,label\na\x1b,b\0\n", ("text", "label"))[0]
    assert pair == ("a<U+001B>", "b<U+0000>")
    assert decoded("\ufeffzwölf".encode()) == "zwölf"
    for encoding in ("latin-1", "utf-16"):
        with pytest.raises(TextError, match=r"Line [12] of the file is not UTF-8 text; save it as"):
            decoded("eins\nzwölf".encode(encoding))


def test_what_no_task_can_be_made_of_is_refused_with_a_way_out(subtests: pytest.Subtests) -> None:
    two = "text,label\n" + "hello,1\nbye,0\n" * 60
    bare = character_tokenizer("xyz", CLASSIFIER).to_json()
    many = "text,label\n" + "\n".join(f"t{i},{i}" for i in range(60))
    alike = "source,target\n" + "\n".join(f"{'a' * n}b,ab" for n in range(1, 60))
    only_b = character_tokenizer("b", SOURCE).to_json()
    for name, text, tokenizer, sentence in [
        ("characters", "", None, "0 characters; give at least"),
        ("characters", "ab\ud800" * 1000, None, "unpaired surrogate"),
        ("shakespeare", "a" * 1000, None, "give at least 20,000"),
        ("subwords", "short", None, "5 characters; give at least 5,000"),
        ("reviews", "", None, "names the columns text and label"),
        ("reviews", "a,b\n1,2", None, "names the columns text and label"),
        ("reviews", many, None, "60 different values"),
        ("reviews", "text,label\na\ud800,1", None, "unpaired surrogate"),
        ("sentences", "", None, "The table is empty: give it a first line that names the columns"),
        ("sentences", "\n \n", None, "The table is empty"),
        ("sentences", "text,label\n", None, "0 different values"),
        ("sentences", "text,label\n" + "hello,1\n" * 60, None, "All sentences have the label '1'"),
        ("sentences", two, None, "2 different sentences; give at least 40"),
        ("sentences", "text,label\na,1\nb\n", None, "Line 3 has no label: fill it in, or leave"),
        ("sentences", "\n\ntext,label\na,1\n\nb\n", None, "Line 6 has no label"),
        ("sentences", 'text,label\na,1\n"b,2\nc,1\n', None, "A quote in line 3 is never closed"),
        ("sentences", 'text,label\na,1\n"b" c,2\n', None, "in line 3 .* closes before the text"),
        ("sentences", "text,text,label\na,b,1\n", None, "names the column text twice"),
        ("sentences", "sep=;\n", None, "names the columns text and label"),
        ("sentences", "text,label\na, b,1\n", None, "Line 2 has more columns than the first one"),
        ("sentences", 'text,label\n"' + "a" * 200_000 + '",1', None, "cannot be read; save it"),
        ("pairs", "", None, "names the columns source and target"),
        ("pairs", "text,label\na,b", None, "names the columns source and target"),
        ("pairs", "source,target\na,b\n,c\n", None, "Line 3 has no source: fill it in, or leave"),
        ("pairs", "source,target\na,b\n\nb,\n", None, "Line 4 has no target"),
        ("pairs", "source,target\n" + "a,b\n" * 99, None, "1 different sources; give at least 40"),
        ("pairs", PAIRS + "\n" + "a " * 200 + ",b", None, "200 tokens on one side; at most 128"),
        ("pairs", alike, only_b, "knows"),
        ("sentences", SENTENCES, "{}", "tokenizer file cannot be used: it has no model"),
        ("sentences", SENTENCES, "no file", "tokenizer file is not readable JSON"),
        ("sentences", SENTENCES, bare, "knows 1% of the tokens of this text: choose another one"),
        ("pairs", PAIRS, bare, "knows 2% of the tokens"),
        ("characters", TEXT, "words", "has its own tokenizer: leave the other one out"),
    ]:
        with subtests.test(name=name, text=text[:30]), pytest.raises(TextError, match=sentence):
            task_of(name, text, tokenizer)


def test_every_table_is_read_as_written_and_its_rows_are_counted() -> None:
    """Random tables, in each dialect of a spreadsheet; with a character less, read or refused."""
    rng = random.Random(0)
    for _ in range(300):
        cells = ["".join(rng.choices('ab ,;\t"\n', k=rng.randint(1, 4))) + "." for _ in range(4)]
        rows = [rng.choice([("", ""), (rng.choice(cells), rng.choice("12"))]) for _ in range(9)]
        separator, end = rng.choice(",;\t"), rng.choice(("\n", "\r\n"))
        file = io.StringIO(newline="")
        file.write(rng.choice(("", "\ufeff", f"sep={separator}{end}", end * 2)))
        writer = csv.writer(file, delimiter=separator, lineterminator=end)
        writer.writerows([("text", "label"), *rows])
        table, filled = file.getvalue(), [(cell.strip(), label) for cell, label in rows if cell]
        pairs, note = read_pairs(table, ("text", "label"))
        assert set(pairs) == set(filled)
        assert len(pairs) + sum(map(int, re.findall(r"\d+", note))) == len(rows), note
        at = rng.randrange(len(table))
        with suppress(TextError):
            read_pairs(table[:at] + table[at + 1 :], ("text", "label"))


def test_what_is_left_out_or_contradicts_is_said() -> None:
    row = f"{ROWS[0]}\n"
    task = task_of("sentences", f"{SENTENCES}\n\n{row}one one laughs,sad\nodd one,odd")
    assert isinstance(task, SentenceTask)
    assert task.held_out == "41 sentences: 20 labelled glad, 0 labelled odd, 21 labelled sad"
    assert task.training_rows.labels.bincount().tolist() == [79, 1, 80]
    notes = "the last counts: 1, the first in the lines 203 and 204. Left out of the table: 1 empty"
    assert notes in task.note
    assert task.within(8).note.endswith(f"{notes} row, 1 repeated row.")
    capitals = "".join(f"{row.title()}\n".replace("Glad", "glad") for row in ROWS[::2])
    note = task_of("sentences", f"{SENTENCES}\n{capitals}").note
    assert "like a sentence that is trained on: " in note


def test_what_is_hidden_or_cut_is_said() -> None:
    assert made("sentences").note.endswith("is replaced by padding.")
    long = SENTENCES + "\n" + "one " * 200 + ",sad"
    assert task_of("sentences", long).note.endswith("Cut at 96 tokens: 1 of 201.")
