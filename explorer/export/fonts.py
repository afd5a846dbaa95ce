"""The fonts of a picture for print: letters of every common script, the same on every machine.

matplotlib ships only DejaVu, and a machine may have no other font. So the Noto fonts are installed
as packages, and each letter comes from the first font that has it. A letter that no font has is
written as its code point.
"""

import unicodedata
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.ft2font import FT2Font

COMMON = ("DejaVu Sans", "DejaVu Sans Mono")
"""matplotlib ships them, and most systems have them."""
VARIANTS = frozenset(map(chr, range(0xFE00, 0xFE10)))
"""Variation selectors: they choose another shape of the letter before them."""


def font_folders() -> tuple[Path, ...]:
    import manimgx_fonts
    import noto_cjk_sans_jp_regular

    packages = manimgx_fonts, noto_cjk_sans_jp_regular
    return tuple(Path(str(package.__file__)).parent for package in packages)


@cache
def fallback_families() -> tuple[str, ...]:
    """Register the fonts with matplotlib; the families to try after a text's own."""
    from matplotlib.font_manager import fontManager

    files = [
        file
        for folder in font_folders()
        for file in sorted(folder.iterdir())
        if file.suffix in (".ttf", ".otf") and "Italic" not in file.name
    ]
    before = len(fontManager.ttflist)
    for file in files:
        fontManager.addfont(file)
    added = [entry.name for entry in fontManager.ttflist[before:]]
    return tuple(dict.fromkeys([*COMMON, *added]))


def printable(text: str) -> str:
    """The text with `[U+13000]` for each letter that no font has."""
    return "".join(letter if _has_letter(letter) else f"[U+{ord(letter):04X}]" for letter in text)


def are_common(texts: Iterable[str]) -> bool:
    """Whether each of the common fonts has all letters of these texts."""
    letters = set("".join(texts))
    return all(_is_in(letter, (font,)) for font in _fonts(COMMON) for letter in letters)


def _has_letter(letter: str) -> bool:
    return _is_in(letter, _fonts(COMMON)) or _is_in(letter, _fonts(fallback_families()))


def _is_in(letter: str, fonts: tuple["FT2Font", ...]) -> bool:
    """Whether one of these fonts has the letter, or it is invisible."""
    is_unseen = letter == "\n" or unicodedata.category(letter) == "Cf" or letter in VARIANTS
    return is_unseen or any(font.get_char_index(ord(letter)) for font in fonts)


@cache
def _fonts(families: tuple[str, ...]) -> tuple["FT2Font", ...]:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return tuple(get_font(findfont(FontProperties(family=[name]))) for name in families)
