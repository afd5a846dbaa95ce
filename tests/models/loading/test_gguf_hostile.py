"""A damaged or malicious GGUF file is refused in one sentence, soon, and in little memory."""

import os
import shutil
import struct
from math import prod
from pathlib import Path

import pytest
from hypothesis import given, strategies

from models.loading.checkpoint import CheckpointError, load_checkpoint
from models.loading.gguf_header import read_gguf_header
from models.loading.gguf_weights import gguf_weights
from tests.models.loading.gguf_damage import (
    F16_TENSOR,
    F32,
    F64,
    FLAG,
    I32,
    LIST,
    NAME,
    Q4_0_TENSOR,
    Q8_0_TENSOR,
    TEXT,
    U64,
    Tensor,
    changed,
    claimed,
    content,
    cut_at,
    good,
    listed,
    number,
    said,
    tensor,
    text,
    tokenizer,
    whole,
    word,
    words,
)
from tests.models.loading.hostile import PAGE, POINTER, UGLY, Cases
from tests.models.loading.opening import Opener, check_sentence, not_refused_as_told, refused

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

HUGE = 1 << 62
WTE, NORM, Q = "token_embd.weight", "output_norm.weight", "blk.0.attn_q.weight"
CUT, LONG = "is cut short", 40_000_000
INFINITE = struct.pack("<e", float("inf"))
NAN = struct.pack("<e", float("nan"))
SCORES: dict[str, tuple[int, bytes]] = {"model": word("llama"), "pre": None}  # type: ignore[dict-item]
EMPTY = (LIST, struct.pack("<IQ", TEXT, 1_000_000) + bytes(8_000_000))
ALIKE = ["a" * length for length in range(1, 40)]


def zeros(count: int) -> tuple[int, bytes]:
    return LIST, listed(F32, [0.0] * count)


BEGINNINGS: Cases = {
    "empty": (content(b""), "is empty; fetch it again."),
    "another format": (content(b"\x89PNG\r\n\x1a\n" * 9), "does not begin with GGUF."),
    "an archive": (content(b"PK\x03\x04" + bytes(60)), "does not begin with GGUF."),
    "a pointer": (content(POINTER.encode()), "is a git-lfs pointer in place of the file"),
    "a page": (content(PAGE.encode()), "is a web page in place of the file; fetch it again."),
    "the magic alone": (content(b"GGUF"), CUT),
    "no counts": (cut_at(20), CUT),
    "cut in a name": (cut_at(40), CUT),
    "cut in a list": (cut_at(700), CUT),
    "cut in the tensors": (cut_at(1500), CUT),
    "the last number is missing": (cut_at(-100), "it ends before "),
    "all numbers are missing": (cut_at(2400), "it ends before "),
    "the magic turned around": (claimed(magic=b"FUGG"), "in big-endian order"),
    "big-endian": (claimed(version=struct.pack(">I", 3)), "in big-endian order"),
    "version 0": (claimed(version=bytes(4)), "is of version 0; versions 2 and 3 are read."),
    "version 1": (claimed(version=struct.pack("<I", 1)), "is of version 1;"),
    "version 999": (claimed(version=struct.pack("<I", 999)), "is of version 999;"),
}

COUNTS: Cases = {
    "countless tensors": (claimed(n_tensors=HUGE), "tensors; at most 10,000 are read."),
    "countless values": (claimed(n_values=HUGE), "values; at most 4,000 are read."),
    "one tensor too many": (claimed(n_tensors=21), "claims a name of 0 bytes, which none has."),
    "one value too many": (claimed(n_values=18), "which none has."),
    "no tensors": (claimed(n_tensors=0), "there is no token_embd.weight."),
    "no values": (claimed(n_values=0, values={}), "general.architecture must be a name."),
    "a name without an end": (
        claimed(more_values=[(struct.pack("<Q", HUGE), whole(1))]),
        "claims a name of 4,611,686,018,427,387,904 bytes, which none has.",
    ),
    "a name that is long": (
        claimed(more_values=[(text("a" * 70_000), whole(1))]), "which none has.",
    ),
    "a name that is no text": (claimed(more_values=[(text(b"\xff\xfe"), whole(1))]), "not text."),
    "a name twice": (
        claimed(more_values=[(text("general.alignment"), whole(64))]),
        "gives general.alignment twice.",
    ),
    "a text without an end": (
        said(x=(TEXT, struct.pack("<Q", HUGE) + b"a")), "which it cannot hold."
    ),
    "a text beyond the file": (said(x=(TEXT, struct.pack("<Q", 1 << 20) + b"a")), CUT),
    "a text that is none": (said(general__architecture=word(b"\xff")), "that is not text."),
    "a value of no type": (said(x=(99, b"")), "a value of type 99, which is not known."),
    "a list of no type": (said(x=(LIST, struct.pack("<IQ", 77, 1))), "a list of type 77"),
    "a list without an end": (
        said(x=(LIST, struct.pack("<IQ", U64, HUGE))), "of llama.x; at most 1,000,000 are read."
    ),
    "a list whose size overflows": (
        said(x=(LIST, struct.pack("<IQ", U64, (1 << 61) + 1))), "at most 1,000,000 are read."
    ),
    "texts without an end": (
        said(x=(LIST, struct.pack("<IQ", TEXT, 3_000_000))), "at most 1,000,000 are read."
    ),
    "more lists of texts than a vocabulary has": (
        said(x=EMPTY, y=EMPTY), "more texts than 2,000,000 in its lists."
    ),
    "a list in which a text has no end": (
        said(x=(LIST, struct.pack("<IQQ", TEXT, 1, HUGE))), "which it cannot hold."
    ),
    "a list in a list": (
        said(x=(LIST, struct.pack("<IQ", LIST, 1) + listed(U64, [1]))), "a list of lists"
    ),
    "lists in lists in lists": (
        said(x=(LIST, struct.pack("<IQ", LIST, 1) * 100_000)), "a list of lists"
    ),
}  # fmt: skip

TENSORS: Cases = {
    "alignment 0": (said(general__alignment=whole(0)), "that is no power of two."),
    "alignment 3": (said(general__alignment=whole(3)), "that is no power of two."),
    "alignment without end": (said(general__alignment=whole(1 << 31)), "no power of two."),
    "a negative alignment": (said(general__alignment=whole(-32, I32)), "no power of two."),
    "alignment in words": (said(general__alignment=word("32")), "no power of two."),
    "a tensor twice": (claimed(more_tensors=[(NORM, Tensor((32,)))]), "twice, so which one"),
    "nine axes": (tensor(NORM, Tensor((1,) * 9)), "9 axes; at most 4 are read."),
    "an axis of 0": (tensor(NORM, Tensor((0,), content=b"")), "a shape that no weight has."),
    "a huge axis": (tensor(NORM, Tensor((1 << 63,), content=b"")), "that no weight has."),
    "a negative axis": (tensor(NORM, Tensor(((1 << 64) - 32,), content=b"")), "no weight has."),
    "a size that overflows": (
        tensor(NORM, Tensor((1 << 40, 1 << 40, 1 << 40), content=b"")), "it ends before "
    ),
    "no axis": (tensor(NORM, Tensor(())), "has the shape (), which"),
    "an unknown type": (
        tensor(NORM, Tensor((32,), 4096, content=bytes(128))), "in type 4,096, which is not known."
    ),
    "a type that is gone": (tensor(NORM, Tensor((32,), 4, content=bytes(128))), "in type 4,"),
    "half a block": (
        tensor(NORM, Tensor((33,), Q8_0_TENSOR, content=bytes(64))),
        "rows of 33 numbers, which Q8_0 cannot hold.",
    ),
    "beyond the file": (tensor(NORM, Tensor((32,), offset=1 << 40)), "it ends before "),
    "far beyond": (tensor(NORM, Tensor((32,), offset=(1 << 64) - 32)), "it ends before "),
    "beside its alignment": (tensor(NORM, Tensor((32,), offset=4)), "beside its alignment."),
    "over another": (tensor(NORM, Tensor((32,), offset=64)), "puts output_norm.weight over "),
    "at one place": (tensor(NORM, Tensor((32,), offset=0)), " over "),
    "all at one place": (
        changed(
            lambda draft: draft.with_tensors(
                {name: Tensor(each.axes, offset=0) for name, each in draft.tensors.items()}
            )
        ),
        " over ",
    ),
    "a type that no weight has": (
        tensor(NORM, Tensor((32,), 26, content=bytes(128))), "is of type I32, which is not read"
    ),
    "a part of a model": (said(split__count=whole(3)), "is one of several files of a model"),
    "an adapter": (said(general__type=word("adapter")), "holds no model but adapter."),
    "a picture's projector": (said(general__type=word("mmproj")), "holds no model but mmproj."),
}  # fmt: skip

NUMBERS: Cases = {
    "NaN": (tensor(NORM, Tensor((32,), content=struct.pack("<f", float("nan")) * 32)), "NaN"),
    "infinite": (
        tensor(NORM, Tensor((32,), content=struct.pack("<f", float("inf")) * 32)), "infinite"
    ),
    "a half that is NaN": (tensor(NORM, Tensor((32,), F16_TENSOR, content=NAN * 32)), "NaN"),
    "a scale that is NaN": (
        tensor(Q, Tensor((32, 32), Q8_0_TENSOR, content=(NAN + bytes(32)) * 32)), "holds NaN"
    ),
    "an infinite scale": (
        tensor(
            Q,
            Tensor((32, 32), Q4_0_TENSOR, content=(INFINITE + bytes(16)) * 32),
        ),
        "holds NaN, infinite",
    ),
    "frequencies that are NaN": (
        changed(
            lambda draft: draft.with_values(
                {"llama.rope.freq_base": (F32, number(F32, 1e4))}
            ).with_tensors(
                {"rope_freqs.weight": Tensor((4,), content=struct.pack("<f", float("nan")) * 4)}
            )
        ),
        "NaN",
    ),
    "too many frequencies": (
        tensor("rope_freqs.weight", Tensor((32, 32))), "has a shape that it cannot have."
    ),
}  # fmt: skip

CONFIGS: Cases = {
    "no architecture": (said(general__architecture=None), "general.architecture must be a name."),
    "a number for an architecture": (said(general__architecture=whole(7)), "must be a name."),
    "Falcon": (said(general__architecture=word("falcon")), "falcon is not supported; open one"),
    "Mamba": (said(general__architecture=word("mamba")), "mamba is not supported; "),
    "an ugly architecture": (said(general__architecture=word(UGLY)), "not text."),
    "an ugly architecture that is text": (
        said(general__architecture=word("a\n\x1b[2J\u202e" + "x" * 100_000)), "is not supported; "
    ),
    "no layers": (said(block_count=None), "llama.block_count must be given as a whole number."),
    "0 layers": (said(block_count=whole(0)), "n_layers must be"),
    "a million layers": (said(block_count=whole(10**6)), "n_layers must be"),
    "more layers than tensors": (said(block_count=whole(90)), "asks for 90 layers"),
    "half a layer": (said(block_count=(F32, number(F32, 2.5))), "must be a whole number"),
    "layers in words": (said(block_count=word("two")), "must be a whole number"),
    "layers in a list": (said(block_count=(LIST, listed(I32, [1] * 9_000))), "a list of 9,000"),
    "layers that are true": (said(block_count=(FLAG, b"\1")), "must be a whole number"),
    "no heads": (said(**{"attention.head_count": whole(0)}), "n_heads must be"),
    "negative heads": (said(**{"attention.head_count": whole(-3, I32)}), "must be"),
    "a width without end": (said(embedding_length=whole(HUGE, U64)), "d_model must be"),
    "another width": (said(embedding_length=whole(64)), "has the shape (13, 32), which"),
    "no ε": (said(**{"attention.layer_norm_rms_epsilon": None}), "must be given as a number."),
    "ε that is NaN": (
        said(**{"attention.layer_norm_rms_epsilon": (F32, number(F32, float("nan")))}), "norm_eps"
    ),
    "θ that is infinite": (
        said(**{"rope.freq_base": (F64, number(F64, float("inf")))}), "rope_theta"
    ),
    "experts": (said(expert_count=whole(8)), "llama.expert_count 8 is not supported."),
    "an unknown scaling": (
        said(**{"rope.scaling.type": word("longrope")}), "of the type 'longrope' is not supported."
    ),
    "no embedding": (tensor(WTE, None), "there is no token_embd.weight."),
    "no norm": (tensor(NORM, None), "lacks output_norm.weight, which its config asks for."),
    "no queries": (tensor(Q, None), "lacks blk.0.attn_q.weight"),
    "queries of another width": (tensor(Q, Tensor((32, 40))), "has the shape (40, 32), which"),
    "queries that no head divides": (tensor(Q, Tensor((32, 33))), "has the shape (33, 32), which"),
}  # fmt: skip

TOKENIZERS: Cases = {
    "an unknown kind": (tokenizer(model=word("rwkv")), "of the kind rwkv, which is not known."),
    "a number for a kind": (tokenizer(model=whole(1)), "tokenizer.ggml.model that is no name."),
    "an unknown way": (tokenizer(pre=word("kimi-k2")), "in the way kimi-k2, which is not known."),
    "a token twice": (tokenizer(tokens=words(*["a"] * 13)), "has the token a twice."),
    "a token that is no text": (tokenizer(tokens=words(*[b"\xff"] * 13)), "are not texts."),
    "tokens that are numbers": (tokenizer(tokens=(LIST, listed(I32, [1] * 13))), "not texts."),
    "no tokens": (tokenizer(tokens=None), "has 0 tokens, not 1 to 1,000,000."),
    "one text for tokens": (tokenizer(tokens=word("abc")), "that are no list."),
    "a token without end": (
        tokenizer(tokens=words("a" * 20_000, *map(str, range(12)))), "that is no short text."
    ),
    "types of others": (tokenizer(token_type=(LIST, listed(I32, [1]))), "more or fewer tokens"),
    "types that are words": (tokenizer(token_type=words(*["a"] * 13)), "that are not numbers."),
    "half a merge": (tokenizer(merges=words("ab")), "a merge that is no pair of tokens."),
    "more merges than its tokens can make": (
        tokenizer(merges=words(*["a b"] * 105)), "more merges than 104, the most for its"
    ),
    "merges of a great length": (
        tokenizer(merges=words(*["a" * (7 << 20)] * 5)), "tokenizer.ggml.merges of more than 32 MB."
    ),
    "tokens of which countless merges are made": (
        tokenizer(**SCORES, tokens=words(*ALIKE), token_type=None, scores=zeros(len(ALIKE))),
        "the most for its vocabulary.",
    ),
    "a flag that is none": (tokenizer(add_bos_token=whole(1)), "neither true nor false."),
    "scores of others": (
        tokenizer(**SCORES, scores=(LIST, listed(F32, [1.0]))), "scores for more or fewer tokens"
    ),
    "scores that are NaN": (
        tokenizer(**SCORES, scores=(LIST, listed(F32, [float("nan")] * 13))), "no finite number."
    ),
    "pieces without end": (
        tokenizer(**SCORES, tokens=words(*map(str, range(12)), "a" * 9_000)), "or longer tokens"
    ),
}  # fmt: skip

ALL = BEGINNINGS | COUNTS | TENSORS | NUMBERS | CONFIGS | TOKENIZERS


@pytest.fixture(scope="module")
def gguf_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one sound file, which nobody may change."""
    folder = tmp_path_factory.mktemp("gguf") / "good"
    folder.mkdir()
    (folder / NAME).write_bytes(good().written())
    return folder


def test_the_sound_file_opens(gguf_folder: Path) -> None:
    found = load_checkpoint(gguf_folder / NAME)
    assert (found.family, found.unused, found.config.n_kv_heads) == ("llama", (), 2)
    assert found.tokenizer is not None
    assert load_checkpoint(gguf_folder).config == found.config


def test_the_version_before_opens_too(tmp_path: Path) -> None:
    claimed(version=struct.pack("<I", 2))(tmp_path)
    assert load_checkpoint(tmp_path).family == "llama"


SOUND = good().written()
HEADER = SOUND.index(struct.pack("<f", 0.01) * 4)
"""Where the numbers begin."""


@given(
    places=strategies.lists(strategies.integers(0, HEADER - 1), min_size=1, max_size=4),
    value=strategies.binary(min_size=1, max_size=8),
    left=strategies.one_of(strategies.none(), strategies.integers(0, len(SOUND))),
)
def test_whatever_is_written_over_the_header_it_opens_or_is_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, places: list[int], value: bytes, left: int | None
) -> None:
    raw = bytearray(SOUND)
    for place in places:
        raw[place : place + len(value)] = value
    file = tmp_path_factory.mktemp("any") / NAME
    file.write_bytes(raw[:left])
    try:
        load_checkpoint(file)
    except CheckpointError as error:
        check_sentence(str(error), file)


def test_a_hostile_file_is_one_sentence(gguf_folder: Path, opener: Opener) -> None:
    assert len(ALL) >= 100
    assert not_refused_as_told(opener, gguf_folder, ALL) == []


def test_of_several_files_none_is_preferred(
    gguf_folder: Path, tmp_path: Path, opener: Opener
) -> None:
    folder = Path(shutil.copytree(gguf_folder, tmp_path / "two"))
    shutil.copy(folder / NAME, folder / "another.gguf")
    assert refused(opener, folder) == (
        "two holds 2 GGUF files; open one of them, such as another.gguf."
    )
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
    weights = gguf_weights(read_gguf_header(file))
    with weights.open() as read:
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
