"""A hostile folder does no more than print its one sentence, whatever its files hold.

Every damage of the tables is done to a good folder, which another process then opens.
"""

import json
import math
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from models import load_checkpoint
from models.loading.safe_files import CheckpointError, shown
from models.loading.weight_files import open_weights
from tests.models.loading.hostile import (
    BERT,
    CONFIG,
    INDEX,
    LLAMA,
    PAGE,
    POINTER,
    UGLY,
    WEIGHTS,
    Cases,
    all_of,
    config,
    data,
    folder_for,
    link_for,
    mapped,
    moved_out,
    packed,
    pipe_for,
    raw_header,
    renamed,
    replaced,
    shard,
    sharded,
    tensors,
    text,
    unpacked,
    value,
    with_tensor,
    without,
)
from tests.models.loading.opening import Opener, not_refused_as_told, refused
from tests.models.loading.safetensors_damage import CUT, HEADERS, MIB, NORM, TENSORS, WTE

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

RUN, TOKENIZER = "run.json", "tokenizer.json"

NO_OBJECT: dict[str, tuple[bytes | str, str]] = {
    "empty": ("", "is not readable JSON."),
    "a list": ("[]", "must be a JSON object."),
    "a number": ("7", "must be a JSON object."),
    "null": ("null", "must be a JSON object."),
    "a word": ('"gpt2"', "must be a JSON object."),
    "cut": ('{"model_type": "gp', "is not readable JSON."),
    "two objects": ("{}{}", "is not readable JSON."),
    "comments": ("{} // mine", "is not readable JSON."),
    "deep lists": ("[" * 10_000 + "]" * 10_000, "is nested too deep."),
    "deep objects": ('{"a":' * 10_000 + "1" + "}" * 10_000, "is nested too deep."),
    "a little too deep": ('{"a":' + "[" * 40 + "]" * 40 + "}", "is nested too deep."),
    "only opened": ("[" * 1_000_000, "holds too many values to be one."),
    "objects only opened": ('{"a":' * 100_000, "is nested too deep."),
    "200,000 lists": ('{"a": [' + "[]," * 200_000 + "1]}", "holds too many values to be one."),
    "half a million words": ('{"a": ["' + '",' * 510_000 + "1]}", "holds too many values"),
    "a key twice": ('{"a": 1, "a": 2}', "is not readable JSON: it names a key twice."),
    "an inner key twice": ('{"a": {"b": 1, "b": 1}}', "it names a key twice."),
    "NaN": ('{"a": NaN}', "it holds NaN, which is no number."),
    "infinity": ('{"a": -Infinity}', "it holds -Infinity, which is no number."),
    "1e999": ('{"a": 1e999}', "it holds a number that is too large."),
    "5,000 digits": ('{"a": ' + "9" * 5_000 + "}", "it holds a number of too many digits."),
    "a byte order mark": (b"\xef\xbb\xbf{}", "is not readable JSON."),
    "UTF-16": ("{}".encode("utf-16"), "is not text."),
    "UTF-16 without a mark": ("{}".encode("utf-16-le"), "is not readable JSON."),
    "Latin-1": (b'{"model_type": "\xe9"}', "is not text."),
    "zero bytes": (b"\0" * 1000, "is not readable JSON."),
    "a page": (PAGE, "is not readable JSON."),
}


def json_of(name: str) -> Cases:
    """A file that must hold a JSON object and does not; the sentence names the file."""
    before = sharded() if name == INDEX else all_of()
    cases: Cases = {
        f"{name}: {what}": (
            all_of(before, data(name, one.encode() if isinstance(one, str) else one)),
            f"{name} in one {words}" if words.startswith(("is", "must", "holds")) else words,
        )
        for what, (one, words) in NO_OBJECT.items()
    }
    return cases | {
        f"{name}: too large": (all_of(before, text(name, " " * (5 * MIB))), "too large to be one"),
        f"{name}: a pointer": (all_of(before, text(name, POINTER)), "fetch the file with git lfs"),
    }


JSON: Cases = json_of(CONFIG) | json_of(RUN) | json_of("generation_config.json") | json_of(INDEX)
JSON |= {
    f"header: {what}": (raw_header(one), CUT)
    for what, (one, _) in NO_OBJECT.items()
    if what != "a page"
}


def values(*rows: tuple[str, str, list[Any]]) -> Cases:
    """Each of the values in a field of the config, all refused in the same words."""
    return {
        f"{shown(field)} is {shown(wrong)}": (config(**{field: wrong}), words)
        for field, words, all_wrong in rows
        for wrong in all_wrong
    }


PUBLISHED = values(
    ("n_embd", "n_embd must be a whole number", ["12", 12.0, True, [12], {"": UGLY}]),
    ("n_embd", "n_embd must be given", [None]),
    ("n_embd", "must be between 1 and", [0, -12, int("9" * 90)]),
    ("n_embd", "is not divisible by", [13]),
    ("n_head", "must be between 1 and", [0]),
    ("n_layer", "must be between 1 and", [0, -1, 10**9, 201]),
    ("n_layer", "asks for 200 layers", [200]),
    ("n_layer", "which its config asks for", [3]),
    ("n_inner", "must be between", [-1]),
    ("vocab_size", "has the shape (13, 12)", [14]),
    ("vocab_size", "must be between", [2**63]),
    ("n_positions", "has the shape (16, 12)", [15, 10**7]),
    ("layer_norm_epsilon", "layer_norm_epsilon must be a number", ["1e-5", []]),
    ("layer_norm_epsilon", "must be between", [0]),
    ("activation_function", "activation that is not supported", ["swish9", 3, UGLY, {}]),
    ("architectures", "architectures must be a list of names", ["GPT2Model", [["GPT2Model"]]]),
    ("tie_word_embeddings", "tie_word_embeddings must be true or false", ["yes", 1]),
    ("eos_token_id", "eos_token_id must be", [[[1]], list(range(99)), "1"]),
    ("pad_token_id", "pad_token_id must be a whole number", [{}]),
    ("scale_attn_by_inverse_layer_idx", "is not supported", [True]),
    ("add_cross_attention", "is not supported", [1]),
    ("model_type", "the family gpt99 is not supported", ["gpt99"]),
    ("model_type", "is not supported", [7, ["gpt2"], "", UGLY]),
    ("model_type", "unknown keys", [None]),
    ("quantization_config", "quantization_config", [{"quant_method": "gptq"}]),
)
PUBLISHED |= {
    "a fraction of 5,000 digits": (value("n_embd", "0." + "9" * 5_000), "n_embd must be"),
    "a zero byte in a word": (value("model_type", '"gpt2\\u0000"'), "gpt2\\x00 is not supported"),
    "half a character": (value("model_type", '"\\ud800"'), "\\ud800 is not supported"),
    "a terabyte": (
        config(n_embd=10**6, n_head=500, vocab_size=4_000, n_positions=10**6),
        "has the shape",
    ),
    "a terabyte in heads": (config(n_embd=10**6, n_head=1), "has the shape"),
    "code of its own": (
        config(model_type="mine", auto_map={"AutoModel": "modeling.Mine"}),
        "code that a folder brings along is never run",
    ),
}
CHANGED_CONFIGS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (BERT, {}, "lacks "),
    (BERT, {"id2label": {"a": "b"}}, "id2label"),
    (BERT, {"id2label": ["a"]}, "id2label"),
    (BERT, {"id2label": {"0": 1}}, "id2label"),
    (BERT, {"num_labels": -1}, "num_labels must be"),
    (BERT, {"num_labels": 10**9}, "num_labels must be"),
    (BERT, {"position_embedding_type": "relative_key"}, "is not supported"),
    (LLAMA, {"max_position_embeddings": 0, "rope_scaling": {"type": "yarn"}}, "a factor"),
    (LLAMA, {"model_type": "mistral", "layer_types": ["odd"]}, "layer_types"),
    (LLAMA, {"model_type": "mistral", "sliding_window": "4"}, "sliding_window"),
    (
        LLAMA,
        {"model_type": "qwen2", "use_sliding_window": True, "layer_types": ["odd"]},
        "layer_types",
    ),
    (LLAMA, {"head_dim": 3}, "a head of 3 is odd"),
    (LLAMA, {"head_dim": 10**6}, "lacks"),
    (LLAMA, {"num_key_value_heads": 2}, "not divisible"),
]
PUBLISHED |= {
    f"{base['model_type']} with {shown(changes)}": (replaced(base | changes), words)
    for base, changes, words in CHANGED_CONFIGS
}
PUBLISHED |= {
    f"llama with the scaling {scaling}": (replaced(LLAMA | {"rope_scaling": scaling}), words)
    for scaling, words in [
        (7, "rope_scaling must be an object"),
        ({"type": "mine"}, "is not supported"),
        ({"type": ["yarn"]}, "is not supported"),
        ({"type": "linear", "factor": 0}, "must be between"),
        ({"type": "yarn", "factor": -3.0}, "must be between"),
        ({"type": "linear", "factor": "2"}, "factor must be a number"),
        ({"type": "yarn", "original_max_position_embeddings": 0}, "a factor"),
        ({"type": "yarn", "original_max_position_embeddings": -1}, "a factor"),
        ({"type": "llama3", "factor": 2, "low_freq_factor": 4}, "_freq"),
        ({"type": "yarn", "factor": 1e300}, "must be between"),
        ({"type": "yarn", "factor": 2, "beta_fast": -1}, "must be between"),
    ]
}

HUGE = {"d_model": 10**6, "vocab_size": 4_000, "d_ff": 10**6, "n_heads": 1, "positions": "none"}
OURS = values(
    ("kind", "kind must be one of", ["both", UGLY]),
    ("kind", "kind must be str", [3]),
    ("d_model", "d_model must be int", ["12", 12.0, False]),
    ("d_model", "d_model must be between", [10**6 + 1]),
    ("n_heads", "d_model 12 is not divisible by n_heads 5.", [5]),
    ("n_layers", "n_layers must be between", [10**6]),
    ("n_layers", "asks for 200 layers, but there are only 37", [200]),
    ("n_layers", "lacks decoder.blocks.2.", [3]),
    ("d_ff", "has the shape (20, 12)", [21]),
    ("max_len", "sinusoids is too large", [500_001]),
    ("max_len", "max_len must be between", [10**30]),
    ("dropout", "dropout must be float", ["0"]),
    ("norm_eps", "norm_eps must be between", [0]),
    ("tie_embeddings", "tie_embeddings must be bool", [1]),
    ("pad_id", "pad_id must be between", [13]),
    ("windows", "windows must be a list", [3, [[0]]]),
    ("windows", "windows must name one per layer", [[0] * 100_000]),
    ("generation", "eos_ids must be a list", [{"eos_ids": ["a"]}]),
    ("generation", "generation must be GenerationConfig", [3, None, []]),
    ("generation", "unknown keys", [{UGLY: 1}]),
    ("patch_size", "it reads images", [4, "4"]),
    ("rope_scaling", "rope_scaling must be", [3]),
    ("rope_scaling", "kind must be one of", [{"kind": "mine"}]),
    ("rope_scaling", "unknown keys", [{UGLY: 1}]),
    (UGLY, "unknown keys", [1]),
    ("architectures", "unknown keys: 'architectures'", [["GPT2LMHeadModel"]]),
)
OURS |= {
    "a huge config": (config(**HUGE), "which is not what the config says."),
    "9 unknown keys": (config(**dict.fromkeys("abcefghij")), "unknown keys"),
    "30,000 unknown keys": (config(**dict.fromkeys(map(str, range(30_000)))), "unknown keys"),
    "tokenizer is no text": (data(TOKENIZER, b"\xff"), "tokenizer.json in one is not text."),
    "a weight is missing": (
        tensors(lambda weights: weights.pop("head.bias")),
        "one lacks head.bias, which its config asks for.",
    ),
    "a weight is too short": (
        with_tensor("head.bias", torch.zeros(12)),
        "head.bias in one has the shape (12,), which is not what the config says.",
    ),
}

FILES: Cases = {
    "nothing": (without(CONFIG, WEIGHTS), "one has no readable config.json."),
    "no config": (without(CONFIG), "one has no readable config.json."),
    "config is a folder": (folder_for(CONFIG), "one has no readable config.json."),
    "config is a pipe": (pipe_for(CONFIG), "one has no readable config.json."),
    "config is a link to itself": (link_for(CONFIG, CONFIG), "one has no readable config.json."),
    "config is a link to nothing": (link_for(CONFIG, "none"), "one has no readable config.json."),
    "config is a device": (link_for(CONFIG, "/dev/zero"), "is a link out of the folder"),
    "config lies elsewhere": (moved_out(CONFIG), "config.json in one is a link out of the folder"),
    "run is a link out": (
        lambda folder: (folder / RUN).symlink_to("/etc/hostname"),
        "run.json in one is a link out of the folder",
    ),
    "tokenizer is a folder": (
        lambda folder: (folder / TOKENIZER).mkdir(),
        "one has no readable tokenizer.json.",
    ),
    "tokenizer is a pipe": (
        lambda folder: os.mkfifo(folder / TOKENIZER),
        "one has no readable tokenizer.json.",
    ),
    "weights are a folder": (folder_for(WEIGHTS), "one has no readable model.safetensors."),
    "weights are a pipe": (pipe_for(WEIGHTS), "one has no readable model.safetensors."),
    "weights are a device": (link_for(WEIGHTS, "/dev/zero"), "is a link out of the folder"),
    "weights lie elsewhere": (moved_out(WEIGHTS), "is a link out of the folder"),
    "weights are a link to nothing": (link_for(WEIGHTS, "none"), "no readable model.safetensors"),
}


def with_many_files(folder: Path, places: dict[str, str]) -> None:
    """As many as may be, each with a header and nothing else."""
    for i in range(990):
        (folder / f"{i}.safetensors").write_bytes(packed(b"{}"))
        places[f"{i}"] = f"{i}.safetensors"


def with_long_headers(folder: Path, places: dict[str, str]) -> None:
    """Each as long as it may be, had it the folder for itself."""
    for i in range(20):
        (folder / f"{i}.safetensors").write_bytes(packed(b"{}" + b" " * (4_000_000)))
        places[f"{i}"] = f"{i}.safetensors"


def with_many_tensors(folder: Path, places: dict[str, str]) -> None:
    for i in range(3):
        stored = {"dtype": "F4", "shape": [0], "data_offsets": [0, 0]}
        header = json.dumps({f"{i}-{j}": stored for j in range(5_000)})
        (folder / f"{i}.safetensors").write_bytes(packed(header.encode()))
        places[f"{i}-0"] = f"{i}.safetensors"


FILE_NAMES: list[tuple[list[Any], str]] = [
    ([INDEX, "model.bin"], "which is no safetensors file"),
    (
        ["../outside.safetensors", "/etc/passwd", "..\\a.safetensors", "a/b.safetensors"],
        "names a file outside the folder",
    ),
    ([".", ".."], "names a file outside the folder"),
    ([7, None, [shard(1)], {}, "", UGLY], "names a file by no file name"),
    (["a\0.safetensors"], "names a file by no file name"),
    ([shard(1)], "which the index puts there"),
]
INDEXED: Cases = {
    "a missing file": (
        all_of(sharded(), without(shard(2))),
        "lacks 1 of the 2 files of its weights, first model-00002-of-00002.safetensors.",
    ),
    "all files missing": (all_of(sharded(), without(shard(1), shard(2))), "lacks 2 of the 2 files"),
    "a file that is a pointer": (all_of(sharded(), text(shard(2), POINTER)), "git lfs pull"),
    "a file that is empty": (all_of(sharded(), text(shard(2), "")), "is empty"),
    "a file that is a pipe": (all_of(sharded(), pipe_for(shard(1))), "has no readable model-00001"),
    "a file that is elsewhere": (all_of(sharded(), moved_out(shard(1))), "is a link out"),
    "a tensor in no file": (mapped("zeta", shard(1)), "lacks zeta, which the index puts there"),
    "an ugly tensor in no file": (mapped(UGLY, shard(1)), "which the index puts there"),
    "a tensor in two files": (
        sharded(
            lambda folder, _: (folder / shard(2)).write_bytes((folder / shard(1)).read_bytes())
        ),
        "so which one counts is not known",
    ),
    **{
        f"a file called {shown(file)}": (mapped(NORM, file), words)
        for files, words in FILE_NAMES
        for file in files
    },
    **{
        f"the index {content}": (all_of(sharded(), text(INDEX, content)), "has no weight_map")
        for content in ("{}", '{"weight_map": {}}', '{"weight_map": [1]}')
    },
    "100,000 files": (
        sharded(
            lambda _, places: places.update({f"{i}": f"{i}.safetensors" for i in range(99_999)})
        ),
        "names more than 1,000 files",
    ),
    "1,000 empty files": (sharded(with_many_files), "lacks"),
    "20 files of long headers": (sharded(with_long_headers), "is too long to be one"),
    "3 files of many tensors": (sharded(with_many_tensors), "holds more than 10,000 tensors"),
}


def zipped(folder: Path) -> None:
    with zipfile.ZipFile(folder / WEIGHTS, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({}))


def crowded(folder: Path) -> None:
    for i in range(2_000):
        (folder / f"{i}.txt").touch()


NO_SAFETENSORS: Cases = {
    "no weights": (without(WEIGHTS), "one has no model.safetensors."),
    **{
        f"only {name}": (renamed(WEIGHTS, name), words)
        for words, names in {
            "pickled weights, which can run code": (
                *("pytorch_model.bin", "pytorch_model-00001-of-00002.bin"),
                *("model.pt", "model.pth", "model.ckpt"),
            ),
            "a format that is not read here": (
                *("tf_model.h5", "flax_model.msgpack", "model.onnx"),
            ),
            "holds an adapter, which is no model": ("adapter_model.safetensors",),
        }.items()
        for name in names
    },
    "two files without an index": (
        all_of(sharded(), without(INDEX)),
        "holds several safetensors files and no model.safetensors.index.json",
    ),
    "a pickle by another name": (data(WEIGHTS, pickle.dumps({"a": 1})), "is pickled"),
    "an old pickle by another name": (data(WEIGHTS, pickle.dumps({}, 2)), "is pickled"),
    "an archive of pickles by another name": (zipped, "is pickled, which can run code"),
    "an image by another name": (data(WEIGHTS, b"\x89PNG\r\n\x1a\n" * 9), CUT),
    "a pointer": (text(WEIGHTS, POINTER), "a git-lfs pointer in place of the file"),
    "a page": (text(WEIGHTS, PAGE), "is a web page in place of the file; fetch it again."),
    "empty": (data(WEIGHTS, b""), "is empty; fetch or save it again."),
    "many other files": (all_of(without(WEIGHTS), crowded), "one has no model.safetensors."),
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


def test_the_longest_sinusoid_table_costs_little_memory(ours: Path, opener: Opener) -> None:
    config(max_len=500_000)(ours)
    assert opener.ask(ours).error is None


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS])
def test_an_unreadable_file_is_refused(
    name: str, gpt2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may read everything, so the system's answer is put in its place."""
    opened = Path.open

    def forbidden(path: Path, *how: Any, **more: Any) -> Any:
        if path.name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *how, **more)

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


def test_a_model_larger_than_the_machine_is_refused(gpt2: Path, opener: Opener) -> None:
    """Its file agrees with its config, and is a hole: it takes no room on the disk."""
    width = 299_997
    config(n_embd=width, n_inner=width)(gpt2)
    header, _ = unpacked((gpt2 / WEIGHTS).read_bytes())
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
