"""A hostile folder does no more than print its one sentence, whatever its files hold.

Every damage of the tables is done to a good folder, which another process then opens. What is
wrong in any other place is drawn.
"""

import json
import math
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor

from models import load_checkpoint
from models.loading.safe_files import CheckpointError, quoted
from models.loading.weight_files import open_weights
from tests.models.loading import gguf_damage
from tests.models.loading.hostile import (
    CONFIG,
    INDEX,
    PAGE,
    POINTER,
    UGLY,
    WEIGHTS,
    Cases,
    Damage,
    Header,
    packed,
    shard,
    sharded,
    unpacked,
)
from tests.models.loading.mutations import changed_file
from tests.models.loading.opening import Opener, check_refused, not_refused_as_told, refused

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

RUN, TOKENIZER, GENERATION = "run.json", "tokenizer.json", "generation_config.json"
WTE, NORM, BIAS = "transformer.wte.weight", "transformer.ln_f.weight", "transformer.ln_f.bias"
CUT, MIB = "is damaged or cut short.", 1 << 20


def all_of(*damages: Damage) -> Damage:
    return lambda folder: [damage(folder) for damage in damages]


def data(name: str, content: bytes | str) -> Damage:
    raw = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(raw)


def config(**changes: Any) -> Damage:
    """Other values in the config that is there."""

    def damage(folder: Path) -> None:
        path = folder / CONFIG
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return damage


def without(*names: str) -> Damage:
    def damage(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return damage


def renamed(old: str, new: str) -> Damage:
    return lambda folder: (folder / old).rename(folder / new)


def link_to(target: str) -> Damage:
    return lambda place: place.symlink_to(target)


def replaced(name: str, by: Damage) -> Damage:
    """Something else in the place of the file, which lies beside the folder if it was there."""

    def damage(folder: Path) -> None:
        with suppress(FileNotFoundError):
            (folder / name).rename(folder / f"../outside-{name}")
        by(folder / name)

    return damage


def moved_out(name: str) -> Damage:
    return replaced(name, link_to(f"../outside-{name}"))


def tensors(change: Callable[[dict[str, Tensor]], object]) -> Damage:
    """Other tensors, in a sound file."""

    def damage(folder: Path) -> None:
        values = load_file(folder / WEIGHTS)
        change(values)
        save_file({n: v.contiguous() for n, v in values.items()}, folder / WEIGHTS)

    return damage


def with_tensor(name: str, tensor: Tensor) -> Damage:
    return tensors(lambda values: values.update({name: tensor}))


def lying(change: Callable[[Header], object], more: bytes = b"") -> Damage:
    """Another header over the same numbers."""

    def damage(folder: Path) -> None:
        header, numbers = unpacked((folder / WEIGHTS).read_bytes())
        change(header)
        (folder / WEIGHTS).write_bytes(packed(json.dumps(header).encode(), numbers + more))

    return damage


def header(content: str, length: int | None = None) -> Damage:
    """A file that is a header and nothing else."""
    return data(WEIGHTS, packed(content.encode(), length=length))


JSON_FILES = (CONFIG, RUN, GENERATION, INDEX)
TOO_MUCH: dict[str, tuple[str, str]] = {
    "a list": ("[]", "one must be a JSON object."),
    "deep objects": ('{"a":' * 100_000, "one is nested too deep."),
    "lists only opened": ("[" * 1_000_000, "one holds too many values to be one."),
    "five megabytes": (" " * (5 * MIB), "one is too large to be one."),
    "half a million words": ('{"a": ["' + '",' * 510_000 + "1]}", "one holds too many values to"),
    "a pointer": (POINTER, "one is a git-lfs pointer in place of the file; fetch the file with"),
}
"""Texts of which little is to be read, each in one file; `test_files.py` has what is no JSON."""
JSON: Cases = {
    what: (all_of(*([sharded()] if name == INDEX else []), data(name, content)), f"{name} in {of}")
    for name, (what, (content, of)) in zip(cycle(JSON_FILES), TOO_MUCH.items(), strict=False)
}

TERABYTE = {"n_embd": 10**6, "n_head": 500, "vocab_size": 4_000, "n_positions": 10**6}
CODE = {"model_type": "mine", "auto_map": {"AutoModel": "modeling.Mine"}}
PUBLISHED: Cases = {
    "of more layers": (config(n_layer=3), "which its config asks for"),
    "a terabyte": (config(**TERABYTE), "has the shape"),
    "of a quantizer": (config(quantization_config={"quant_method": "gptq"}), "quantization_config"),
    "with code of its own": (config(**CODE), "code that a folder brings along is never run"),
}

HUGE = {"d_model": 10**6, "vocab_size": 4_000, "d_ff": 10**6, "n_heads": 1, "positions": "none"}
OURS: Cases = {
    "a huge config": (config(**HUGE), "which is not what the config says."),
    "many layers": (config(n_layers=200), "asks for 200 layers, but there are only 37"),
    "100,000 windows": (config(windows=[0] * 100_000), "windows must name one per layer"),
    "30,000 unknown keys": (config(**dict.fromkeys(map(str, range(30_000)))), "unknown keys"),
    "tokenizer is no text": (data(TOKENIZER, b"\xff"), "tokenizer.json in one is not text."),
    "a weight is missing": (tensors(lambda it: it.pop("head.bias")), "one lacks head.bias, which"),
}

FILES: Cases = {"nothing": (without(CONFIG, WEIGHTS), "one has no readable config.json.")}
for name in (CONFIG, WEIGHTS):
    none, out = f"one has no readable {name}.", f"{name} in one is a link out of the folder"
    FILES |= {
        f"{name} is a folder": (replaced(name, Path.mkdir), none),
        f"{name} is a pipe": (replaced(name, os.mkfifo), none),
        f"{name} is a link to itself": (replaced(name, link_to(name)), none),
        f"{name} is a link to nothing": (replaced(name, link_to("none")), none),
        f"{name} is a device": (replaced(name, link_to("/dev/zero")), out),
        f"{name} lies elsewhere": (moved_out(name), out),
    }
FILES |= {
    "run is a link": (replaced(RUN, link_to("/etc/hosts")), f"{RUN} in one is a link"),
    "tokenizer is a pipe": (replaced(TOKENIZER, os.mkfifo), "one has no readable tokenizer.json."),
}


def one(**changes: Any) -> str:
    """A header of one tensor of no numbers."""
    return json.dumps({"a": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} | changes})


def many(count: int, prefix: str = "") -> str:
    """A header of so many tensors without a number."""
    return json.dumps({f"{prefix}{i}": json.loads(one())["a"] for i in range(count)})


def of_many(count: int, content: Callable[[int], str]) -> Damage:
    """An index that names so many files more, each a header and nothing else."""

    def change(folder: Path, places: dict[str, Any]) -> None:
        for i in range(count):
            (folder / f"{i}.safetensors").write_bytes(packed(content(i).encode()))
            places[f"{i}-0"] = f"{i}.safetensors"

    return sharded(change)


def mapped(file: Any, tensor: str = NORM) -> Damage:
    """An index that puts one tensor elsewhere."""
    return sharded(lambda _, places: places.update({tensor: file}))


def twice(folder: Path, places: dict[str, Any]) -> None:
    (folder / shard(2)).write_bytes((folder / shard(1)).read_bytes())


COUNTLESS = {f"{i}": f"{i}.x" for i in range(99_999)}
FILE_NAMES: dict[str, list[Any]] = {
    "which is no safetensors file": [INDEX],
    "names a file outside the folder": ["../out.safetensors", "/etc/passwd", "..\\a.safetensors"],
    "names a file by no file name": [[shard(1)], UGLY.replace("\ud800", ""), "a\0.safetensors"],
    "is not readable JSON": [UGLY],
    "which the index puts there": [shard(1)],
}
FIRST = f"of its weights, first {shard(2)}."
INDEXED: Cases = {
    f"a file called {quoted(file)}": (mapped(file), words)
    for words, files in FILE_NAMES.items()
    for file in files
} | {
    "a missing file": (all_of(sharded(), without(shard(2))), f"lacks 1 of the 2 files {FIRST}"),
    "a file that is elsewhere": (all_of(sharded(), moved_out(shard(1))), "is a link out"),
    "a tensor in two files": (sharded(twice), "so which one counts is not known"),
    "100,000 files": (sharded(lambda _, at: at.update(COUNTLESS)), "names more than 1,000 files"),
    "1,000 empty files": (of_many(990, lambda i: "{}"), "lacks"),
    "20 files of long headers": (of_many(20, lambda i: "{}" + " " * 4 * MIB), "is too long to be"),
    "3 files of many tensors": (of_many(3, lambda i: many(5_000, f"{i}-")), "holds more than 10"),
}


def zipped(folder: Path) -> None:
    with zipfile.ZipFile(folder / WEIGHTS, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({}))


def crowded(folder: Path) -> None:
    for i in range(2_000):
        (folder / f"{i}.txt").touch()


ONLY = {
    "pickled weights, which can run code": [
        *("pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "model.pt", "model.pth"),
        "model.ckpt",
    ],
    "a format that is not read here": ["tf_model.h5", "flax_model.msgpack", "model.onnx"],
    "has adapter_model.safetensors without its adapter_config.json": ["adapter_model.safetensors"],
}
NO_SAFETENSORS: Cases = {
    f"only {name}": (renamed(WEIGHTS, name), words)
    for words, names in ONLY.items()
    for name in names
} | {
    "no weights": (without(WEIGHTS), "one has no model.safetensors."),
    "two files, no index": (all_of(sharded(), without(INDEX)), f"safetensors files and no {INDEX}"),
    "a pickle by another name": (data(WEIGHTS, pickle.dumps({"a": 1})), "is pickled"),
    "an archive of pickles by another name": (zipped, "is pickled, which can run code"),
    "a pointer": (data(WEIGHTS, POINTER), "a git-lfs pointer in place of the file"),
    "a page": (data(WEIGHTS, PAGE), "is a web page in place of the file; fetch it again."),
    "empty": (data(WEIGHTS, b""), "is empty; fetch or save it again."),
    "many other files": (all_of(without(WEIGHTS), crowded), "one has no model.safetensors."),
}


TOO_LARGE = torch.full((13, 12), 1e300, dtype=torch.float64)
NUMBERS: Cases = {
    "header of 2^63 bytes": (header("{}", 1 << 63), CUT),
    "header too long": (header(one() + " " * 5 * MIB), "is too long to be one"),
    "190,000 lists": (header('{"a":[' + "[]," * 190_000 + "1]}"), CUT),
    "190,000 names": (header(json.dumps(dict.fromkeys(map(str, range(190_000)), 1))), CUT),
    "one name of 4 MB": (header('{"🙂' + "a" * 4_000_000 + '":1}'), CUT),
    "half a character": (header(one().replace('"a"', '"\\udc00"')), CUT),
    "10,000 tensors": (header(many(10_000)), "which its config asks for."),
    "10,001 tensors": (header(many(10_001)), "holds more than 10,000 tensors."),
    "an axis too long": (header(one(shape=[0, 1 << 41])), "has a shape that no weight has"),
    "a shape that overflows": (header(one(shape=[1 << 32, 1 << 32, 4])), CUT),
    "half a byte long": (header(one(dtype="F4", shape=[1])), CUT),
    "over another": (lying(lambda entries: entries.update({NORM: entries[BIAS]})), CUT),
    "before bytes of nobody": (lying(lambda entries: None, b"1234"), CUT),
    "another shape": (with_tensor(NORM, torch.zeros(12, 1, 1, 1)), "has the shape (12, 1, 1, 1)"),
    "what 32 bits cannot hold": (with_tensor(WTE, TOO_LARGE), "or too large numbers"),
}
"""`test_weights.py` has tensors of other types, and NaN."""


@pytest.mark.parametrize("cases", [JSON, PUBLISHED, FILES, INDEXED, NO_SAFETENSORS, NUMBERS])
def test_damage_to_a_published_folder_is_refused(cases: Cases, gpt2: Path, opener: Opener) -> None:
    assert not_refused_as_told(opener, gpt2, cases) == []


def test_each_damage_to_our_folder_is_refused_in_its_sentence(ours: Path, opener: Opener) -> None:
    assert not_refused_as_told(opener, ours, OURS) == []


def test_the_longest_sinusoid_table_costs_little_memory(ours: Path, opener: Opener) -> None:
    config(max_len=500_000)(ours)
    assert opener.ask(ours).error is None


def test_an_unreadable_file_is_refused(gpt2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the system's answer is put in its place."""
    opened: Any = Path.open
    for name in (CONFIG, WEIGHTS):

        def forbidden(path: Path, mode: str, *how: int, name: str = name) -> Any:
            if path.name == name:
                raise PermissionError(13, "Permission denied", str(path))
            return opened(path, mode, *how)

        monkeypatch.setattr(Path, "open", forbidden)
        with pytest.raises(CheckpointError, match=rf"^one has no readable {name}\.$"):
            load_checkpoint(gpt2)


def test_a_missing_folder_is_refused(tmp_path: Path, opener: Opener) -> None:
    (tmp_path / "file").write_text("")
    for name in ("none", "a\0b", "x" * 300, "\x1b[2J\n\u202e", "file", os.fsdecode(b"\xff")):
        assert refused(opener, tmp_path / name).startswith("There is no checkpoint folder ")
    assert refused(opener, tmp_path / "none") == "There is no checkpoint folder none."


def test_an_ugly_folder_name_is_shown_plainly(gpt2: Path, opener: Opener) -> None:
    sharded()(gpt2)
    without(shard(1))(gpt2)
    ugly = "a\n\x1b[2J\u202e" + "x" * 200
    for name in (ugly, "**bold** <b>", os.fsdecode(b"\xff"), "é" * 120, chr(0xF0000) * 60):
        gpt2 = gpt2.rename(gpt2.parent / name)
        assert "lacks 1 of the 2 files" in refused(opener, gpt2)


def test_unusual_but_sound_folders_are_read(gpt2: Path) -> None:
    """The same ways to put a folder together, each without the lie."""
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        most = torch.finfo(dtype).max  # none of these is infinite, nor is their sum to be
        with_tensor(WTE, torch.full((13, 12), most, dtype=dtype))(gpt2)
        weights = dict(load_checkpoint(gpt2).model.named_parameters())
        assert weights["decoder.embedding.weight"].eq(most).all()
    renamed(WEIGHTS, "gpt2-tiny.safetensors")(gpt2)
    assert load_checkpoint(gpt2).unused == ()
    renamed("gpt2-tiny.safetensors", WEIGHTS)(gpt2)
    with_tensor("transformer.h.0.attn.masked_bias", torch.tensor(-math.inf))(gpt2)
    with_tensor("transformer.h.0.attn.bias", torch.ones(2, 2).tril().bool())(gpt2)
    assert len(load_checkpoint(gpt2).unused) == 2, "masks and counters beside the weights"
    assert open_weights(gpt2).dtype("transformer.h.0.attn.bias") == "BOOL"
    sharded()(gpt2)
    renamed(shard(1), "other")(gpt2)
    (gpt2 / shard(1)).symlink_to("other")
    assert load_checkpoint(gpt2).family == "gpt2"


def test_the_cache_of_a_hub_is_read(gpt2: Path, tmp_path: Path) -> None:
    """There every file is a link from `snapshots/<revision>` to `blobs` beside it."""
    snapshot, blobs = tmp_path / "model" / "snapshots" / "1f", tmp_path / "model" / "blobs"
    snapshot.mkdir(parents=True)
    gpt2.rename(blobs)
    for path in blobs.iterdir():
        (snapshot / path.name).symlink_to(f"../../blobs/{path.name}")
    assert load_checkpoint(snapshot).family == "gpt2"


KINDS = (
    ("ours", CONFIG),
    ("gpt2", CONFIG),
    ("gpt2", WEIGHTS),
    ("shards", INDEX),
    ("gguf", gguf_damage.NAME),
)


@pytest.fixture(scope="module")
def folders(good_folders: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder to be changed for each way to store a model."""
    root = tmp_path_factory.mktemp("changed")
    for kind, sound in (("ours", "ours"), ("gpt2", "gpt2"), ("shards", "gpt2")):
        shutil.copytree(good_folders / sound, root / kind)
    sharded()(root / "shards")
    (root / "gguf").mkdir()
    (root / "gguf" / gguf_damage.NAME).write_bytes(gguf_damage.good().written())
    return root


@pytest.mark.parametrize(("kind", "file"), KINDS)
@settings(max_examples=max(60, settings().max_examples))
@given(data=st.data())
def test_a_changed_file_opens_equal_or_is_refused(
    kind: str, file: str, data: st.DataObject, folders: Path, opener: Opener
) -> None:
    """As another library reads it, or in one sentence, with little memory and little reading."""
    place = folders / kind / file
    sound = place.read_bytes()
    place.write_bytes(data.draw(changed_file(file, sound)))
    try:
        answer = opener.ask(folders / kind)
    finally:
        place.write_bytes(sound)
    assert answer.read <= MIB, "of a folder that has a hundredth of it"
    if answer.error is not None:
        check_refused(answer, folders / kind)
