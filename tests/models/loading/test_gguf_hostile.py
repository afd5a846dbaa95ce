"""A damaged or malicious GGUF file is refused in one sentence, soon, and in little memory.

`test_hostile.py` changes any other place of a file.
"""

import os
import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import pytest

from models.loading.checkpoint import CheckpointError, load_checkpoint
from models.loading.gguf_header import read_gguf_header
from models.loading.gguf_weights import gguf_weights
from tests.models.loading.gguf_damage import (
    F32,
    FLAG,
    I32,
    LIST,
    NAME,
    Q4_0_TENSOR,
    Q8_0_TENSOR,
    SIZES,
    TEXT,
    U64,
    Draft,
    Tensor,
    Value,
    good,
    listed,
    number,
    whole,
    word,
    words,
)
from tests.models.loading.hostile import PAGE, POINTER, UGLY, Cases, Damage
from tests.models.loading.opening import Opener, not_refused_as_told, refused

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

HUGE = 1 << 62
NORM, Q = "output_norm.weight", "blk.0.attn_q.weight"
SCORES: dict[str, Value | None] = {"model": word("llama"), "pre": None}
EMPTY = (LIST, struct.pack("<IQ", TEXT, 1_000_000) + bytes(8_000_000))
ALIKE: dict[str, Value | None] = {
    "tokens": words(*("a" * length for length in range(1, 40))),
    "token_type": None,
    "scores": (LIST, listed(F32, [0.0] * 39)),
}
"""Tokens of which countless merges are made."""
TWELVE = [*map(str, range(12))]
ONE_SCORE, NO_SCORES = ((LIST, listed(F32, each)) for each in ([1.0], [float("nan")] * 13))
ENDLESS, IN_A_LIST = struct.pack("<Q", HUGE), struct.pack("<IQ", LIST, 1)
OVERFLOWING = struct.pack("<IQ", U64, (1 << 61) + 1)
UGLY_NAME = UGLY.replace("\ud800", "")


def content(raw: bytes) -> Damage:
    return lambda folder: (folder / NAME).write_bytes(raw)


def changed(change: Callable[[Draft], Draft]) -> Damage:
    """The file of another draft."""
    return lambda folder: (folder / NAME).write_bytes(change(good()).written())


def claimed(**fields: Any) -> Damage:
    """Another beginning, other counts."""
    return changed(lambda draft: replace(draft, **fields))


def said(**changes: Value | None) -> Damage:
    """Other values; `__` stands for a point, and a name without one is Llama's."""
    names = [each.replace("__", ".") if "__" in each else f"llama.{each}" for each in changes]
    named = dict(zip(names, changes.values(), strict=True))
    return changed(lambda draft: draft.with_values(named))


def tokenizer(**changes: Value | None) -> Damage:
    """Other values of the tokenizer."""
    return said(**{f"tokenizer__ggml__{name}": value for name, value in changes.items()})


def norm(*axes: int, **fields: Any) -> Damage:
    """Another tensor in the place of the last norm's 32 numbers."""
    return changed(lambda draft: draft.with_tensors({NORM: Tensor(axes, **fields)}))


def tensor(name: str, made: Tensor | None) -> Damage:
    """Another tensor of this name, or none."""
    return changed(lambda draft: draft.with_tensors({name: made}))


ALIGNMENT = word("general.alignment")[1]
NAN_32 = struct.pack("<f", float("nan"))
FIELDS: Cases = {
    "no values": (claimed(n_values=0, values={}), "general.architecture must be a name."),
    "no tensors": (claimed(n_tensors=0), "there is no token_embd.weight."),
    "a name twice": (claimed(more_values=[(ALIGNMENT, whole(64))]), "alignment twice."),
    "a name that is no text": (claimed(more_values=[(word(b"\xff")[1], whole(1))]), "not text."),
    "a text that is none": (said(general__architecture=word(b"\xff")), "that is not text."),
    "a value of no type": (said(x=(99, b"")), "a value of type 99, which is not known."),
    "a list of no type": (said(x=(LIST, struct.pack("<IQ", 77, 1))), "a list of type 77"),
    "alignment 0": (said(general__alignment=whole(0)), "that is no power of two."),
    "a tensor twice": (claimed(more_tensors=[(NORM, Tensor((32,)))]), "twice, so which one"),
    "nine axes": (norm(*(1,) * 9), "9 axes; at most 4 are read."),
    "no axis": (norm(), "has the shape (), which"),
    "no axis in blocks": (norm(kind=Q8_0_TENSOR, content=bytes(34)), "rows of 1 numbers, which"),
    "half a block": (norm(33, kind=Q8_0_TENSOR, content=bytes(64)), "which Q8_0 cannot hold."),
    "an unknown type": (norm(32, kind=4096, content=bytes(128)), "in type 4,096, which is not"),
    "beside its alignment": (norm(32, offset=4), "beside its alignment."),
    "too many frequencies": (tensor("rope_freqs.weight", Tensor((32, 32))), "cannot have."),
    "no layers": (said(block_count=None), "llama.block_count must be given as a whole number."),
    "half a layer": (said(block_count=(F32, number(F32, 2.5))), "must be a whole number"),
    "layers that are true": (said(block_count=(FLAG, b"\1")), "must be a whole number"),
    "no heads": (said(**{"attention.head_count": whole(0)}), "n_heads must be"),
    "another width": (said(embedding_length=whole(64)), "has the shape (13, 32), which"),
    "no ε": (said(**{"attention.layer_norm_rms_epsilon": None}), "must be given as a number."),
    "ε that is NaN": (said(**{"attention.layer_norm_rms_epsilon": (F32, NAN_32)}), "norm_eps"),
    "no norm": (tensor(NORM, None), "lacks output_norm.weight, which its config asks for."),
    "queries that no head divides": (tensor(Q, Tensor((32, 33))), "has the shape (33, 32), which"),
    "a number for a kind": (tokenizer(model=whole(1)), "tokenizer.ggml.model that is no name."),
    "a token twice": (tokenizer(tokens=words(*["a"] * 13)), "has the token a twice."),
    "a token that is no text": (tokenizer(tokens=words(*[b"\xff"] * 13)), "are not texts."),
    "no tokens": (tokenizer(tokens=None), "has 0 tokens, not 1 to 1,000,000."),
    "one text for tokens": (tokenizer(tokens=word("abc")), "that are no list."),
    "types of others": (tokenizer(token_type=(LIST, listed(I32, [1]))), "more or fewer tokens"),
    "types that are words": (tokenizer(token_type=words(*["a"] * 13)), "that are not numbers."),
    "half a merge": (tokenizer(merges=words("ab")), "a merge that is no pair of tokens."),
    "a flag that is none": (tokenizer(add_bos_token=whole(1)), "neither true nor false."),
    "scores of others": (tokenizer(**SCORES, scores=ONE_SCORE), "scores for more or fewer tokens"),
}  # fmt: skip
"""A field that cannot be so: one row for each sentence."""

FILES: Cases = {
    "empty": (content(b""), "is empty; fetch it again."),
    "a pointer": (content(POINTER.encode()), "is a git-lfs pointer in place of the file"),
    "a page": (content(PAGE.encode()), "is a web page in place of the file; fetch it again."),
    "another format": (content(b"PK\x03\x04" + bytes(60)), "does not begin with GGUF."),
    "without counts": (content(good().written()[:20]), "is cut short"),
    "without the last number": (content(good().written()[:-100]), "it ends before "),
    "the magic turned around": (claimed(magic=b"FUGG"), "in big-endian order"),
    "big-endian": (claimed(version=struct.pack(">I", 3)), "in big-endian order"),
    "version 1": (claimed(version=struct.pack("<I", 1)), "is of version 1; versions 2 and 3"),
    "a part of a model": (said(split__count=whole(3)), "is one of several files of a model"),
    "an adapter": (said(general__type=word("adapter")), "holds no model but adapter."),
    "Falcon": (said(general__architecture=word("falcon")), "falcon is not supported; open one"),
    "experts": (said(expert_count=whole(8)), "llama.expert_count 8 is not supported."),
    "an unknown scaling": (said(**{"rope.scaling.type": word("longrope")}), "type 'longrope' is"),
    "an unknown tokenizer": (tokenizer(model=word("rwkv")), "of the kind rwkv, which is not known"),
    "an unknown way": (tokenizer(pre=word("kimi-k2")), "in the way kimi-k2, which is not known."),
}  # fmt: skip
"""What a reader may have in good faith."""

LARGE: Cases = {
    "countless tensors": (claimed(n_tensors=HUGE), "tensors; at most 10,000 are read."),
    "countless values": (claimed(n_values=HUGE), "values; at most 4,000 are read."),
    "a name without an end": (claimed(more_values=[(ENDLESS, whole(1))]), f"a name of {HUGE:,} "),
    "a text without an end": (said(x=(TEXT, ENDLESS + b"a")), "which it cannot hold."),
    "a list whose size overflows": (said(x=(LIST, OVERFLOWING)), "at most 1,000,000 are read."),
    "more texts than a vocabulary has": (said(x=EMPTY, y=EMPTY), "more texts than 2,000,000 in"),
    "lists in lists in lists": (said(x=(LIST, IN_A_LIST * 100_000)), "a list of lists"),
    "alignment without end": (said(general__alignment=whole(1 << 31)), "no power of two."),
    "a negative axis": (norm((1 << 64) - 32, content=b""), "a shape that no weight has."),
    "a size that overflows": (norm(*(1 << 40,) * 3, content=b""), "it ends before "),
    "far beyond the file": (norm(32, offset=(1 << 64) - 32), "it ends before "),
    "over another": (norm(32, offset=64), "puts output_norm.weight over "),
    "a million layers": (said(block_count=whole(10**6)), "n_layers must be"),
    "more layers than tensors": (said(block_count=whole(90)), "asks for 90 layers"),
    "layers in a list": (said(block_count=(LIST, listed(I32, [1] * 9_000))), "a list of 9,000"),
    "an ugly architecture": (said(general__architecture=word(UGLY_NAME)), "is not supported; "),
    "a token without end": (tokenizer(tokens=words("a" * 20_000, *TWELVE)), "is no short text."),
    "too many merges": (tokenizer(merges=words(*["a b"] * 105)), "more merges than 104, the most"),
    "long merges": (tokenizer(merges=words(*["a" * (7 << 20)] * 5)), "merges of more than 32 MB."),
    "countless merges": (tokenizer(**SCORES, **ALIKE), "the most for its vocabulary."),
    "scores that are NaN": (tokenizer(**SCORES, scores=NO_SCORES), "no finite number."),
    "pieces without end": (tokenizer(**SCORES, tokens=words(*TWELVE, "a" * 9_000)), "or longer "),
}  # fmt: skip
"""What would take memory without end, or is larger than it says."""


def scaled(kind: int, scale: str) -> Tensor:
    """Queries in blocks of this scale, a number of 16 bits, whose other numbers are 0."""
    block = struct.pack("<e", float(scale)).ljust(SIZES[kind][1], b"\0")
    return Tensor((32, 32), kind, content=block * 32)


NO_FREQUENCIES = Tensor((4,), content=NAN_32 * 4)
NUMBERS: Cases = {
    "a scale that is NaN": (tensor(Q, scaled(Q8_0_TENSOR, "nan")), "holds NaN"),
    "an infinite scale": (tensor(Q, scaled(Q4_0_TENSOR, "inf")), "holds NaN, infinite"),
    "frequencies that are NaN": (tensor("rope_freqs.weight", NO_FREQUENCIES), "NaN"),
    "of a type that no weight has": (norm(32, kind=26, content=bytes(128)), "is of type I32"),
}  # fmt: skip


@pytest.fixture(scope="module")
def gguf_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one sound file, which nobody may change."""
    folder = tmp_path_factory.mktemp("gguf") / "good"
    folder.mkdir()
    (folder / NAME).write_bytes(good().written())
    return folder


def test_the_sound_file_opens_also_in_the_version_before(gguf_folder: Path, tmp_path: Path) -> None:
    found = load_checkpoint(gguf_folder / NAME)
    assert (found.family, found.unused, found.config.n_kv_heads) == ("llama", (), 2)
    assert found.tokenizer is not None
    assert load_checkpoint(gguf_folder).config == found.config
    claimed(version=struct.pack("<I", 2))(tmp_path)
    assert load_checkpoint(tmp_path).config == found.config


def test_a_hostile_file_is_one_sentence(gguf_folder: Path, opener: Opener) -> None:
    assert not_refused_as_told(opener, gguf_folder, FILES | FIELDS | LARGE | NUMBERS) == []


def test_none_of_several_files_preferred(gguf_folder: Path, tmp_path: Path, opener: Opener) -> None:
    folder = Path(shutil.copytree(gguf_folder, tmp_path / "two"))
    shutil.copy(folder / NAME, folder / "another.gguf")
    sentence = "two holds 2 GGUF files; open one of them, such as another.gguf."
    assert refused(opener, folder) == sentence
    assert opener.ask(folder / NAME).error is None


def test_a_file_that_is_none_is_refused(gguf_folder: Path, tmp_path: Path, opener: Opener) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    (tmp_path / "loop.gguf").symlink_to("loop.gguf")
    (tmp_path / "link.gguf").symlink_to(gguf_folder / NAME)
    (tmp_path / "empty.gguf").mkdir()
    for name, words_of_it in {
        "pipe.gguf": "has no readable pipe.gguf.",
        "loop.gguf": "has no readable loop.gguf.",
        "none.gguf": "has no readable none.gguf.",
        "link.gguf": "is a link out of the folder, which is not followed.",
        "empty.gguf": "has no readable config.json.",
        "x" * 300 + ".gguf": "has no readable ",
        "a\0b.gguf": "has no readable ",
    }.items():
        assert words_of_it in refused(opener, tmp_path / name), name


def test_a_file_that_changes_meanwhile_is_refused(gguf_folder: Path, tmp_path: Path) -> None:
    """It is read, not mapped: what is cut off cannot end the process."""
    file = Path(shutil.copy(gguf_folder / NAME, tmp_path))
    with gguf_weights(read_gguf_header(file)).open() as read:
        read(NORM)
        os.truncate(file, 4_000)
        with pytest.raises(CheckpointError, match=r"changed while it was read; open it again\.$"):
            read("blk.1.ffn_down.weight")


def test_a_model_larger_than_the_machine_is_refused(tmp_path: Path, opener: Opener) -> None:
    """Quantized numbers grow eightfold: a terabyte of which the disk holds none."""
    draft, at = good(width=1 << 18), 0
    placed = {}
    for name, each in draft.tensors.items():
        placed[name] = Tensor(each.axes, Q4_0_TENSOR, offset=at, content=b"")
        at += prod(each.axes) // 32 * 18 + 31 & ~31
    file = tmp_path / NAME
    file.write_bytes(draft.with_tensors(placed).written())
    try:
        os.truncate(file, file.stat().st_size + at)
    except OSError:
        pytest.skip("this disk has no files of terabytes")
    assert "GB of memory, more than the " in refused(opener, file)
