"""The four documents' calls, as they are written."""

from __future__ import annotations

import torch
from torch import nn

from models import Transformer
from models.documents import (
    EncoderBlock,
    FeedForward,
    InputEmbedding,
    MultiHeadAttention,
    PositionalEncoding,
    TransformerClassifier,
    TransformerEncoder,
    scaled_dot_product_attention,
)


def test_the_lecture_handout() -> None:
    assert PositionalEncoding(d_model=512, max_len=5000).pe.shape == (1, 5000, 512)
    mha = MultiHeadAttention(d_model=512, num_heads=8)
    assert sum(p.numel() for p in mha.parameters()) == 1_050_624
    x = torch.randn(2, 5, 512)
    assert mha(x).shape == (2, 5, 512)
    q, k, v = torch.randn(3, 2, 8, 5, 64)
    mask = torch.tensor([1, 1, 0, 1, 0])
    output, attention_weights = scaled_dot_product_attention(q, k, v, mask)
    assert output.shape == (2, 8, 5, 64)
    assert (attention_weights[..., mask == 0] == 0).all()
    torch.testing.assert_close(attention_weights.sum(-1), torch.ones(2, 8, 5))
    scores = (q @ k.transpose(-2, -1) / 8).masked_fill(mask == 0, -1e9)
    torch.testing.assert_close(attention_weights, torch.softmax(scores, dim=-1))


def test_the_notebook_tutorial() -> None:
    src_vocab_size = 11
    target_vocab_size = 11
    num_layers = 6
    seq_length = 12
    src = torch.tensor(
        [[0, 2, 5, 6, 4, 3, 9, 5, 2, 9, 10, 1], [0, 2, 8, 7, 3, 4, 5, 6, 7, 2, 10, 1]]
    )
    target = torch.tensor(
        [[0, 1, 7, 4, 3, 5, 9, 2, 8, 10, 9, 1], [0, 1, 5, 6, 2, 4, 7, 6, 2, 8, 10, 1]]
    )
    model = Transformer(
        embed_dim=512,
        src_vocab_size=src_vocab_size,
        target_vocab_size=target_vocab_size,
        seq_length=seq_length,
        num_layers=num_layers,
        expansion_factor=4,
        n_heads=8,
    )
    assert model.n_parameters == 44_127_755
    assert model(src, target).shape == (2, 12, 11)
    trg = torch.tensor([[0]])
    out = model.decode(src[:1], trg)
    assert out.shape == (1, 12)
    read = torch.cat((trg, out), 1)  # each is the likeliest after all before it
    model.eval()
    assert torch.equal(model(src[:1], read[:, :-1]).argmax(-1), out)


def test_the_web_tutorial() -> None:
    output = InputEmbedding(vocab_size=1000, d_model=64)(torch.tensor([[1, 5, 9, 3]]))
    assert output.shape == (1, 4, 64)
    assert PositionalEncoding(d_model=64)(output).shape == (1, 4, 64)
    mha = MultiHeadAttention(d_model=64, num_heads=8)
    x = torch.randn(2, 10, 64)
    assert mha(x, x, x).shape == (2, 10, 64)
    assert FeedForward(d_model=64, d_ff=256)(x).shape == (2, 10, 64)
    encoder_block = EncoderBlock(d_model=64, num_heads=8)
    assert encoder_block(x).shape == (2, 10, 64)
    model = TransformerEncoder(
        vocab_size=5000, d_model=64, num_heads=8, num_layers=4, d_ff=256, dropout=0.1
    )
    tokens = torch.randint(0, 5000, (2, 20))
    assert model(tokens).shape == (2, 20, 64)
    assert sum(p.numel() for p in model.parameters()) == 520_064
    clf = TransformerClassifier(
        vocab_size=5000, d_model=64, num_heads=8, num_layers=2, d_ff=128, num_classes=2
    )
    assert sum(p.numel() for p in clf.parameters()) == 389_218
    optimizer = torch.optim.Adam(clf.parameters(), lr=1e-3)
    clf.train()
    optimizer.zero_grad()
    loss = nn.CrossEntropyLoss()(clf(torch.randint(0, 5000, (16, 20))), torch.randint(0, 2, (16,)))
    loss.backward()
    optimizer.step()


def test_the_repository_readme() -> None:
    model = Transformer(
        src_vocab_size=32000,
        tgt_vocab_size=32000,
        d_model=512,
        n_heads=8,
        n_layers=6,
        d_ff=2048,
        dropout=0.1,
    )
    assert model.n_parameters == 93_322_496
    source_sequences, target_sequences = torch.randint(3, 32000, (2, 1, 4))
    outputs = model(source_sequences, target_sequences)
    assert outputs.shape == (1, 4, 32000)
    written = model.generate(source_sequences, max_length=50, temperature=0.7)
    assert 1 < written.shape[1] <= 51
