"""A hostile folder does no more than print its one sentence, whatever its files hold.

Every damage of the tables is done to a good folder, which another process then opens.
"""

from __future__ import annotations

import json
import math
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from models import load_checkpoint
from models.files import CheckpointError, shown
from models.weights import open_weights
from tests.models.hostile import (
    CONFIG,
    INDEX,
    UGLY,
    WEIGHTS,
    Header,
    packed,
    shard,
    sharded,
    unpacked,
)
from tests.models.opening import Cases, Damage, Opener, not_refused_as_told, refused

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

WTE, NORM = "transformer.wte.weight", "transformer.ln_f.weight"
RUN, TOKENIZER, GENERATION = "run.json", "tokenizer.json", "generation_config.json"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 5\n"
PAGE = "\n<!DOCTYPE html><html><body>Sign in</body></html>"
CUT, VALID, MIB = "is damaged or cut short.", "in no valid way", 1 << 20


def all_of(*damages: Damage) -> Damage:
    def damage(folder: Path) -> None:
        for one in damages:
            one(folder)

    return damage


def holds(name: str, content: bytes | str) -> Damage:
    """A file with another content."""
    content = content.encode("utf-8") if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(content)


def config(**changes: Any) -> Damage:
    """Other values in the config that is there."""

    def damage(folder: Path) -> None:
        path = folder / CONFIG
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return damage


def without(*names: str) -> Damage:
    def damage(folder: Path) -> None:
        for name in names:
            (folder / name).unlink(missing_ok=True)

    return damage


def renamed(old: str, new: str) -> Damage:
    return lambda folder: (folder / old).rename(folder / new)


def folder_for(name: str) -> Damage:
    return all_of(without(name), lambda folder: (folder / name).mkdir())


def pipe_for(name: str) -> Damage:
    return all_of(without(name), lambda folder: os.mkfifo(folder / name))


def link_for(name: str, target: str) -> Damage:
    return all_of(without(name), lambda folder: (folder / name).symlink_to(target))


def tensors(change: Callable[[dict[str, Tensor]], object]) -> Damage:
    """Other tensors, in a sound file."""

    def damage(folder: Path) -> None:
        values = load_file(folder / WEIGHTS)
        change(values)
        save_file({n: v.contiguous() for n, v in values.items()}, folder / WEIGHTS)

    return damage


def with_tensor(name: str, tensor: Tensor) -> Damage:
    return tensors(lambda values: values.update({name: tensor}))


def raw_header(header: bytes | str, length: int | None = None) -> Damage:
    """A file that is a header and nothing else."""
    header = header.encode() if isinstance(header, str) else header
    return holds(WEIGHTS, packed(header, length=length))


def lying(change: Callable[[Header], object], more: bytes = b"") -> Damage:
    """Another header over the same numbers."""

    def damage(folder: Path) -> None:
        header, numbers = unpacked((folder / WEIGHTS).read_bytes())
        del header["__metadata__"]
        change(header)
        (folder / WEIGHTS).write_bytes(packed(json.dumps(header).encode(), numbers + more))

    return damage


def mapped(name: str, file: Any) -> Damage:
    """An index that puts one tensor elsewhere."""
    return sharded(lambda _, places: places.update({name: file}))


NO_OBJECT: dict[str, tuple[bytes | str, str]] = {
    "empty": ("", "is not readable JSON."),
    "a list": ("[]", "must be a JSON object."),
    "cut": ('{"model_type": "gp', "is not readable JSON."),
    "deep objects": ('{"a":' * 10_000 + "1" + "}" * 10_000, "is nested too deep."),
    "a little too deep": ('{"a":' + "[" * 40 + "]" * 40 + "}", "is nested too deep."),
    "only opened": ("[" * 1_000_000, "holds too many values to be one."),
    "200,000 lists": ('{"a": [' + "[]," * 200_000 + "1]}", "holds too many values to be one."),
    "half a million words": ('{"a": ["' + '",' * 510_000 + "1]}", "holds too many values"),
    "an inner key twice": ('{"a": {"b": 1, "b": 1}}', "it names a key twice."),
    "NaN": ('{"a": NaN}', "it holds NaN, which is no number."),
    "infinity": ('{"a": -Infinity}', "it holds -Infinity, which is no number."),
    "1e999": ('{"a": 1e999}', "it holds a number that is too large."),
    "5,000 digits": ('{"a": ' + "9" * 5_000 + "}", "it holds a number of too many digits."),
    "a byte order mark": (b"\xef\xbb\xbf{}", "is not readable JSON."),
    "UTF-16": ("{}".encode("utf-16"), "is not text."),
    "Latin-1": (b'{"model_type": "\xe9"}', "is not text."),
}
NO_SMALL_FILE = {
    "[1]": "must be a JSON object.",
    "[" * 10_000: "is nested too deep.",
    " " * (5 * MIB): "is too large to be one.",
    PAGE: "is not readable JSON.",
    POINTER: "is a git-lfs pointer in place of the file; fetch the file with git lfs pull.",
}
JSON: Cases = {}
for what, (content, words) in NO_OBJECT.items():
    JSON[f"config: {what}"] = holds(CONFIG, content), words
    JSON[f"header: {what}"] = raw_header(content), words
for file in (CONFIG, RUN, GENERATION, INDEX):
    before = sharded() if file == INDEX else all_of()
    for content, words in NO_SMALL_FILE.items():
        damage = all_of(before, holds(file, content))
        JSON[f"{file}: {content:.9}"] = damage, f"{file} in one {words}"


def settings(*rows: tuple[str, str, list[Any]]) -> Cases:
    """Each of the values in a field of the config, all refused in the same words."""
    return {
        f"{shown(field)} is {shown(wrong)}": (config(**{field: wrong}), words)
        for field, words, all_wrong in rows
        for wrong in all_wrong
    }


PUBLISHED = settings(
    ("n_embd", "n_embd must be a whole number", ["12", 12.0, True, [12], {"": UGLY}]),
    ("n_embd", "must be between 1 and", [0, -12, int("9" * 90)]),
    ("n_layer", "must be between 1 and", [10**9, 201]),
    ("n_layer", "asks for 200 layers", [200]),
    ("vocab_size", "has the shape (13, 12)", [14]),
    ("layer_norm_epsilon", "layer_norm_epsilon must be a number", ["1e-5", []]),
    ("activation_function", "activation that is not supported", ["swish9", 3, UGLY, {}]),
    ("architectures", "architectures must be a list of names", ["GPT2Model", [["GPT2Model"]]]),
    ("tie_word_embeddings", "tie_word_embeddings must be true or false", ["yes", 1]),
    ("eos_token_id", "eos_token_id must be", [[[1]], list(range(99)), "1"]),
    ("pad_token_id", "pad_token_id must be a whole number", [{}]),
    ("model_type", "is not supported", [7, ["gpt2"], "", UGLY]),
    ("model_type", "gpt2\\x00 is not supported", ["gpt2\0"]),
    ("model_type", "unknown keys", [None]),
    ("quantization_config", "quantization_config", [{"quant_method": "gptq"}]),
)
PUBLISHED |= {
    "code of its own": (
        config(model_type="mine", auto_map={"AutoModel": "modeling.Mine"}),
        "code that a folder brings along is never run",
    ),
}

HUGE = {"d_model": 10**6, "vocab_size": 10**6, "d_ff": 10**6, "n_heads": 1, "positions": "none"}
OURS = settings(
    ("kind", "kind must be one of", ["both", UGLY]),
    ("d_model", "d_model must be int", ["12", 12.0, False]),
    ("n_heads", "d_model 12 is not divisible by n_heads 5.", [5]),
    ("n_layers", "asks for 200 layers, but there are only 37", [200]),
    ("n_layers", "lacks decoder.blocks.2.", [3]),
    ("d_ff", "has the shape (20, 12)", [21]),
    ("max_len", "sinusoids is too large", [500_001]),
    ("max_len", "max_len must be between", [10**30]),
    ("windows", "windows must be a list", [3, [[0]]]),
    ("rope_scaling", "unknown keys", [{UGLY: 1}]),
    (UGLY, "unknown keys", [1]),
    ("architectures", "unknown keys: 'architectures'", [["GPT2LMHeadModel"]]),
)
OURS |= {
    "a huge config": (config(**HUGE), "which is not what the config says."),
    "30,000 unknown keys": (config(**dict.fromkeys(map(str, range(30_000)))), "unknown keys"),
    "tokenizer is no text": (holds(TOKENIZER, b"\xff"), "tokenizer.json in one is not text."),
}

NO_CONFIG, NO_WEIGHTS = "one has no readable config.json.", "one has no readable model.safetensors."
OUT = "is a link out of the folder"
FILES: Cases = {
    "no config": (without(CONFIG), NO_CONFIG),
    "config is a folder": (folder_for(CONFIG), NO_CONFIG),
    "config is a pipe": (pipe_for(CONFIG), NO_CONFIG),
    "config is a link to itself": (link_for(CONFIG, CONFIG), NO_CONFIG),
    "config lies elsewhere": (link_for(CONFIG, "/etc/hostname"), f"config.json in one {OUT}"),
    "run is a link out": (link_for(RUN, "/etc/hostname"), f"run.json in one {OUT}"),
    "tokenizer is a folder": (folder_for(TOKENIZER), "one has no readable tokenizer.json."),
    "weights are a folder": (folder_for(WEIGHTS), NO_WEIGHTS),
    "weights are a pipe": (pipe_for(WEIGHTS), NO_WEIGHTS),
    "weights lie elsewhere": (link_for(WEIGHTS, "/dev/zero"), OUT),
}


def headers_only(headers: dict[str, bytes]) -> Damage:
    """An index that also names files of nothing but a header, each by one of its tensors."""

    def change(folder: Path, places: dict[str, str]) -> None:
        for name, header in headers.items():
            (folder / f"{name}.safetensors").write_bytes(packed(header))
            places[name] = f"{name}.safetensors"

    return sharded(change)


def many(tensors: int, prefix: str = "") -> bytes:
    """A header of so many tensors of no numbers."""
    nothing = {"dtype": "F4", "shape": [0], "data_offsets": [0, 0]}
    return json.dumps({f"{prefix}{i}": nothing for i in range(tensors)}).encode()


FILE_NAMES: dict[str, list[Any]] = {
    "which is no safetensors file": ["model.bin"],
    "names a file outside the folder": ["../outside.safetensors", "..\\a.safetensors", ".."],
    "names a file by no file name": [7, [shard(1)], "", UGLY, "a\0.safetensors"],
    "which the index puts there": [shard(1)],
}
INDEXED: Cases = {
    "a missing file": (
        all_of(sharded(), without(shard(2))),
        "lacks 1 of the 2 files of its weights, first model-00002-of-00002.safetensors.",
    ),
    "a file that is a pointer": (all_of(sharded(), holds(shard(2), POINTER)), "git lfs pull"),
    "a file that is a pipe": (all_of(sharded(), pipe_for(shard(1))), "has no readable model-00001"),
    "a file that is elsewhere": (all_of(sharded(), link_for(shard(1), "/dev/zero")), OUT),
    "a tensor in no file": (mapped("zeta", shard(1)), "lacks zeta, which the index puts there"),
    "a tensor in two files": (
        all_of(sharded(), lambda folder: shutil.copyfile(folder / shard(1), folder / shard(2))),
        "so which one counts is not known",
    ),
    "no weight_map": (all_of(sharded(), holds(INDEX, "{}")), "has no weight_map"),
    "100,000 files": (
        sharded(lambda _, places: places.update({f"{i}": f"{i}." for i in range(99_999)})),
        "names more than 1,000 files",
    ),
    "20 files of long headers": (
        headers_only({f"{i}": b"{}" + b" " * 4_000_000 for i in range(20)}),
        "is too long to be one",
    ),
    "3 files of many tensors": (
        headers_only({f"{i}-0": many(5_000, f"{i}-") for i in range(3)}),
        "holds more than 10,000 tensors",
    ),
}
INDEXED |= {
    f"a file called {shown(file)}": (mapped(NORM, file), words)
    for words, files in FILE_NAMES.items()
    for file in files
}


def zipped(folder: Path) -> None:
    with zipfile.ZipFile(folder / WEIGHTS, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({}))


NOT_READ = {
    "pickled weights, which can run code": ["pytorch_model.bin", "model.pth", "model.ckpt"],
    "a format that is not read here": ["tf_model.h5", "model.onnx", "model.Q4_K_M.gguf"],
    "holds an adapter, which is no model": ["adapter_model.safetensors"],
}
NO_SAFETENSORS: Cases = {
    f"only {name}": (renamed(WEIGHTS, name), words)
    for words, names in NOT_READ.items()
    for name in names
}
NO_SAFETENSORS |= {
    "two files without an index": (
        all_of(sharded(), without(INDEX)),
        "holds several safetensors files and no model.safetensors.index.json",
    ),
    "a pickle by another name": (holds(WEIGHTS, pickle.dumps({"a": 1})), "is pickled"),
    "an archive of pickles by another name": (zipped, "is pickled, which can run code"),
    "an image by another name": (holds(WEIGHTS, b"\x89PNG\r\n\x1a\n" * 9), CUT),
    "a pointer": (holds(WEIGHTS, POINTER), "a git-lfs pointer in place of the file"),
    "a page": (holds(WEIGHTS, PAGE), "is a web page in place of the file; fetch it again."),
    "empty": (holds(WEIGHTS, b""), "is empty; fetch or save it again."),
    "no weights": (without(WEIGHTS), "one has no model.safetensors."),
}


def one(**changes: Any) -> str:
    """A header of one tensor of no numbers."""
    return json.dumps({"a": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} | changes})


def shift(by: int, *names: str) -> Damage:
    """Some tensors, or all of them, said to lie elsewhere."""

    def change(header: Header) -> None:
        for name in names or header:
            header[name]["data_offsets"] = [place + by for place in header[name]["data_offsets"]]

    return lying(change)


HEADERS: Cases = {
    "of 2^64 - 1 bytes": (raw_header("{}", (1 << 64) - 1), CUT),
    "longer than the file": (raw_header("{}", 3), CUT),
    "shorter than it is": (raw_header("{}", 1), "is not readable JSON"),
    "seven bytes in all": (holds(WEIGHTS, b"\2\0\0\0\0\0\0"), CUT),
    "too long": (raw_header(one() + " " * 5 * MIB), "is too long to be one"),
    "one emoji in 4 MB": (raw_header('{"🙂' + "a" * 4_000_000 + '":1}'), VALID),
    "of no tensor": (raw_header("{}"), "there are only 0 tensors."),
    "10,001 tensors": (raw_header(many(10_001)), "holds more than 10,000 tensors."),
    "a name that is ugly": (raw_header(json.dumps({UGLY: 1})), "describes a\\n\\x1b[2J"),
    "half a character": (raw_header(one().replace('"a"', '"\\udc00"')), "describes \\udc00 in no"),
    "notes of numbers": (raw_header('{"__metadata__": {"a": 1}}'), "metadata that is"),
    "an entry without a type": (raw_header('{"a": {"shape": [0], "data_offsets": [0, 0]}}'), VALID),
    "behind the end": (raw_header(one(shape=[1], data_offsets=[0, 4])), CUT),
    "too long for its shape": (lying(lambda h: h[WTE].update(shape=[12, 12])), "another length"),
    "too short for its type": (lying(lambda h: h[WTE].update(dtype="F64")), "another length"),
    "half a byte long": (raw_header(one(dtype="F4", shape=[1])), "has another length"),
    "one byte early": (shift(-1, NORM), "lies over another tensor"),
    "all one byte late": (shift(1), "lies behind a gap"),
    "before bytes of nobody": (lying(lambda header: None, b"1234"), "holds 4 bytes that belong"),
    "behind a gap": (lying(lambda header: header.pop(NORM)), "lies behind a gap"),
}
WRONG_FIELDS: list[tuple[str, str, list[Any]]] = [
    ("stride", VALID, [[1]]),
    ("dtype", VALID, [["F32"]]),
    ("dtype", "of the unknown type F31", ["F31"]),
    ("dtype", "of the unknown type a\\n\\x1b[2J", [UGLY]),
    ("shape", VALID, [0, ["0"], [0.0], [True], [-1, -3], [1 << 32, 1 << 32, 4]]),
    ("shape", VALID, [[1 << 40, 1 << 40, 0], [10**90], [1] * 1000]),
    ("data_offsets", VALID, [[], [0, 0, 0], {"0": 0, "1": 0}, [-4, -4], [0, 1 << 64]]),
    ("data_offsets", "has another length", [[4, 0]]),
    ("data_offsets", "lies behind a gap", [[1 << 62, 1 << 62]]),
]
HEADERS |= {
    f"{field} {shown(wrong)}": (raw_header(one(**{field: wrong})), words)
    for field, words, all_wrong in WRONG_FIELDS
    for wrong in all_wrong
}

ATTENTION = "transformer.h.0.attn.c_attn.weight"
TENSORS: Cases = {
    "numbers of bytes": (with_tensor(WTE, torch.zeros(13, 12).to(torch.int8)), "is quantized (I8)"),
    "one missing": (tensors(lambda values: values.pop(WTE)), "lacks wte.weight, which"),
    "one by another name": (tensors(lambda v: v.update({UGLY[:7]: v.pop(NORM)})), "lacks ln_f"),
    "infinity": (with_tensor(NORM, torch.full((12,), math.inf)), "ln_f.weight in one holds NaN"),
    "what 32 bits cannot hold": (
        with_tensor(WTE, torch.full((13, 12), 1e300, dtype=torch.float64)),
        "wte.weight in one holds NaN, infinite or too large numbers",
    ),
    "as many as 200 layers need": (
        all_of(config(n_layer=200), raw_header(many(10_000))),
        "which its config asks for",
    ),
}
TENSORS |= {
    f"{name} {shape}": (with_tensor(name, torch.zeros(shape)), f"has the shape {shape}")
    for name, shape in ((WTE, (12, 13)), (NORM, (0,)), (ATTENTION, (36,)), (ATTENTION, (12, 35)))
}


@pytest.mark.parametrize(
    "cases",
    [JSON, PUBLISHED, FILES, INDEXED, NO_SAFETENSORS, HEADERS, TENSORS],
    ids=["json", "config", "files", "index", "no safetensors", "headers", "tensors"],
)
def test_each_damage_to_a_published_folder_is_refused_in_its_sentence(
    cases: Cases, gpt2: Path, opener: Opener
) -> None:
    assert not_refused_as_told(opener, gpt2, cases) == []


def test_each_damage_to_a_folder_of_ours_is_refused_in_its_sentence(
    ours: Path, opener: Opener
) -> None:
    assert not_refused_as_told(opener, ours, OURS) == []
    config(max_len=500_000)(ours)
    assert opener.ask(ours).error is None, "the longest table of sinusoids costs little memory"


def test_an_unreadable_file_is_refused(gpt2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the system's answer is put in its place."""
    opened, closed = Path.open, WEIGHTS

    def forbidden(path: Path, *how: Any, **more: Any) -> Any:
        if path.name == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *how, **more)

    monkeypatch.setattr(Path, "open", forbidden)
    for closed in (WEIGHTS, CONFIG):
        with pytest.raises(CheckpointError, match=rf"^one has no readable {closed}\.$"):
            load_checkpoint(gpt2)


def test_a_missing_folder_is_refused(tmp_path: Path, opener: Opener) -> None:
    (tmp_path / "file").write_text("")
    for name in ("a\0b", "x" * 300, "\x1b[2J\n\u202e", "file", os.fsdecode(b"\xff")):
        assert refused(opener, tmp_path / name).startswith("There is no checkpoint folder ")
    assert refused(opener, tmp_path / "none") == "There is no checkpoint folder none."


def test_an_ugly_folder_name_is_shown_plainly(gpt2: Path, opener: Opener) -> None:
    sharded()(gpt2)
    without(shard(1))(gpt2)
    ugly = "a\n\x1b[2J\u202e" + "x" * 200
    for name in (ugly, "**bold** <b>", os.fsdecode(b"\xff"), "é" * 120, chr(0xF0000) * 60):
        gpt2 = gpt2.rename(gpt2.parent / name)
        assert "lacks 1 of the 2 files" in refused(opener, gpt2)


def test_a_model_larger_than_the_machine_is_refused(gpt2: Path, opener: Opener) -> None:
    """Its file agrees with its config, and is a hole: it takes no room on the disk."""
    width = 299_997
    config(n_embd=width, n_inner=width)(gpt2)
    header, _ = unpacked((gpt2 / WEIGHTS).read_bytes())
    del header["__metadata__"]
    place = 0
    for stored in header.values():
        shape = [{12: width, 20: width, 36: 3 * width}.get(axis, axis) for axis in stored["shape"]]
        begin, place = place, place + 4 * math.prod(shape)
        stored |= {"shape": shape, "data_offsets": [begin, place]}
    content = packed(json.dumps(header).encode())
    (gpt2 / WEIGHTS).write_bytes(content)
    try:
        os.truncate(gpt2 / WEIGHTS, len(content) + place)
    except OSError:
        pytest.skip("this disk has no files of terabytes")
    assert "GB of memory, more than the " in refused(opener, gpt2)


def test_unusual_but_sound_folders_are_read(gpt2: Path) -> None:
    """The same ways to put a folder together, each without the lie."""
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        most = torch.finfo(dtype).max  # none of these is infinite, nor is their sum to be
        with_tensor(WTE, torch.full((13, 12), most, dtype=dtype))(gpt2)
        weights = dict(load_checkpoint(gpt2).model.named_parameters())
        assert weights["decoder.embedding.weight"].dtype == torch.float32
        assert weights["decoder.embedding.weight"].eq(most).all()
    renamed(WEIGHTS, "gpt2-tiny.safetensors")(gpt2)
    assert load_checkpoint(gpt2).unused == ()
    renamed("gpt2-tiny.safetensors", WEIGHTS)(gpt2)
    masks = ("transformer.h.0.attn.bias", "transformer.h.0.attn.masked_bias")
    with_tensor(masks[1], torch.tensor(-math.inf))(gpt2)
    with_tensor(masks[0], torch.ones(2, 2).tril().bool())(gpt2)
    assert load_checkpoint(gpt2).unused == masks, "what is beside the weights is told, not read"
    assert open_weights(gpt2).dtype(masks[0]) == "BOOL"
    sharded()(gpt2)
    renamed(shard(1), "other")(gpt2)
    link_for(shard(1), "other")(gpt2)
    assert load_checkpoint(gpt2).family == "gpt2"


def test_the_cache_of_a_hub_is_read(gpt2: Path, tmp_path: Path, opener: Opener) -> None:
    """There every file is a link from `snapshots/<revision>` to `blobs` beside it."""
    snapshot, blobs = tmp_path / "model" / "snapshots" / "1f", tmp_path / "model" / "blobs"
    snapshot.mkdir(parents=True)
    gpt2.rename(blobs)
    for path in blobs.iterdir():
        (snapshot / path.name).symlink_to(f"../../blobs/{path.name}")
    assert load_checkpoint(snapshot).family == "gpt2"
    (snapshot / RUN).symlink_to("../../refs")
    (tmp_path / "model" / "refs").write_text("{}")
    assert "run.json in 1f is a link out of the folder" in refused(opener, snapshot)
