"""What the page Training a tokenizer shows: neighbours counted, and pieces with their scores."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from tokenizers import Tokenizer, models
from tokenizers.pre_tokenizers import (
    BertPreTokenizer,
    ByteLevel,
    Metaspace,
    PreTokenizer,
    Sequence,
    WhitespaceSplit,
)
from tokenizers.trainers import UnigramTrainer

from explorer.inference import trained_tokenizers
from tests.browser.truth.core import SHAKESPEARE
from tests.browser.truth.screen import Claim, grid, said
from tests.browser.visiting import Visitor

RULES = 50
READ = 100_000


def _words(splitter: PreTokenizer) -> list[str]:
    return [
        word
        for word, _ in splitter.pre_tokenize_str(
            trained_tokenizers.shipped_text(trained_tokenizers.TRANSLATION)
        )
    ]


def byte_pairs(visitor: Visitor) -> list[Claim]:
    """Neighbours in the text before anything is merged, counted byte by byte."""
    words = _words(ByteLevel(add_prefix_space=False))
    counted = Counter(pair for word in words for pair in pairwise(word))
    (length,) = said(visitor, r"The text is ([\d,]+) tokens long")
    made = [Claim("tokens of the text", length, sum(map(len, words)))]
    for first, second, _, times in grid(visitor, "token IDs")[:8]:
        pair = first.replace("␣", "Ġ"), second.replace("␣", "Ġ")
        made.append(Claim(f"{first} {second}", times, counted[pair]))
    assert [claim.true for claim in made[1:]] == [n for _, n in counted.most_common(8)]
    return made


def wordpiece(visitor: Visitor) -> list[Claim]:
    """Neighbours letter by letter, those inside a word marked, and the textbook's score."""
    words = [
        [letter if at == 0 else f"##{letter}" for at, letter in enumerate(word)]
        for word in _words(BertPreTokenizer())
    ]
    alone = Counter(letter for word in words for letter in word)
    counted = Counter(pair for word in words for pair in pairwise(word))
    scores = {pair: n / (alone[pair[0]] * alone[pair[1]]) for pair, n in counted.items()}
    (length,) = said(visitor, r"The text is ([\d,]+) tokens long")
    made = [Claim("tokens of the text", length, sum(alone.values()))]
    for first, second, _, times, score in grid(visitor, "textbook score")[:8]:
        made.append(Claim(f"{first} {second}", times, counted[first, second]))
        shown = score.replace("e-0", "e−")
        made.append(Claim(f"score of {first} {second}", shown, scores[first, second]))
    assert [claim.true for claim in made[1::2]] == [n for _, n in counted.most_common(8)]
    best = max(scores, key=lambda pair: scores[pair])
    first, second, times, score = said(
        visitor,
        r"which would merge (\S+) and (\S+), found together ([\d,]+) times \(score ([\d.]+)",
    )
    assert (first, second) == best
    return [
        *made,
        Claim("the textbook's pair", times, counted[best]),
        Claim("its score", score, scores[best]),
    ]


def pieces(size: int) -> dict[str, float]:
    """What the library itself learns of this many pieces, each with its score."""
    library = Tokenizer(models.Unigram())
    library.pre_tokenizer = Sequence([WhitespaceSplit(), Metaspace()])
    trainer = UnigramTrainer(
        vocab_size=size,
        special_tokens=["<unk>"],
        unk_token="<unk>",
        max_piece_length=16,
        show_progress=False,
    )
    library.train_from_iterator(
        [trained_tokenizers.shipped_text(trained_tokenizers.TRANSLATION)[:READ]], trainer
    )
    stored = json.loads(library.to_str())["model"]["vocab"]
    return dict(stored[1:])


def label_of(piece: str) -> str:
    return piece.replace("▁", "␣")


def ways(word: str, scores: dict[str, float]) -> Iterator[tuple[str, ...]]:
    """Every way to cut a word into pieces."""
    if not word:
        yield ()
    for end in range(1, len(word) + 1):
        if word[:end] in scores:
            yield from ((word[:end], *rest) for rest in ways(word[end:], scores))


def unigram(visitor: Visitor) -> list[Claim]:
    """The pieces and their chances; every cut of a word tried, the likeliest two."""
    count, total = said(visitor, r"(\d+) pieces, the unknown[\s\S]* sums to ([\d.]+)")
    shown = visitor.page.get_by_text(re.compile(r"at most \d+ pieces")).first.inner_text()
    size = re.findall(r"\d+", shown)[0]
    scores = pieces(int(size))
    made = [
        Claim("pieces", count, 1 + len(scores)),
        Claim("all chances", total, sum(map(math.exp, scores.values()))),
    ]
    table = grid(visitor, "e^score", label_of(next(iter(scores))))
    for (piece, score, chance), (name, true) in zip(table, scores.items(), strict=False):
        assert piece == label_of(name)
        made.append(Claim(f"score of {piece}", score, true))
        made.append(Claim(f"e^score of {piece}", chance, math.exp(true)))
    for word, _, first, _, second in grid(visitor, "likeliest"):
        cuts = [sum(scores[piece] for piece in way) for way in ways(f"▁{word}", scores)]
        for shown, true_sum in zip((first, second), sorted(cuts, reverse=True), strict=False):
            made.append(Claim(f"a cut of {word}", shown, true_sum))
    assert SHAKESPEARE.text.split()[-1] in {claim.what.rpartition(" ")[2] for claim in made}
    return made
