"""The toy grammar: real French, a known alignment, and pairs that are held out."""

from explorer.tasks import TASKS, french
from explorer.tasks.translation import TranslationTask, is_held_out


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


def test_other_sentences_are_outside_the_grammar() -> None:
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


def test_the_alignment_crosses_and_the_article_depends_on_its_noun() -> None:
    translation = french.translate("the black cat does not see a dog".split())
    assert translation is not None
    aligned = dict(zip(translation.french, translation.alignment, strict=True))
    assert aligned == {
        "le": (0, 2), "chat": (2,), "noir": (1,), "ne": (3, 4), "voit": (5,), "pas": (3, 4),
        "de": (6,), "chien": (7,),
    }  # fmt: skip


def test_every_word_is_trained_and_nine_pairs_never_are() -> None:
    pairs = [(adjective, noun) for adjective in french.ADJECTIVES for noun in french.NOUNS]
    assert sum(map(french.is_held_out, pairs)) == 9
    task = TASKS["translation"]
    assert isinstance(task, TranslationTask)
    source, target = task.training_rows
    words = french.english_words() | french.french_words()
    read = {*source.unique().tolist(), *target.unique().tolist()}
    assert read >= set(map(task.tokenizer.id_of, words))
    texts = [task.tokenizer.decode(row.tolist()) for row in source]
    assert not any(map(is_held_out, texts))
    assert len(set(texts)) == len(texts)
    held_out_texts = [task.tokenizer.decode(row.tolist()) for row in task.held_out_batch.inputs[0]]
    assert all(map(is_held_out, held_out_texts))


def test_the_pattern_stops_where_the_model_leaves_the_rules() -> None:
    task = TASKS["translation"]
    source = task.tokenizer.encode("the cat sleeps")
    for written, rows in (("le chat dort", [1, 1, 1, 0]), ("le chien dort", [1, 1, 0, 0])):
        target = [task.tokenizer.token(i) for i in task.tokenizer.target_ids(written)[:-1]]
        pattern = task.pattern(source, target)
        assert pattern is not None
        assert pattern.sum(-1).tolist() == rows
    assert task.pattern(task.tokenizer.encode("cat the"), target) is None
