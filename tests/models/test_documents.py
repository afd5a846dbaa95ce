"""The four documents' calls, as they are written: the lines that run here stand in their texts."""

import ast
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import models
from models import Transformer, trace
from models.families import documents
from models.presets import PRESETS, preset_of
from tests.closeness import assert_close_to

BESIDE = Path(models.__file__).parents[2] / "shared" / "data"
TEXTS = Path(os.environ.get("EXPLORER_DATA") or BESIDE).parent / "seeds"

NOTEBOOK = """
src_vocab_size = 11
target_vocab_size = 11
num_layers = 6
seq_length= 12
src = torch.tensor([[0, 2, 5, 6, 4, 3, 9, 5, 2, 9, 10, 1],
                    [0, 2, 8, 7, 3, 4, 5, 6, 7, 2, 10, 1]])
target = torch.tensor([[0, 1, 7, 4, 3, 5, 9, 2, 8, 10, 9, 1],
                       [0, 1, 5, 6, 2, 4, 7, 6, 2, 8, 10, 1]])
model = Transformer(embed_dim=512, src_vocab_size=src_vocab_size,
                    target_vocab_size=target_vocab_size, seq_length=seq_length,
                    num_layers=num_layers, expansion_factor=4, n_heads=8)
out = model(src, target)
"""
NOTEBOOK_DECODES = """
src = torch.tensor([[0, 2, 5, 6, 4, 3, 9, 5, 2, 9, 10, 1]])
trg = torch.tensor([[0]])
out = model.decode(src, trg)
"""
WEB = """
torch.manual_seed(42)
vocab_size = 1000
d_model = 64
embed = InputEmbedding(vocab_size, d_model)
tokens = torch.tensor([[5, 13, 42, 7]])
output = embed(tokens)
pos_enc = PositionalEncoding(d_model=64)
out = pos_enc(output)
"""
WEB_ATTENDS = """
batch, heads, seq_len, d_k = 1, 1, 4, 16
Q = torch.randn(batch, heads, seq_len, d_k)
K = torch.randn(batch, heads, seq_len, d_k)
V = torch.randn(batch, heads, seq_len, d_k)
attn_out, weights = scaled_dot_product_attention(Q, K, V)
mha = MultiHeadAttention(d_model=64, num_heads=8)
x = torch.randn(2, 10, 64)
out = mha(x, x, x)
"""
WEB_BLOCKS = """
ff = FeedForward(d_model=64, d_ff=256)
out = ff(torch.randn(2, 10, 64))
x = torch.randn(2, 10, 64)
encoder_block = EncoderBlock(d_model=64, num_heads=8)
out = encoder_block(x)
"""
WEB_ENCODER = """
model = TransformerEncoder( vocab_size = 5000, d_model = 64, num_heads = 8, num_layers = 4,
                            d_ff = 256, dropout = 0.1 )
tokens = torch.randint(0, 5000, (2, 20))
output = model(tokens)
total_params = sum(p.numel() for p in model.parameters())
"""
WEB_CLASSIFIER = """
clf = TransformerClassifier( vocab_size=5000, d_model=64, num_heads=8, num_layers=2, d_ff=128,
                             num_classes=2 )
optimizer = torch.optim.Adam(clf.parameters(), lr=1e-3)
loss_fn = nn.CrossEntropyLoss()
X = torch.randint(0, 5000, (16, 20))
y = torch.randint(0, 2, (16,))
clf.train()
for epoch in range(5):
    optimizer.zero_grad()
    logits = clf(X)
    loss = loss_fn(logits, y)
    loss.backward()
    optimizer.step()
    preds = logits.argmax(dim=-1)
"""
README = """
model = Transformer(
    src_vocab_size=32000,
    tgt_vocab_size=32000,
    d_model=512,
    n_heads=8,
    n_layers=6,
    d_ff=2048,
    dropout=0.1
)
outputs = model(source_sequences, target_sequences)
generated = model.generate(
    source_sequence,
    max_length=50,
    temperature=0.7
)
"""
CALLS = {
    "001": NOTEBOOK + NOTEBOOK_DECODES,
    "002": WEB + WEB_ATTENDS + WEB_BLOCKS + WEB_ENCODER + WEB_CLASSIFIER,
    "003": README,
}


def run(lines: str, **given: Any) -> dict[str, Any]:
    """Every name after these lines, which the core's parts and those of earlier lines precede."""
    names = {**vars(documents), "torch": torch, **given}
    exec(lines, names)
    return names


def statements(lines: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(lines)):
        if isinstance(node, ast.stmt) and not isinstance(node, ast.For):
            yield ast.get_source_segment(lines, node) or ""


def squeezed(text: str) -> str:
    return "".join(text.split())


def document(number: str) -> str:
    found = [*TEXTS.glob(f"{number}_*.txt")]
    if not found:
        pytest.skip("needs the documents; EXPLORER_DATA names the folder beside theirs")
    return found[0].read_text("utf-8")


def test_what_runs_here_stands_in_the_documents(subtests: pytest.Subtests) -> None:
    for number, calls in CALLS.items():
        text = squeezed(document(number))
        for line in statements(calls):
            with subtests.test(document=number, line=line):
                assert squeezed(line) in text


def test_the_readme_has_post_norm_in_its_equations_and_no_code_of_a_part() -> None:
    """So what the museum says of the code is from the repository, which it names."""
    text = document("003")
    assert "out = LayerNorm(x + MultiHeadAttention(x))" in text
    assert not [word for word in ("class ", "def ") if word in text]


def test_the_lecture_handout() -> None:
    assert documents.PositionalEncoding(d_model=512, max_len=5000).pe.shape == (1, 5000, 512)
    mha = documents.MultiHeadAttention(d_model=512, num_heads=8)
    assert sum(p.numel() for p in mha.parameters()) == 1_050_624
    assert mha(torch.randn(2, 5, 512)).shape == (2, 5, 512)
    q, k, v = torch.randn(3, 2, 8, 5, 64)
    mask = torch.tensor([1, 1, 0, 1, 0])
    output, attention_weights = documents.scaled_dot_product_attention(q, k, v, mask)
    assert output.shape == (2, 8, 5, 64)
    assert (attention_weights[..., mask == 0] == 0).all()
    assert_close_to(attention_weights.sum(-1), torch.ones(2, 8, 5))
    scores = (q @ k.transpose(-2, -1) / 8).masked_fill(mask == 0, -1e9)
    assert_close_to(attention_weights, torch.softmax(scores, dim=-1))


@pytest.mark.usefixtures("shapes_unchecked")
def test_the_notebook_tutorial() -> None:
    made = run(NOTEBOOK)
    model = made["model"]
    assert model.n_parameters == 44_127_755
    assert made["out"].shape == (2, 12, 11)
    decoded = run(NOTEBOOK_DECODES, model=model)
    src, trg, out = decoded["src"], decoded["trg"], decoded["out"]
    assert out.shape == (1, 12)
    with pytest.raises(ValueError, match=r"^decode\(source, target\) takes nothing else: "):
        model.decode(src, trg, keep=src < 0)
    read = torch.cat((trg, out), 1)  # each is the likeliest after all before it
    model.eval()
    assert torch.equal(model(src, read[:, :-1]).argmax(-1), out)


def test_the_web_tutorial() -> None:
    made = run(WEB)
    assert made["output"].shape == made["out"].shape == (1, 4, 64)
    made = run(WEB_ATTENDS)
    assert made["attn_out"].shape == (1, 1, 4, 16)
    assert_close_to(made["weights"].sum(-1), torch.ones(1, 1, 4))
    assert made["out"].shape == (2, 10, 64)
    assert run(WEB_BLOCKS)["out"].shape == (2, 10, 64)
    made = run(WEB_ENCODER)
    assert made["output"].shape == (2, 20, 64)
    assert made["total_params"] == 520_064
    encoder, ids, few = made["model"].eval(), made["tokens"], made["tokens"][:, :7]
    causal, padding = torch.ones(20, 20).tril(), (torch.arange(20) < 7)[None, None, None]
    assert_close_to(encoder(ids, causal)[:, :7], encoder(few, mask=causal[:7, :7]))
    assert_close_to(encoder(ids, mask=padding)[:, :7], encoder(few))
    assert "encoder.0.self_attn.weights" in trace(encoder, ids, mask=padding)
    made = run(WEB_CLASSIFIER)
    assert sum(p.numel() for p in made["clf"].parameters()) == 389_218
    assert made["preds"].shape == (16,)


def test_a_document_is_known_by_the_names_of_its_sizes() -> None:
    assert preset_of(seq_length=9, num_layers=2).generation.eos_ids == (1,), "the notebook"
    assert preset_of(embed_dim=16, expansion_factor=3).d_ff == 48
    assert preset_of(tgt_vocab_size=9, n_layers=2).generation.eos_ids == (), "the README"
    for sizes in ({"positions": "rotary"}, {"tgt_vocab_size": 9, "vocab_size": 8}):
        with pytest.raises(TypeError, match="No document has a Transformer of these sizes"):
            preset_of(**sizes)


@pytest.mark.usefixtures("shapes_unchecked")
def test_the_repository_readme() -> None:
    source, target = torch.randint(3, 32000, (2, 1, 4))
    made = run(README, source_sequences=source, target_sequences=target, source_sequence=source)
    assert made["model"].n_parameters == 93_322_496
    assert made["outputs"].shape == (1, 4, 32000)
    assert 1 < made["generated"].shape[1] <= 51


def test_the_paper_ties_its_three_matrices_and_drops_only_what_enters_the_residual_stream() -> None:
    """Sections 3.4 and 5.4, and 65 million parameters in table 3."""
    with torch.device("meta"):
        paper = Transformer(PRESETS["paper"])
    assert paper.n_parameters == 37_000 * 512 + 44_138_496 == 63_082_496
    small: dict[str, Any] = {"d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 32, "dropout": 0.5}
    model = Transformer(PRESETS["paper"].replace(vocab_size=11, **small)).train()
    tables = [model.get_submodule(f"{stack}.embedding") for stack in model.config.stacks]
    assert tables[0] is tables[1]
    assert [name for name, _ in model.named_parameters() if name.startswith("head")] == []
    shares = {name: m.p for name, m in model.named_modules() if isinstance(m, nn.Dropout)}
    dropped = {name for name, share in shares.items() if share}
    residual = "self_residual cross_residual mlp_residual".split()
    assert dropped == {
        *(f"{stack}.dropout" for stack in ("encoder", "decoder")),
        *(f"decoder.blocks.0.{each}.dropout" for each in residual),
        *(f"encoder.blocks.0.{each}.dropout" for each in ("self_residual", "mlp_residual")),
    }
    assert {shares[name] for name in dropped} == {0.5}
    documents = Transformer(PRESETS["lecture handout"].replace(**small))
    assert documents.get_submodule("encoder.blocks.0.mlp.dropout").p == 0.5, "as they were"
