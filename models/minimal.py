"""The decoder in one file that imports nothing else of this project: to be read alone, or first.

Parameters have the names of the core, so `load_checkpoint` and the app open what `save` writes.
`python models/minimal.py FOLDER` trains it for a minute on its own source text and saves it.

Shapes: b batch, t tokens, h heads, d width of a head, D width of the model (h · d), V vocabulary.
Source: Attention Is All You Need (Vaswani et al. 2017), but each sub-layer's norm stands before it.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors import torch as safetensors
from torch import Tensor, nn


@dataclass(frozen=True)
class DecoderConfig:
    """The sizes of a decoder. Everything else is what the core has by default."""

    vocab_size: int
    d_model: int = 64
    n_heads: int = 4
    n_layers: int = 2
    d_ff: int = 256
    max_len: int = 512


def sinusoids(t: int, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos of the same angle. Section 3.5."""
    position = torch.arange(t, dtype=torch.float64)[:, None]  # (t, 1)
    even = torch.arange(0, d_model, 2, dtype=torch.float64)  # (D/2), these are 2i
    angles = position * 10_000.0 ** (-even / d_model)  # (t, D/2)
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)[:, :d_model]  # (t, D)


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """softmax(QKᵀ / √d) V. Equation 1."""
    scores = q @ k.mT / q.shape[-1] ** 0.5  # (b, h, t, t): every query with every key
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)  # (b, h, t, t): each row sums to 1
    return weights @ v  # (b, h, t, d): weighted means of the values


class CausalSelfAttention(nn.Module):
    """h heads side by side, each with its own projections, joined by a last one. Section 3.2.2."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.n_heads = config.n_heads
        self.q_proj = nn.Linear(config.d_model, config.d_model)
        self.k_proj = nn.Linear(config.d_model, config.d_model)
        self.v_proj = nn.Linear(config.d_model, config.d_model)
        self.o_proj = nn.Linear(config.d_model, config.d_model)

    def forward(self, x: Tensor) -> Tensor:  # (b, t, D) -> (b, t, D)
        q, k, v = (self.split(proj(x)) for proj in (self.q_proj, self.k_proj, self.v_proj))
        mask = x.new_ones(x.shape[1], x.shape[1]).tril().bool()  # (t, t): no key after the query
        head_out = scaled_dot_product_attention(q, k, v, mask)  # (b, h, t, d)
        return self.o_proj(head_out.transpose(1, 2).flatten(2))

    def split(self, x: Tensor) -> Tensor:  # (b, t, D) -> (b, h, t, d)
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)


class MLP(nn.Module):
    """max(0, x W₁ + b₁) W₂ + b₂ at every position alike. Section 3.3."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.up_proj = nn.Linear(config.d_model, config.d_ff)
        self.down_proj = nn.Linear(config.d_ff, config.d_model)

    def forward(self, x: Tensor) -> Tensor:  # (b, t, D) -> (b, t, D)
        return self.down_proj(self.up_proj(x).relu())


class PreNorm(nn.Module):
    """x + f(norm(x)): a sub-layer f reads the residual stream and adds to it."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.d_model)

    def forward(self, x: Tensor, sub_layer: Callable[[Tensor], Tensor]) -> Tensor:
        return x + sub_layer(self.norm(x))


class DecoderBlock(nn.Module):
    """Attention moves information between tokens; the feed-forward layer treats each alone."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.self_attn, self.mlp = CausalSelfAttention(config), MLP(config)
        self.self_residual, self.mlp_residual = PreNorm(config), PreNorm(config)

    def forward(self, x: Tensor) -> Tensor:  # (b, t, D) -> (b, t, D)
        x = self.self_residual(x, self.self_attn)
        return self.mlp_residual(x, self.mlp)


class DecoderStack(nn.Module):
    """Embedding, positions, blocks, final norm."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.blocks = nn.ModuleList(DecoderBlock(config) for _ in range(config.n_layers))
        self.norm = nn.LayerNorm(config.d_model)

    def forward(self, ids: Tensor) -> Tensor:  # (b, t) -> (b, t, D)
        x = self.embedding(ids) * self.embedding.embedding_dim**0.5  # (b, t, D), section 3.4
        x = x + sinusoids(*x.shape[1:]).to(x)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class LanguageModel(nn.Module):
    """From token IDs to the logits of the token that follows each of them."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.decoder = DecoderStack(config)
        self.head = nn.Linear(config.d_model, config.vocab_size)
        for matrix in (parameter for parameter in self.parameters() if parameter.dim() == 2):
            nn.init.normal_(matrix, std=0.8 / config.d_model**0.5)

    def forward(self, ids: Tensor) -> Tensor:  # (b, t) -> (b, t, V)
        return self.head(self.decoder(ids))


def train(model: LanguageModel, text: Tensor, steps: int, lr: float = 2e-3) -> Iterator[float]:
    """Learn to continue a text (its token IDs): yields the loss of every step, in nats a token."""
    optimizer, length = torch.optim.Adam(model.parameters(), lr), model.config.max_len
    for _ in range(steps):
        starts = torch.randint(len(text) - length, (16,)).tolist()
        windows = torch.stack([text[at : at + length + 1] for at in starts])  # (b, t + 1)
        logits = model(windows[:, :-1])  # (b, t, V): each position predicts what comes after it
        loss = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


@torch.no_grad()
def generate(model: LanguageModel, ids: Tensor, n: int, temperature: float = 1.0) -> Tensor:
    """Draw n more tokens, one after another, each from softmax(logits / temperature)."""
    for _ in range(n):
        logits = model(ids[:, -model.config.max_len :])[:, -1]  # (b, V)
        token = torch.multinomial((logits / temperature).softmax(-1), 1)  # (b, 1)
        ids = torch.cat((ids, token), 1)  # (b, t + 1)
    return ids


def save(folder: Path, model: LanguageModel, vocabulary: Sequence[str]) -> None:
    """A checkpoint folder, whose tokenizer.json makes a token of every character."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(asdict(model.config), indent=2), "utf-8")
    safetensors.save_file(model.state_dict(), folder / "model.safetensors")
    ids = {token: i for i, token in enumerate(vocabulary)}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    single = {"behavior": "Isolated", "invert": False, "pattern": {"Regex": r"[\s\S]"}}
    alone = {"single": [{"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {}}
    tokenizer = {
        "added_tokens": [{"id": 0, "content": "<pad>", "special": True} | flags],
        "pre_tokenizer": {"type": "Split"} | single,
        "post_processor": {"type": "TemplateProcessing"} | alone,
        "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": ids, "unk_token": "<unk>"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")


def load(folder: Path) -> LanguageModel:
    """The model in a folder that `save` wrote."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    model = LanguageModel(DecoderConfig(**config))
    model.load_state_dict(safetensors.load((folder / "model.safetensors").read_bytes()))
    return model


if __name__ == "__main__":
    folder, steps = Path(sys.argv[1]), int((*sys.argv, "800")[2])
    text = Path(__file__).read_text("utf-8")
    vocabulary = ["<pad>", "<unk>", *sorted(set(text))]
    ids = torch.tensor([vocabulary.index(character) for character in text])
    model = LanguageModel(DecoderConfig(len(vocabulary), max_len=96))
    for step, loss in enumerate(train(model, ids, steps)):
        if step % 100 == 0:
            print(f"step {step}: {loss:.2f} nats a character")
    sample = generate(model, ids[None, :20], 200, temperature=0.7)[0]
    print("".join(vocabulary[token] for token in sample))
    save(folder, model, vocabulary)
