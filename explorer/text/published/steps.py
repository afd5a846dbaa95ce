"""How the `tokenizers` library takes a text apart, one step at a time.

The splitting and the smallest units are the library's own: it encodes with a model that
merges nothing. Only the merges are done here, and where their end is not what the
library makes of the text they are left out.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Protocol

import tokenizers
from tokenizers import models

from explorer.text.checked_text import TextError
from explorer.text.labels import readable
from explorer.text.merging import Merge, Ranks, Unit, merges
from explorer.text.published.child_wire import (
    TOO_MANY_STEPS,
    Row,
    StepCollector,
    rows_of,
    short_label,
)
from explorer.text.token import TYPED

MAX_MERGES = 300_000
MOST_UNITS = 1_500
"""Characters or bytes of a stranger's text: merging them costs their square."""

OWN = "The library's own tokens."
UNKNOWN, NO_TOKENS = "\ufffd", 1_000_000_000
"""A letter that does not occur; letters get IDs from here on, above all tokens."""


Words = list[list[Unit]]


class SteppedEngine(Protocol):
    """What the steps ask of the engine whose tokens they end in."""

    def written(self, token: str) -> str: ...

    def label(self, token_id: int) -> str: ...

    def spoken(self, text: str) -> dict[str, Any]: ...

    def encode(self, text: str, pair: str | None) -> dict[str, Any]: ...


class LibrarySteps:
    """The steps of one tokenizer of the library; `merge_list` is as in its file."""

    def __init__(
        self,
        engine: SteppedEngine,
        library: tokenizers.Tokenizer,
        kind: str,
        merge_list: Sequence[Any] | None,
        renamed: Iterable[str],
        most_units: int = MOST_UNITS,
    ) -> None:
        self._engine, self._library, self._kind = engine, library, kind
        self._merge_list = [] if merge_list is None or len(merge_list) > MAX_MERGES else merge_list
        self._renamed, self._most_units = frozenset(renamed), most_units
        added = library.get_added_tokens_decoder()
        self._added = {token_id: token.content for token_id, token in added.items()}

    def of(self, text: str) -> dict[str, Any]:
        """Every step from the typed text to what the model reads, for the wire."""
        found = StepCollector(text)
        found.add(TYPED, [(readable(text), 0, len(text), None, False)])
        plain = self._library.encode(text, add_special_tokens=False)
        words = self._words(text)
        if self._library.normalizer is not None and self._added.keys().isdisjoint(plain.ids):
            normal = self._library.normalizer.normalize_str(text)
            if normal != text:
                row = (self._engine.written(normal), 0, len(text), None, False)
                what = "Lowercase" if normal == text.lower() else "Normalise"
                found.add(f"{what} the text.", [row], [0])
        if len(words) > 1:
            unit = "characters" if self._kind == "characters" else "words"
            spaces = ", each with the space before it" if self._kind == "bytes" else ""
            found.add(
                f"Split into {unit}{spaces}; no token spans two of them.",
                [self._whole(word) for word in words],
            )
        model = self._library.model
        spoken = self._engine.spoken(text)
        if isinstance(model, models.BPE):
            self._merge(found, text, words, self._tokens(plain), spoken)
        elif isinstance(model, models.WordPiece):
            self._longest_first(found, text, words, plain.word_ids, spoken)
        elif isinstance(model, models.Unigram):
            found.tokens("Segment each word in the likeliest way.", spoken)
        else:
            unknown = spoken["ids"].count(model.token_to_id(model.unk_token))
            note = f" {unknown} of {len(spoken['ids'])} are not in it: {model.unk_token}."
            found.tokens(f"Look each one up in the vocabulary.{note if unknown else ''}", spoken)
        return found.answer(self._engine.encode(text, None))

    def _words(self, text: str) -> Words:
        """The library's own words, added tokens among them, as their characters."""
        whole = tokenizers.PreTokenizedString(text)
        if self._library.normalizer is not None:
            whole.normalize(self._library.normalizer.normalize)
        seen = set(text) | {c for part, _, _ in whole.get_splits() for c in part}
        if self._library.pre_tokenizer is not None:
            self._library.pre_tokenizer.pre_tokenize(whole)
        seen |= {c for part, _, _ in whole.get_splits() for c in part}
        letters = {c: token_id for token_id, c in enumerate(sorted(seen | {UNKNOWN}), NO_TOKENS)}
        return self._units(text, models.BPE(vocab=letters, merges=[], unk_token=UNKNOWN))

    def _units(self, text: str, model: models.Model) -> Words:
        """What the library makes of the text with another model, word by word."""
        own = self._library.model
        self._library.model = model
        try:
            made = self._library.encode(text, add_special_tokens=False)
        finally:
            self._library.model = own
        found = zip(made.word_ids, self._tokens(made), made.offsets, strict=True)
        return [
            [Unit(token, *span) for _, token, span in word]
            for _, word in groupby(found, key=lambda unit: unit[0])
        ]

    def _tokens(self, made: tokenizers.Encoding) -> list[str]:
        """What was made; an added token without the spaces that it took with it."""
        found = zip(made.ids, made.tokens, strict=True)
        return [self._added.get(token_id, token) for token_id, token in found]

    def _whole(self, word: list[Unit]) -> Row:
        label = self._engine.written("".join(unit.token for unit in word))
        return label, min(u.start for u in word), max(u.end for u in word), None, False

    def _unit(self, unit: Unit) -> Row:
        token_id = self._library.token_to_id(unit.token)
        shown = (
            self._engine.written(unit.token) if token_id is None else self._engine.label(token_id)
        )
        return shown, unit.start, unit.end, token_id, False

    def _merge(
        self,
        found: StepCollector,
        text: str,
        words: Words,
        tokens: list[str],
        spoken: dict[str, Any],
    ) -> None:
        units = self._units(text, self._without_merges(words))
        if sum(map(len, units)) > self._most_units:
            raise TextError(TOO_MANY_STEPS)
        taken: list[Merge] = list(merges(units, self._ranks(units)))
        end = taken[-1].words if taken else units
        if [unit.token for word in end for unit in word] != tokens:
            found.tokens(OWN, spoken)
            return
        special = {row[3] for row in rows_of(spoken) if row[4]}

        def shown(unit: Unit) -> Row:
            label, start, end, token_id, _ = self._unit(unit)
            return label, start, end, token_id, token_id in special

        found.units(self._beginning(), units, shown)
        for merge in taken:
            left, right = (short_label(self._engine.written(token)) for token in merge.pair)
            action = f"Merge {left} and {right} (merge {merge.rank + 1:,})."
            found.units(action, merge.words, shown, merge.made, merge.rank)

    def _beginning(self) -> str:
        model: Any = self._library.model
        if self._kind == "bytes":
            action = "Write each character as its bytes"
        else:
            action = "Write each word as its characters"
            if model.byte_fallback:
                action += ", or as bytes if it is not in the vocabulary"
        if model.ignore_merges:
            action += "; a word in the vocabulary stays whole"
        return f"{action}."

    def _without_merges(self, words: Words) -> models.BPE:
        """The same model without its merges, and of its vocabulary what these words can need."""
        model: Any = self._library.model
        before, behind = model.continuing_subword_prefix or "", model.end_of_word_suffix or ""
        letters = {unit.token for word in words for unit in word}
        needed = letters | {before + c for c in letters} | {c + behind for c in letters}
        needed |= {before + c + behind for c in letters}
        needed |= {"".join(unit.token for unit in word) for word in words}
        needed |= {f"<0x{byte:02X}>" for byte in range(256)} | {model.unk_token or ""}
        known = {entry: model.token_to_id(entry) for entry in needed}
        options = {
            name: value
            for name in ("unk_token", "continuing_subword_prefix", "end_of_word_suffix")
            if (value := getattr(model, name)) is not None
        }
        return models.BPE(
            vocab={entry: token_id for entry, token_id in known.items() if token_id is not None},
            merges=[],
            fuse_unk=model.fuse_unk,
            byte_fallback=model.byte_fallback,
            ignore_merges=model.ignore_merges,
            **options,
        )

    def _ranks(self, words: Words) -> Ranks:
        """The merges that these words can meet, by their place in the file."""
        letters = {c for word in words for unit in word for c in unit.token}
        merge_list = [
            pair_text
            for pair_text in self._merge_list
            if not str(pair_text[:8]).startswith("#version")
        ]
        ranks: Ranks = {}
        for rank, pair_text in enumerate(merge_list):
            if isinstance(pair_text, str) and not letters.issuperset(pair_text.replace(" ", "")):
                continue
            left, right = pair_text.split(" ") if isinstance(pair_text, str) else pair_text
            if letters.issuperset(left) and letters.issuperset(right):
                ranks[left, right] = rank
        if self._renamed:
            return {pair: rank for pair, rank in ranks.items() if not self._is_renamed(*pair)}
        return ranks

    def _is_renamed(self, left: str, right: str) -> bool:
        return not self._renamed.isdisjoint((left, right, left + right))

    def _longest_first(
        self,
        found: StepCollector,
        text: str,
        words: Words,
        word_of: Sequence[int | None],
        spoken: dict[str, Any],
    ) -> None:
        """WordPiece: first the words of the vocabulary, then every other word, piece by piece."""
        made = groupby(zip(word_of, rows_of(spoken), strict=True), key=lambda token: token[0])
        cut = [[row for _, row in rows] for _, rows in made]
        if len(cut) != len(words):
            found.tokens(OWN, spoken)
            return
        model: Any = self._library.model
        unknown = model.token_to_id(model.unk_token)
        typed = ["".join(unit.token for unit in word) for word in words]
        shown = [[self._whole(word)] for word in words]
        later = list[int]()
        for place, rows in enumerate(cut):
            if len(rows) > 1 or (rows[0][3] == unknown and typed[place] != model.unk_token):
                later.append(place)
            else:
                shown[place] = rows
        whole = [place for place in range(len(cut)) if place not in set(later)]
        if whole:
            action = "Take every word that is in the vocabulary."
            found.add(action, [row for rows in shown for row in rows], whole)
        for place in later:
            first = sum(map(len, shown[:place]))
            for taken, row in enumerate(cut[place], 1):
                before, rest = shown[place][-1], self._rest(text, words[place], row)
                is_last = taken == len(cut[place])
                shown[place] = [*cut[place][:taken], *([] if is_last else [rest])]
                if row[3] == unknown and is_last and taken == 1:
                    action = self._why_unknown(words[place], before[0], row[0])
                else:
                    action = f"The longest piece that “{short_label(before[0])}” begins with: "
                    action += row[0] if is_last else f"{row[0]}, then {short_label(rest[0])}"
                    action += "."
                at = first + taken - 1
                found.add(action, [row for rows in shown for row in rows], [at])

    def _rest(self, text: str, word: list[Unit], row: Row) -> Row:
        """What is left of a word after this piece."""
        model: Any = self._library.model
        _, _, end, _, _ = self._whole(word)
        left = self._engine.written(text[row[2] : end])
        return model.continuing_subword_prefix + left, row[2], end, None, False

    def _why_unknown(self, word: list[Unit], label: str, unknown: str) -> str:
        model: Any = self._library.model
        most = model.max_input_chars_per_word
        reason = (
            f"has more than {most:,} characters"
            if len(word) > most
            else "cannot be made of pieces of the vocabulary"
        )
        return f"“{short_label(label)}” {reason}, so it becomes {unknown}."
