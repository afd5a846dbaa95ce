"""A whole pass in plain torch and double precision, from the numbers of a file and nothing else.

No line of the app makes these values, so that what it shows can be held against them. They
are called as the whole pass calls its stages, and are of one head where every head has its own.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor


class Plain(dict[str, Tensor]):
    """The values by their names. Of models whose norms stand before, and have a mean and a bias."""

    def __init__(self, weights: dict[str, Tensor], n_heads: int, head: int, **how: bool) -> None:
        super().__init__()
        self.weights = {name: value.double() for name, value in weights.items()}
        self.n_heads, self.head, self.how = n_heads, head, how

    def put(self, name: str, value: Tensor) -> Tensor:
        self[name] = value
        return value

    def linear(self, name: str, x: Tensor) -> Tensor:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, name: str, x: Tensor) -> Tensor:
        apart = x - x.mean(-1, keepdim=True)
        size = (apart.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        return self.weights[f"{name}.weight"] * apart / size + self.weights[f"{name}.bias"]

    def stack(self, name: str, ids: list[int], memory: Tensor | None = None) -> Tensor:
        """What a stack makes of its tokens: (tokens, d_model)."""
        scale = 1.0
        if self.how.get("scaled"):
            scale = math.sqrt(self.weights[f"{name}.embedding.weight"].shape[1])
        x = self.put(f"{name}.embed", self.weights[f"{name}.embedding.weight"][ids] * scale)
        if self.how.get("waves"):
            added = waves(*x.shape)
            x = self.put(f"{name}.sum", x + self.put(f"{name}.pos_embed", added))
        layer = 0
        while f"{name}.blocks.{layer}.mlp.up_proj.weight" in self.weights:
            x = self.block(name, layer, x, memory)
            layer += 1
        return self.put(f"{name}.final", self.norm(f"{name}.norm", x))

    def block(self, stack: str, layer: int, x: Tensor, memory: Tensor | None) -> Tensor:
        name, at = f"{stack}.blocks.{layer}", f"{stack}.{layer}"
        normed = self.norm(f"{name}.self_residual.norm", x)
        causal = stack == "decoder"
        out = self.attention(f"{name}.self_attn", f"{at}.self_attn", normed, normed, causal)
        x = self.put(f"{at}.resid_mid", x + out)
        if memory is not None:
            normed = self.norm(f"{name}.cross_residual.norm", x)
            out = self.attention(f"{name}.cross_attn", f"{at}.cross_attn", normed, memory, False)
            x = self.put(f"{at}.resid_cross", x + out)
        up = self.linear(f"{name}.mlp.up_proj", self.norm(f"{name}.mlp_residual.norm", x))
        hidden = self.put(f"{at}.mlp.hidden", up.clamp(min=0))
        out = self.put(f"{at}.mlp.out", self.linear(f"{name}.mlp.down_proj", hidden))
        return self.put(f"{at}.resid_post", x + out)

    def attention(self, name: str, at: str, x: Tensor, looked_at: Tensor, causal: bool) -> Tensor:
        """Head by head, each a loop's turn; the values of the chosen one are kept."""
        q = self.linear(f"{name}.q_proj", x).chunk(self.n_heads, -1)
        k = self.linear(f"{name}.k_proj", looked_at).chunk(self.n_heads, -1)
        v = self.linear(f"{name}.v_proj", looked_at).chunk(self.n_heads, -1)
        outs = []
        for head in range(self.n_heads):
            products = q[head] @ k[head].T
            scores = products / math.sqrt(q[head].shape[1])
            masked = scores
            if causal:
                later = torch.ones_like(scores).triu(1).bool()
                masked = scores.masked_fill(later, -math.inf)
            weights = masked.softmax(-1)
            outs.append(weights @ v[head])
            if head == self.head:
                self.put(f"{at}.products", products)
                self.put(f"{at}.scores", scores)
                self.put(f"{at}.weights", weights)
                self.put(f"{at}.head_out", outs[-1])
        return self.put(f"{at}.out", self.linear(f"{name}.o_proj", torch.cat(outs, -1)))

    def answer(self, logits: Tensor) -> Plain:
        self.put("logits", logits)
        self.put("probabilities", logits.exp() / logits.exp().sum(-1, keepdim=True))
        return self


def waves(count: int, width: int) -> Tensor:
    """Sines in the even columns and cosines in the odd ones, slower from pair to pair."""
    made = torch.zeros(count, width, dtype=torch.float64)
    for place in range(count):
        for column in range(width):
            angle = place / 10_000 ** (2 * (column // 2) / width)
            made[place, column] = math.cos(angle) if column % 2 else math.sin(angle)
    return made


def translated(folder: Path, words: str, head: int) -> tuple[list[int], list[int], Plain]:
    """What the encoder reads, what the decoder reads of its own answer, and the pass over both."""
    table = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    begins, ends = table["<s>"], table["</s>"]
    source, target = [*(table[word] for word in words.split()), ends], [begins]
    weights = load_file(folder / "model.safetensors")
    while True:
        made = Plain(weights, 2, head, scaled=True, waves=True)
        last = made.stack("decoder", target, made.stack("encoder", source))
        made.answer(made.linear("head", last))
        likeliest = int(made["logits"][-1].argmax())
        if likeliest == ends:
            return source, target, made
        target.append(likeliest)


def judged(folder: Path, words: str, head: int) -> tuple[list[int], Plain]:
    """What the classifier reads, and its pass: it answers from its first token."""
    table = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    ids = [table["<cls>"], *(table[word] for word in words.split())]
    made = Plain(load_file(folder / "model.safetensors"), 2, head)
    pooled = made.put("head.pooled", made.stack("encoder", ids)[:1])
    return ids, made.answer(made.linear("head.out", pooled))
