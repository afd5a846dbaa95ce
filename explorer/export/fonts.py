"""The fonts of a picture for print: letters of every common script, the same on every machine.

matplotlib brings DejaVu alone, and a machine may have no other font. So the Noto fonts come as
packages, and each letter is taken from the first font that has it. A letter that none has is
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
"""What matplotlib brings, and most systems have."""
VARIANTS = frozenset(map(chr, range(0xFE00, 0xFE10)))
"""They choose another shape of the letter before them."""


def font_folders() -> tuple[Path, ...]:
    """Where the fonts that come as packages lie."""
    import manimgx_fonts
    import noto_cjk_sans_jp_regular

    packages = manimgx_fonts, noto_cjk_sans_jp_regular
    return tuple(Path(str(package.__file__)).parent for package in packages)


@cache
def fallback_families() -> tuple[str, ...]:
    """The families to name after a text's own, known to matplotlib from now on."""
    from matplotlib.font_manager import fontManager

    files = [
        file
        for folder in font_folders()
        for file in sorted(folder.iterdir())
        if file.suffix in (".ttf", ".otf") and "Italic" not in file.name
    ]
    known = len(fontManager.ttflist)
    for file in files:
        fontManager.addfont(file)
    added = [entry.name for entry in fontManager.ttflist[known:]]
    return tuple(dict.fromkeys([*COMMON, *added]))


def printable(text: str) -> str:
    """The text with `[U+13000]` for each letter that no font has."""
    return "".join(each if _has_letter(each) else f"[U+{ord(each):04X}]" for each in text)


def are_common(texts: Iterable[str]) -> bool:
    """Whether each of the fonts that most systems have draws all of it."""
    letters = set("".join(texts))
    return all(_is_in(each, (font,)) for font in _fonts(COMMON) for each in letters)


def _has_letter(letter: str) -> bool:
    return _is_in(letter, _fonts(COMMON)) or _is_in(letter, _fonts(fallback_families()))


def _is_in(letter: str, fonts: tuple["FT2Font", ...]) -> bool:
    """Whether one of them has it, or nothing is drawn for it in any case."""
    is_unseen = letter == "\n" or unicodedata.category(letter) == "Cf" or letter in VARIANTS
    return is_unseen or any(font.get_char_index(ord(letter)) for font in fonts)


@cache
def _fonts(families: tuple[str, ...]) -> tuple["FT2Font", ...]:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return tuple(get_font(findfont(FontProperties(family=[name]))) for name in families)
