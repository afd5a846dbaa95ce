"""Where models of others come from: named folders, uploads, typed paths; and bad ones of each."""

import io
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.catalog import ModelError, folders, typed_model_path, uploads
from explorer.system import limits
from tests.tiny import has_run_for_long

WEIGHTS = {"config.json": b"{}", "model.safetensors": b"12345678"}


@pytest.fixture(autouse=True)
def free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(typed_model_path.ALLOW_PATHS, "1")


def folder_of(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "config.json").write_text("{}")
    return path


def upload(
    root: Path,
    files: Mapping[str, bytes] = WEIGHTS,
    owner: str = "me",
    network: str = "",
    check: Callable[[Path], str | None] = lambda _: None,
    largest: int | None = None,
) -> uploads.KeptUpload:
    streams = {name: io.BytesIO(data) for name, data in files.items()}
    sizes = {name: len(data) for name, data in files.items()}
    whose = uploads.Uploader(network or owner, owner)
    return uploads.keep_upload(streams, sizes, root, whose, check, largest)


def keep(root: Path, files: Mapping[str, bytes] = WEIGHTS, *whose: Any) -> Path:
    return upload(root, files, *whose).folder


def kept_in(root: Path) -> list[Path]:
    """What an address may lead to."""
    return sorted(root.glob(f"{folders.UPLOAD}*"))


def inside(folder: str) -> dict[str, bytes]:
    return {folder + name: data for name, data in WEIGHTS.items()}


def test_paths_are_open_to_this_machine_and_to_others_only_if_the_start_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = folder_of(tmp_path / "here")
    assert typed_model_path.find_model(str(here)) == here
    for said in ["0", "yes"]:
        monkeypatch.setenv(typed_model_path.ALLOW_PATHS, said)
        for is_local in (True, False):
            with pytest.raises(ModelError, match=r"^Paths and hub IDs are not allowed; .*\.$"):
                typed_model_path.find_model(str(here), is_local)
    monkeypatch.delenv(typed_model_path.ALLOW_PATHS)
    assert typed_model_path.find_model(str(here), is_local=True) == here
    with pytest.raises(ModelError, match="EXPLORER_FREE_PATH=1 to allow them"):
        typed_model_path.find_model(str(here))
    monkeypatch.setenv(limits.PUBLIC, "1")
    for said in ["", "1"]:
        monkeypatch.setenv(typed_model_path.ALLOW_PATHS, said)
        assert not typed_model_path.paths_allowed(is_local=True), "nobody on a public server"


def test_a_place_is_a_model_or_holds_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ["a", "b/snapshots/1", "snapshots/1"]:
        made = folder_of(tmp_path / place.replace("/", "-") / place)
        assert folders.checkpoints_in(tmp_path / place.replace("/", "-")) == [made]
        assert folders.checkpoints_in(made) == [made]
    many = tmp_path / "many"
    made_here = [folder_of(many / name) for name in ("b", "a", "c")]
    folder_of(many / "far" / "snapshots" / "1")
    (many / "file").write_text("no folder")
    assert folders.checkpoints_in(many) == sorted(made_here), "what lies nearest"
    looped = tmp_path / "loop"
    looped.symlink_to(looped)
    for nowhere in [Path("\0"), tmp_path / ("x" * 300), looped]:
        assert folders.checkpoints_in(nowhere) == []
    monkeypatch.setattr(folders, "MOST_FOLDERS", 2)
    assert len(folders.checkpoints_in(many)) == 2


def test_many_places_are_named_each_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = folder_of(tmp_path / "x" / "one"), folder_of(tmp_path / "y" / "two")
    named = [str(tmp_path / "y"), "", str(one), str(tmp_path / "x"), "/nowhere/at/all", " "]
    monkeypatch.setenv("EXPLORER_MODELS", os.pathsep.join(named))
    assert folders.named_folders() == [two, one]
    assert folders.places_without_models() == ["all"]
    monkeypatch.setattr(folders, "MOST_FOLDERS", 1)
    assert folders.named_folders() == [two]
    monkeypatch.delenv("EXPLORER_MODELS")
    assert (folders.named_folders(), folders.places_without_models()) == ([], [])


def test_a_folder_of_the_hubs_cache_is_called_by_its_id_and_leads_nowhere_else() -> None:
    for folder, name in {
        "/cache/models--someone--tiny-bert/snapshots/0123abc": "someone/tiny-bert",
        "/cache/models--..--..--victim/snapshots/abc": "abc",
        "/cache/bert": "bert",
        "/": "model",
    }.items():
        assert folders.model_name(Path(folder)) == name


def test_an_upload_is_kept_once_by_what_is_in_it(tmp_path: Path) -> None:
    left = tmp_path / f"{uploads.RECEIVING}old"
    left.mkdir()
    os.utime(left, (0, 0))
    has_run_for_long(tmp_path)
    kept = keep(tmp_path)
    assert {file.name: file.read_bytes() for file in kept.iterdir()} == WEIGHTS
    mine = keep(tmp_path, {f"my-bert/{name}": data for name, data in WEIGHTS.items()})
    assert (kept.name, mine.name) == ("model", "my-bert")
    assert keep(tmp_path, {f"x/my-bert/{name}": data for name, data in WEIGHTS.items()}) == mine
    assert keep(tmp_path, {**WEIGHTS, "config.json": b"[]"}) != kept
    moved = {"merges.txt": b"b", "vocab.txt": b"cd"}, {"merges.txt": b"bc", "vocab.txt": b"d"}
    assert keep(tmp_path, {**WEIGHTS, **moved[0]}) != keep(tmp_path, {**WEIGHTS, **moved[1]})
    assert uploads.find_upload(folders.model_name(mine), tmp_path) == mine
    assert not list(tmp_path.glob(f"{uploads.RECEIVING}*")), "also what a killed process left"
    assert keep(tmp_path, WEIGHTS, "somebody").parent != kept.parent, "nobody learns what is there"
    assert (kept.parent / uploads.OWNER_MARK).read_text() == "me me"
    (tmp_path / f"{folders.UPLOAD}gone").symlink_to("nowhere")
    listed = uploads.list_uploads(tmp_path)
    assert (0, uploads.NOBODY) in [(each.bytes, each.whose) for each in listed]
    key = mine.parent.name
    for name in [
        *("", "upload-", "upload-../x", f"upload-{'0' * 24}", f"{key}/..", "x" * 9999),
        *(key, f"-{key}", f"other-{key}", f"..-{key}", f"my-bert-upload-{'0' * 24}", f"*-{key}"),
        f"{uploads.OWNER_MARK}-{key}",
    ]:
        assert uploads.find_upload(name, tmp_path) is None
    before = folder_of(tmp_path / f"upload-{'1' * 24}")
    assert uploads.find_upload(before.name, tmp_path) == before, "a link of before"
    assert folders.model_name(before) == before.name


SETTINGS = ("generation_config", "tokenizer", "tokenizer_config", "special_tokens_map", "run")
TEXTS = ("vocab.txt", "merges.txt", "chat_template.jinja")
CLONED = WEIGHTS | dict.fromkeys([*TEXTS, *(f"{name}.json" for name in SETTINGS)], b"{}")
BESIDE_A_MODEL = [
    *".DS_Store .gitattributes LICENSE README.md events.out.tfevents.1 figure.png".split(),
    *"flax_model.msgpack modeling.py modules.json optimizer.pt pytorch_model.bin".split(),
    *"rust_model.ot state.json state.safetensors tf_model.h5 training_args.bin vocab.pkl".split(),
    *"vocab.py make_vocab.sh vocabulary .git/HEAD .git/config.json 1_Pooling/config.json".split(),
    *"2_Dense/config.json 2_Dense/model.safetensors onnx/model.onnx openvino/a/config.json".split(),
    *(".git/objects/ab/cdef", "Icon\r"),
]


def test_of_a_real_folder_only_what_opens_the_model_is_kept(tmp_path: Path) -> None:
    others = dict.fromkeys(BESIDE_A_MODEL, b"\x80\x02c")
    for around in ("my-bert", ".hidden/my-bert", "models--me--my-bert/snapshots/0123abc"):
        files = {f"{around}/{name}": data for name, data in {**CLONED, **others}.items()}
        kept = upload(tmp_path, files)
        assert kept.folder.name == "my-bert"
        assert {file.name: file.read_bytes() for file in kept.folder.iterdir()} == CLONED
        assert sorted(kept.skipped) == sorted(BESIDE_A_MODEL)
    assert uploads.skipped_files(kept.skipped) == (
        "Skipped 29 files that a model does not need: .DS_Store, .gitattributes and 27 others."
    )
    assert uploads.skipped_files(["a"]) == "Skipped 1 file that a model does not need: a."
    assert uploads.skipped_files(["a", "b", "c"]).endswith("need: a, b and 1 other.")
    assert uploads.skipped_files([]) == ""
    assert "\r" not in uploads.skipped_files(["Icon\r"])


def test_the_weights_that_are_read_are_those_that_are_kept(tmp_path: Path) -> None:
    other = {"config.json": b"{}", "adapter.safetensors": b"1"}
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    index = json.dumps({"weight_map": {"a": names[0], "b": names[1], "c": names[0]}}).encode()
    shards = {"model.safetensors.index.json": index, **dict.fromkeys(names, b"2")}
    whole = {"config.json": b"{}", "consolidated.safetensors": b"22"}
    for files, needed in [
        ({**WEIGHTS, **other}, WEIGHTS),
        ({**whole, **other, **shards}, {"config.json": b"{}", **shards}),
        ({**WEIGHTS, **shards}, {**WEIGHTS, "model.safetensors.index.json": index}),
        ({"old/config.json": b"", **other}, other),
        ({"0_Transformer/config.json": b"", "1_Pooling/config.json": b"", **other}, other),
    ]:
        kept = keep(tmp_path, {f"bert/{name}": data for name, data in files.items()})
        assert {file.name: file.read_bytes() for file in kept.iterdir()} == needed
    outside = b'{"weight_map": {"a": "../config.json", "b": "code.py"}}'
    for damaged in (b"\xff", b'{"weight_map": {"a": [1]}}', b"[" * 5_000_000, outside):
        needed = {"config.json": b"{}", "model.safetensors.index.json": damaged}
        kept = keep(tmp_path, {**whole, **shards, "code.py": b"", **needed})
        read = {file.name: file.read_bytes() for file in kept.iterdir()}
        assert read == needed, "opening it says why"
    only = {f"st/0_Transformer/{name}": data for name, data in WEIGHTS.items()}
    assert keep(tmp_path, {**only, "st/1_Pooling/config.json": b""}).name == "0_Transformer"


PARTS = st.sampled_from(
    ["..", ".", "", "a", "b", ".git", "a\u202eb", "\0", "\n", "x" * 121, *WEIGHTS, "vocab.txt"]
)
NAMES = st.sampled_from(["a/config.json", "a/model.safetensors"]) | st.tuples(
    st.sampled_from("/\\"), st.lists(PARTS, min_size=1, max_size=4)
).map(lambda drawn: drawn[0].join(drawn[1]))


@given(names=st.lists(NAMES, max_size=6))
def test_any_names_are_those_of_one_folder_or_refused_in_a_sentence(
    names: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    around, sentence = tmp_path_factory.mktemp("names"), ""
    try:
        kept = keep(around / "up", dict.fromkeys(names, b"1"))
    except ModelError as refusal:
        sentence = str(refusal)
    files = [each for each in around.rglob("*") if each.is_file() and each.name[0] != "."]
    if sentence:
        assert re.fullmatch(r"[^\n\0\u202e]{9,290}\.", sentence)
        assert files == []
    else:
        assert kept.parent.parent == around / "up"
        assert kept.name.isprintable()
        assert files
        assert all(each.parent == kept for each in files)


def test_what_is_no_model_and_too_much_are_refused_in_a_sentence(tmp_path: Path) -> None:
    pickled, here = b"\x80\x02c", {"bert/config.json": b"{}"}
    spare = {f"{n}.spm": b"" for n in range(40)}
    two = {"x/a.gguf": b"GGUF", "x/b.gguf": b"GGUF"}
    names = ("../../config.json", "a\\..", "/etc/passwd")
    unnamed = [{**WEIGHTS, name: b""} for name in names]
    pairs = (("a/", "b/"), ("a/", "a\\"), ("x/a/", "x/b/"))
    twice = [inside(first) | inside(second) for first, second in pairs]
    gone = [{name: b""} for name in ("README.md", "a/.git/config.json", "a/b")]
    for files, why in (
        ({}, r"^There is no file .*\.$"),
        *((each, r"^There is no config\.json and no GGUF file in ") for each in gone),
        *((each, r"^This upload holds a file without a valid name") for each in unnamed),
        *((each, r"^This upload holds config\.json twice") for each in twice),
        (WEIGHTS | spare, r"^A model has at most 40 files, not 42\.$"),
        (two, r"holds 2 GGUF files; open one of them, such as a\.gguf"),
        (here | {"bert/pytorch_model.bin": pickled}, "^bert holds pickled weights, which can run"),
        (here | {"bert/onnx/model.onnx": pickled}, r"^bert holds its weights as model\.onnx"),
        (here | {"bert/2_Dense/model.safetensors": b""}, r"^bert has no model\.safetensors"),
    ):
        with pytest.raises(ModelError, match=why):
            keep(tmp_path, files)
    files = {**WEIGHTS, "vocab.txt": b"y" * 1_999_999, "README.md": b"z" * 5_000_000}
    with pytest.raises(ModelError, match=r"^An upload may be at most 1 MB; this one is 2 MB\.$"):
        upload(tmp_path, files, largest=1_000_000)
    assert [path.name for path in tmp_path.iterdir()] == [".ran.json"]
    assert upload(tmp_path, files, largest=2_000_009).skipped == ("README.md",)


def test_an_upload_is_called_as_its_folder_was_by_a_name_that_can_be_shown(tmp_path: Path) -> None:
    for around, called in {
        "C:\\windows\\": "windows",
        "a\u202eb/": "a_b",
        "...x../": "x",
        ". ./": "model",
        "x" * 500 + "/": "x" * 60,
    }.items():
        assert keep(tmp_path, inside(around)).name == called


def test_no_upload_is_larger_than_two_gigabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "available_memory", lambda: 10**12)
    assert uploads.largest_upload(is_local=True) == 2_000_000_000
    monkeypatch.setenv("EXPLORER_LIMIT_UPLOAD_BYTES", "5000000")
    assert uploads.largest_upload(is_local=False) == 5_000_000


def allow(monkeypatch: pytest.MonkeyPatch, of_reader: int, of_all: int) -> None:
    """Room on disk, in uploads of the size that each counts at least."""
    for name, most in {"UPLOADS_KEPT_OF_READER": of_reader, "UPLOADS_KEPT": of_all}.items():
        monkeypatch.setenv(f"EXPLORER_LIMIT_{name}", str(most * uploads.LEAST))


def put(root: Path, letter: str, owner: str = "me", times: int = 9, network: str = "") -> Path:
    """An upload that is used longer ago the earlier its letter is."""
    files = {"config.json": b"", "model.safetensors": letter.encode() * times}
    made = keep(root, files, owner, network).parent
    os.utime(made, (ord(letter), ord(letter)))
    return made


def test_a_readers_oldest_one_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, of_reader=2, of_all=9)
    first, second = put(tmp_path, "a"), put(tmp_path, "b")
    theirs = put(tmp_path, "A", "somebody")
    name = folders.model_name(first / "model")
    assert uploads.find_upload(name, tmp_path) == first / "model", "used again, it is new again"
    third = put(tmp_path, "c")
    assert kept_in(tmp_path) == sorted([first, third, theirs])
    assert not second.exists()
    large = put(tmp_path, "d", times=2 * uploads.LEAST - 10_000)
    assert kept_in(tmp_path) == sorted([large, theirs]), "the newest stays even alone"
    with pytest.raises(ModelError, match=r"^An upload may be at most 8 MB; this one is 9 MB\.$"):
        put(tmp_path, "e", times=9_000_000)
    assert kept_in(tmp_path) == sorted([large, theirs])


def test_where_all_are_too_many_the_reader_with_the_most_loses_the_oldest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, of_reader=4, of_all=4)
    oldest = put(tmp_path, "a", "few")
    greedy = [put(tmp_path, letter, "many") for letter in "bcd"]
    new = put(tmp_path, "e", "new")
    assert kept_in(tmp_path) == sorted([oldest, *greedy[1:], new])
    for letter in "fghijk":  # who comes again and again only loses their own
        put(tmp_path, letter, "new")
    assert oldest in kept_in(tmp_path)
    before = tmp_path / f"{folders.UPLOAD}{'1' * 24}"
    before.mkdir()
    os.utime(before, (1, 1))
    for letter in "lmn":
        put(tmp_path, letter, "new")
    assert len(kept_in(tmp_path)) == 4, "what is nobody's counts too"


def test_many_keys_push_out_their_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, of_reader=4, of_all=4)
    mine = put(tmp_path, "a", "me", 2 * uploads.LEAST - 10_000)
    for letter in "bcdefgh":
        put(tmp_path, letter, f"key of {letter}", network="theirs")
        put(tmp_path, letter.upper(), f"key of {letter}", network="theirs")
    assert len(kept_in(tmp_path)) == 3
    assert mine in kept_in(tmp_path)


def test_what_does_not_open_leaves_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, of_reader=1, of_all=1)
    good = put(tmp_path, "a", "honest")
    junk = {"config.json": b"{", "model.safetensors": b"junk" * 1_000}
    for reader in ("honest", "stranger"):
        for _ in range(3):
            with pytest.raises(ModelError, match=r"^It is torn\.$"):
                upload(tmp_path, junk, reader, check=lambda _: "It is torn.")
    assert [each.name for each in tmp_path.iterdir() if each.is_dir()] == [good.name]


def test_only_the_servers_user_reads_an_upload(tmp_path: Path) -> None:
    root = tmp_path / "uploads"
    before = os.umask(0)
    try:
        kept = keep(root)
    finally:
        os.umask(before)
    modes = {path: path.stat().st_mode & 0o777 for path in (root, *root.rglob("*"))}
    assert modes == {path: 0o700 if path.is_dir() else 0o600 for path in modes}
    assert kept.is_dir()


def test_who_uploads_the_same_twice_at_once_has_it_once(tmp_path: Path) -> None:
    """The other is there when this one is whole."""

    kept = upload(tmp_path, check=lambda _: str(keep(tmp_path))[:0])
    assert kept_in(tmp_path) == [kept.folder.parent]


def test_a_typed_path_is_a_folder_or_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = folder_of(tmp_path / "bert")
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in [str(made), f"  {tmp_path} ", "~/bert", str(made / "config.json")]:
        assert typed_model_path.find_model(path) == made
    folder_of(tmp_path / "a")
    with pytest.raises(ModelError, match=r"^There are 2 models in this folder; .* such as a\.$"):
        typed_model_path.find_model(str(tmp_path))
    for place in ["", "  ", "\0", "/nowhere/at/all", "~nobody-at-all/x", "a b c", "x" * 5_000]:
        with pytest.raises(ModelError, match=r"^There is no model folder of that name, .*\.$"):
            typed_model_path.find_model(place)


def test_a_gguf_file_is_a_model_alone_and_in_a_folder(tmp_path: Path) -> None:
    for name, title in {
        "My Model.Q4_1.gguf": "My Model.Q4_1",
        "my-model/weights.gguf": "my-model",
        "models--me--tiny/snapshots/0123abc/weights.gguf": "tiny",
    }.items():
        kept = upload(tmp_path, {name: b"GGUF", f"{Path(name).parent}/README.md".lstrip("./"): b""})
        assert kept.folder.name == title
        assert [file.name for file in kept.folder.iterdir()] == [Path(name).name]
        assert kept.skipped == ("README.md",)
        assert uploads.find_upload(folders.model_name(kept.folder), tmp_path) == kept.folder
    beside = {**WEIGHTS, "model.Q8_0.gguf": b"GGUF"}
    assert upload(tmp_path, beside).skipped == ("model.Q8_0.gguf",)
    described = dict.fromkeys(("config.json", "chat_template.jinja", "x.Q8_0.gguf"), b"{}")
    assert upload(tmp_path, described).skipped == ()


def test_a_path_leads_to_a_gguf_or_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file := tmp_path / "tiny" / "tiny.Q4_1.gguf").parent.mkdir()
    file.write_bytes(b"GGUF")
    assert typed_model_path.find_model(str(file)) == file
    assert typed_model_path.find_model(str(file.parent)) == file.parent
    assert folders.checkpoints_in(tmp_path) == [file.parent]
    assert folders.model_name(file) == "tiny.Q4_1"
    monkeypatch.setenv("EXPLORER_MODELS", f"{file}{os.pathsep}{tmp_path}")
    assert folders.named_folders() == [file, file.parent]
    (other := file.with_name("tiny.Q8_0.gguf")).write_bytes(b"GGUF")
    for place in (file.parent, tmp_path):
        assert folders.checkpoints_in(place) == [file, other], "a folder of models"
    with pytest.raises(ModelError, match=r"^There are 2 models in this folder; name one of them"):
        typed_model_path.find_model(str(file.parent))
    (file.parent / "config.json").write_text("{}")
    assert folders.checkpoints_in(tmp_path) == [file.parent]


def test_the_unused_goes_without_uploads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "uploads"
    uploads.sweep(root)
    assert not root.exists()
    monkeypatch.setenv("EXPLORER_LIMIT_UPLOADS_DAYS", "7")
    old, used, new = (keep(root, inside(f"{name}/")) for name in ("old", "used", "new"))
    last_week = time.time() - 8 * 24 * 3600
    for folder in (old, used):
        os.utime(folder.parent, (last_week, last_week))
    assert uploads.find_upload(f"{used.name}-{used.parent.name}", root) == used
    has_run_for_long(root)
    uploads.sweep(root)
    assert [folder.exists() for folder in (old, used, new)] == [False, True, True]
