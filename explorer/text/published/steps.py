"""How the `tokenizers` library tokenizes a text, one step at a time.

The library does the splitting into the smallest units: it encodes with a model that merges
nothing. Only the merges are done here, and where they do not end in the library's own tokens,
the merges are left out.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain, groupby, pairwise
from typing import Any

import tokenizers
from tokenizers import models

from explorer.text.checked_text import TextError, checked
from explorer.text.plain_tokenizer import PlainTokenizer
from explorer.text.published.engine import TOO_MANY_STEPS, StepCollector, pieces_of, short_label
from explorer.text.published.library_engine import LibraryEngine
from explorer.text.published.published_tokenizer import PublishedTokenizer
from explorer.text.published.tokenizer_families import Roles
from explorer.text.token import ADD_SPECIAL_TOKENS, TYPED, AnyTokenizer, Piece, Token, TokenizerStep
from explorer.text.tokenizer import Tokenizer
from explorer.text.visible_text import readable

NO_STEPS = "Steps are shown of plain text; this sentence is read with special tokens."
MAX_STEPPED_CHARACTERS = 1_000
"""The longest text whose steps are shown: the number of pieces grows with its square."""


def steps(tokenizer: AnyTokenizer | PlainTokenizer, text: str) -> tuple[TokenizerStep, ...]:
    """Every step from the typed text to the tokens that the model reads.

    Each step has the whole text in pieces, and the last step is exactly what the tokenizer
    encodes. The steps of a published tokenizer come from its child process.
    """
    checked(text, MAX_STEPPED_CHARACTERS)
    if isinstance(tokenizer, (PublishedTokenizer, Tokenizer)) and tokenizer.reads_special:
        raise TextError(NO_STEPS)
    if isinstance(tokenizer, PublishedTokenizer):
        return tokenizer.steps(text)
    tokens = tokenizer.encode(text)
    if isinstance(tokenizer, (Tokenizer, PlainTokenizer)):
        engine = LibraryEngine(json.loads(tokenizer.library.to_str()), Roles(), frozenset())
        try:
            of_text = LibrarySteps(engine, text, 4 * MAX_STEPPED_CHARACTERS).all()[:-1]
        except TextError as error:
            raise TextError(f"The steps of this text cannot be shown: {error}") from None
        if isinstance(tokenizer, PlainTokenizer):
            return of_text
        whole = [Piece(t.label, t.start, t.end, t.id, t.special, t.special) for t in tokens]
        return (*of_text, TokenizerStep(ADD_SPECIAL_TOKENS, tuple(whole)))
    typed = [Piece(t.label, t.start, t.end, t.id, changed=True) for t in tokens]
    return (
        TokenizerStep(TYPED, (Piece(readable(text), 0, len(text)),)),
        TokenizerStep("Each word is a token ID.", tuple(typed)),
    )


@dataclass(frozen=True, eq=False)
class Unit:
    """A token before all merges are applied, and its characters of the text."""

    token: str
    start: int
    end: int


@dataclass(frozen=True)
class Merge:
    """One merge, applied wherever it was next, and the words after it.

    `new_units` has the (word, place) of every unit that it produced.
    """

    rank: int
    pair: tuple[str, str]
    words: list[list[Unit]]
    new_units: frozenset[tuple[int, int]]


Ranks = dict[tuple[str, str], int]


def merges(words: list[list[Unit]], ranks: Ranks) -> Iterator[Merge]:
    """Every merge until none applies. Words never merge with each other."""
    words = [list(word) for word in words]
    next_in_line = [_lowest(word, ranks) for word in words]
    new: set[tuple[int, int]] = set()
    while waiting := [(best, index) for index, best in enumerate(next_in_line) if best]:
        (rank, place), index = min(waiting, key=lambda item: (item[0][0], item[1]))
        word = words[index]
        left, right = word[place], word[place + 1]
        word[place : place + 2] = [Unit(left.token + right.token, left.start, right.end)]
        new = {(w, p - (w == index and p > place)) for w, p in new} | {(index, place)}
        next_in_line[index] = _lowest(word, ranks)
        if min((best[0] for best in next_in_line if best), default=None) != rank:
            yield Merge(rank, (left.token, right.token), [list(w) for w in words], frozenset(new))
            new = set()


def _lowest(word: list[Unit], ranks: Ranks) -> tuple[int, int] | None:
    """The lowest rank among neighbouring pairs and where its leftmost pair begins."""
    ranked_pairs = [
        (ranks[pair], place)
        for place, (left, right) in enumerate(pairwise(word))
        if (pair := (left.token, right.token)) in ranks
    ]
    return min(ranked_pairs, default=None)


MAX_MERGES = 300_000
MOST_UNITS = 1_500
"""Characters or bytes of a text: the cost of merging them grows with their square."""

OWN = "The library's own tokens."
UNKNOWN, NO_TOKENS = "\ufffd", 1_000_000_000
"""A letter that does not occur; the IDs of letters start here, above those of all tokens."""


Words = list[list[Unit]]


class LibrarySteps:
    """The steps of one text with a tokenizer of the library, merging at most `most_units` units."""

    def __init__(self, engine: LibraryEngine, text: str, most_units: int = MOST_UNITS) -> None:
        self._engine, self._library, self._text = engine, engine.library, text
        self._most_units, self._collector = most_units, StepCollector(text)

    def all(self) -> tuple[TokenizerStep, ...]:
        engine, add, text = self._engine, self._collector.add, self._text
        encoding = self._library.encode(text, add_special_tokens=False)
        words = self._words()
        if engine.found.keys().isdisjoint(encoding.ids) and engine.normalized(text) != text:
            normal = engine.normalized(text)
            what = "Lowercase" if normal == text.lower() else "Normalise"
            piece = self._collector.piece(engine.token_label(normal), 0, len(text))
            add(f"{what} the text.", [piece], [0])
        if len(words) > 1:
            unit = "characters" if engine.kind == "characters" else "words"
            spaces = ", each with the space before it" if engine.kind == "bytes" else ""
            action = f"Split into {unit}{spaces}; no token spans two of them."
            add(action, map(self._whole, words))
        model, plain = self._library.model, engine.tokens(engine.plain(text), text)
        if isinstance(model, models.BPE):
            self._merge(words, self._tokens(encoding), plain)
        elif isinstance(model, models.WordPiece):
            self._longest_first(words, encoding.word_ids, plain)
        elif isinstance(model, models.Unigram):
            self._collector.tokens("Segment each word in the likeliest way.", plain)
        else:
            unknown = [token.id for token in plain].count(model.token_to_id(model.unk_token))
            note = f" {unknown} of {len(plain)} are not in it: {model.unk_token}."
            action = f"Look each one up in the vocabulary.{note if unknown else ''}"
            self._collector.tokens(action, plain)
        return self._collector.finished(engine.encode(text))

    def _words(self) -> Words:
        """The library's own words, added tokens among them, as their characters."""
        whole = tokenizers.PreTokenizedString(self._text)
        if self._library.normalizer is not None:
            whole.normalize(self._library.normalizer.normalize)
        characters = set(self._text) | {c for part, _, _ in whole.get_splits() for c in part}
        if self._library.pre_tokenizer is not None:
            self._library.pre_tokenizer.pre_tokenize(whole)
        characters |= {c for part, _, _ in whole.get_splits() for c in part}
        numbered = enumerate(sorted(characters | {UNKNOWN}), NO_TOKENS)
        letters = {character: token_id for token_id, character in numbered}
        return self._units(models.BPE(vocab=letters, merges=[], unk_token=UNKNOWN))

    def _units(self, model: models.Model) -> Words:
        """The library's units of the text with another model, word by word."""
        own = self._library.model
        self._library.model = model
        try:
            encoding = self._library.encode(self._text, add_special_tokens=False)
        finally:
            self._library.model = own
        units = zip(encoding.word_ids, self._tokens(encoding), encoding.offsets, strict=True)
        return [
            [Unit(token, *span) for _, token, span in word]
            for _, word in groupby(units, key=lambda unit: unit[0])
        ]

    def _tokens(self, encoding: tokenizers.Encoding) -> list[str]:
        """The tokens of an encoding, an added token without the spaces that it includes."""
        tokens = zip(encoding.ids, encoding.tokens, strict=True)
        return [self._engine.found.get(token_id, token) for token_id, token in tokens]

    def _whole(self, word: list[Unit]) -> Piece:
        label = self._engine.token_label("".join(unit.token for unit in word))
        return self._collector.piece(label, min(u.start for u in word), max(u.end for u in word))

    def _merge(self, words: Words, tokens: list[str], plain: Sequence[Token]) -> None:
        units = self._units(self._without_merges(words))
        if sum(map(len, units)) > self._most_units:
            raise TextError(TOO_MANY_STEPS)
        applied = list(merges(units, self._ranks(units)))
        end = applied[-1].words if applied else units
        if [unit.token for word in end for unit in word] != tokens:
            self._collector.tokens(OWN, plain)
            return
        special = {token.id for token in plain if token.special}

        @cache
        def piece_of(unit: Unit) -> Piece:
            token_id = self._library.token_to_id(unit.token)
            label = self._engine.token_label(unit.token)
            if token_id is not None:
                label = self._engine.label(token_id)
            return self._collector.piece(label, unit.start, unit.end, token_id, token_id in special)

        self._collector.add(self._beginning(), [piece_of(unit) for word in units for unit in word])
        for merge in applied:
            left, right = (short_label(self._engine.token_label(token)) for token in merge.pair)
            firsts = [0, *accumulate(map(len, merge.words))]
            self._collector.add(
                f"Merge {left} and {right} (merge {merge.rank + 1:,}).",
                [piece_of(unit) for word in merge.words for unit in word],
                [firsts[word] + place for word, place in merge.new_units],
                merge.rank,
            )

    def _beginning(self) -> str:
        model: Any = self._library.model
        if self._engine.kind == "bytes":
            action = "Write each character as its bytes"
        else:
            action = "Write each word as its characters"
            if model.byte_fallback:
                action += ", or as bytes if it is not in the vocabulary"
        if model.ignore_merges:
            action += "; a word in the vocabulary stays whole"
        return f"{action}."

    def _without_merges(self, words: Words) -> models.BPE:
        """The same model without merges, and with the entries that these words can need."""
        model: Any = self._library.model
        before, behind = model.continuing_subword_prefix or "", model.end_of_word_suffix or ""
        letters = {unit.token for word in words for unit in word}
        needed = letters | {before + c for c in letters} | {c + behind for c in letters}
        needed |= {before + c + behind for c in letters}
        needed |= {"".join(unit.token for unit in word) for word in words}
        needed |= {f"<0x{byte:02X}>" for byte in range(256)} | {model.unk_token or ""}
        ids = {entry: model.token_to_id(entry) for entry in needed}
        options = {
            name: value
            for name in ("unk_token", "continuing_subword_prefix", "end_of_word_suffix")
            if (value := getattr(model, name)) is not None
        }
        return models.BPE(
            vocab={entry: token_id for entry, token_id in ids.items() if token_id is not None},
            merges=[],
            fuse_unk=model.fuse_unk,
            byte_fallback=model.byte_fallback,
            ignore_merges=model.ignore_merges,
            **options,
        )

    def _ranks(self, words: Words) -> Ranks:
        """The merges that can apply to these words, by their place in the file."""
        letters = {c for word in words for unit in word for c in unit.token}
        listed = self._engine.merge_list if len(self._engine.merge_list) <= MAX_MERGES else []
        ranks: Ranks = {}
        for rank, merge in enumerate(
            line for line in listed if not str(line[:8]).startswith("#version")
        ):
            if isinstance(merge, str) and not letters.issuperset(merge.replace(" ", "")):
                continue
            left, right = merge.split(" ") if isinstance(merge, str) else merge
            if letters.issuperset(left + right) and self._engine.renamed.isdisjoint(
                (left, right, left + right)
            ):
                ranks[left, right] = rank
        return ranks

    def _longest_first(
        self, words: Words, word_of: Sequence[int | None], plain: Sequence[Token]
    ) -> None:
        """WordPiece: first the words of the vocabulary, then every other word, piece by piece."""
        by_word = groupby(zip(word_of, pieces_of(plain), strict=True), key=lambda token: token[0])
        cut = [[piece for _, piece in pieces] for _, pieces in by_word]
        if len(cut) != len(words):
            self._collector.tokens(OWN, plain)
            return
        model: Any = self._library.model
        unknown = model.token_to_id(model.unk_token)
        typed = ["".join(unit.token for unit in word) for word in words]
        segments = [[self._whole(word)] for word in words]
        later = list[int]()
        for place, pieces in enumerate(cut):
            if len(pieces) > 1 or (pieces[0].id == unknown and typed[place] != model.unk_token):
                later.append(place)
            else:
                segments[place] = pieces
        if whole := [place for place in range(len(cut)) if place not in set(later)]:
            action = "Take every word that is in the vocabulary."
            self._collector.add(action, chain.from_iterable(segments), whole)
        for place in later:
            first = sum(map(len, segments[:place]))
            for count, piece in enumerate(cut[place], 1):
                before, rest = segments[place][-1], self._rest(words[place], piece)
                is_last = count == len(cut[place])
                segments[place] = [*cut[place][:count], *([] if is_last else [rest])]
                if piece.id == unknown and is_last and count == 1:
                    reason = "cannot be made of pieces of the vocabulary"
                    if len(words[place]) > (most := model.max_input_chars_per_word):
                        reason = f"has more than {most:,} characters"
                    action = f"“{before.label}” {reason}, so it becomes {piece.label}."
                else:
                    then = "" if is_last else f", then {rest.label}"
                    action = f"The longest piece that “{before.label}” begins with: "
                    action += f"{piece.label}{then}."
                self._collector.add(action, chain.from_iterable(segments), [first + count - 1])

    def _rest(self, word: list[Unit], piece: Piece) -> Piece:
        """What is left of a word after this piece."""
        model: Any = self._library.model
        end = self._whole(word).end
        label = self._engine.token_label(self._text[piece.end : end])
        return self._collector.piece(model.continuing_subword_prefix + label, piece.end, end)
