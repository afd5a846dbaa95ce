"""Small files of a folder: what is read of them, and words that may stand in a sentence."""

import json
import os
from pathlib import Path
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.file_text import visible
from models.loading.safe_files import (
    DEEPEST_JSON,
    LARGEST_TEXT,
    CheckpointError,
    parse_object,
    quoted,
    read_bytes,
    read_text,
    title,
)

pytestmark = pytest.mark.usefixtures("shapes_unchecked")
NO_TEXT = "\ud800\udfff\0\x07\x1b\x7f\x9b\u200e\u200f\u202a\u202c\u202e\u2066\u2068\u2069א"
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(-1e300, 1e300)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text() | st.just("[{," * 100), VALUES))
def test_sound_json_is_read_as_it_is(values: dict[str, object]) -> None:
    assert parse_object(json.dumps(values), "it", exact=True) == values


@given(st.lists(st.text(st.characters() | st.sampled_from(NO_TEXT))), st.booleans())
def test_what_is_no_text_in_json_is_seen(words: list[str], ascii_only: bool) -> None:
    """Half characters, control characters and lone marks; a second reading changes nothing."""
    pairs = {f"{at}{word}": [word] for at, word in enumerate(words)}
    values = parse_object(json.dumps(pairs, ensure_ascii=ascii_only), "it")
    for word in (*values, *(text for texts in values.values() for text in texts)):
        assert visible(word) == word
        assert not any(category(c) in ("Cc", "Cs") and c not in "\t\n\r" for c in word)
        assert not {"\u202d", "\u202e"} & {*word}


def test_what_is_text_stays_and_a_vocabulary_has_no_half_character() -> None:
    for text in ("a\tb\r\n", "🙂é\u200d", "“\u2068שלום\u2069”", "שלום!\u200f", "a\ufeffb"):
        assert parse_object(json.dumps({text: text}), "it") == {text: text}
    assert visible("a\u200f \u2068b\x1b\u2069") == "a<U+200F> <U+2068>b<U+001B><U+2069>"
    for half in (r"\ud800", r"\uDE00\ud83d"):
        with pytest.raises(CheckpointError, match="is not readable JSON"):
            parse_object(f'{{"a": "{half}"}}', "it", exact=True)


def nested(depth: int) -> str:
    return '{"a":' + "[" * (depth - 1) + "]" * (depth - 1) + "}"


NO_OBJECT = {
    "": "is not readable JSON.",
    '{"model_type": "gp': "is not readable JSON.",
    "{}{}": "is not readable JSON.",
    "{} // mine": "is not readable JSON.",
    "\ufeff{}": "is not readable JSON.",
    "[]": "must be a JSON object.",
    "null": "must be a JSON object.",
    nested(DEEPEST_JSON + 1): "is nested too deep.",
    '{"a":' * 10_000 + "1" + "}" * 10_000: "is nested too deep.",
    '{"a": [' + "[]," * 200_000 + "1]}": "holds too many values to be one.",
    '{"a": {"b": 1, "b": 1}}': "is not readable JSON: it names a key twice.",
    '{"a": NaN}': "it holds NaN, which is no number.",
    '{"a": -Infinity}': "it holds -Infinity, which is no number.",
    '{"a": 1e999}': "it holds a number that is too large.",
    '{"a": ' + "9" * 5_000 + "}": "it holds a number of too many digits.",
}


def test_what_is_no_object_is_refused_in_its_words() -> None:
    for text, words in NO_OBJECT.items():
        with pytest.raises(CheckpointError, match=f"^it .*{words}$"):
            parse_object(text, "it")
    assert parse_object(nested(DEEPEST_JSON), "it")


@given(st.text() | st.text("\n\x1b\u202e\ud800\U000f0000\0 ab", min_size=1, max_size=200))
def test_a_name_is_shown_on_one_line(name: str) -> None:
    assert quoted(name).isprintable()
    assert len(quoted(name)) <= 62
    if name.isprintable() and len(name) <= 60:
        assert quoted(name).strip('"') == name.strip('"')
        assert quoted(name).strip(), "an empty name is seen"


def test_what_a_name_looks_like(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert quoted("x" * 60) == "x" * 60
    assert quoted("x" * 61) == "x" * 59 + "…"
    assert quoted(["a\n"]) == "['a\\n']"
    assert [quoted(name) for name in ("", " a", "a b", "a.")] == ['""', '" a"', "a b", '"a."']
    monkeypatch.chdir(tmp_path)
    assert title(Path()) == tmp_path.name


def test_a_text_is_read_as_it_is_and_no_more_than_may_be(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * LARGEST_TEXT)
    assert len(read_bytes(tmp_path, "a")) == LARGEST_TEXT
    (tmp_path / "a").write_bytes(b"x" * (LARGEST_TEXT + 1))
    with pytest.raises(CheckpointError, match="too large"):
        read_bytes(tmp_path, "a")
    assert len(read_text(tmp_path, "a", LARGEST_TEXT + 1)) == LARGEST_TEXT + 1
    for raw in ("{}".encode("utf-16"), b'{"model_type": "\xe9"}'):
        (tmp_path / "a").write_bytes(raw)
        with pytest.raises(CheckpointError, match="is not text"):
            read_text(tmp_path, "a")
    (tmp_path / "a").write_bytes("é\r\n🙂".encode())
    assert read_text(tmp_path, "a") == "é\r\n🙂", "line ends are part of a vocabulary"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CheckpointError, match="has no readable pipe"):
        read_bytes(tmp_path, "pipe")


def test_links_are_followed_inside_the_folder_only(tmp_path: Path) -> None:
    """Its own blobs belong to a folder of snapshots; one of a like name is another folder."""
    home, out = tmp_path / "one", "is a link out of the folder"
    for folder in ("one/below", "one-more", "blobs", "snapshots/1f"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a").write_text(folder)
    links = {"in": "below/a", "round": "../one/below/a", "out": "../blobs/a", "twice": "out"}
    for name, target in (links | {"like": "../one-more/a"}).items():
        (home / name).symlink_to(target)
    assert read_text(home, "in") == read_text(home, "round") == "one/below"
    for name in ("out", "twice", "like"):
        with pytest.raises(CheckpointError, match=f"{name} in one {out}"):
            read_text(home, name)
    (tmp_path / "link").symlink_to(home)
    assert read_text(tmp_path / "link", "in") == "one/below", "the folder itself may be a link"
    snapshot = tmp_path / "snapshots" / "1f"
    (snapshot / "blob").symlink_to("../../blobs/a")
    (snapshot / "other").symlink_to("../../one-more/a")
    assert read_text(snapshot, "blob") == "blobs"
    with pytest.raises(CheckpointError, match=f"other in 1f {out}"):
        read_text(snapshot, "other")
