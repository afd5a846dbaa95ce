"""Every stage of a model's pass, in order.

A stage is a value that the trace shows (`site`) or one that the model's own module makes
on the way from one such value to the next (`module`). Only stages that the model has are
here: the list follows from its config alone.
"""

from __future__ import annotations

from functools import lru_cache

from explorer.analysis.forward_pass.stage_line import STREAM, TOKENS, Chain, Line, Stage
from models import TransformerConfig


@lru_cache(maxsize=64)
def stages_of(config: TransformerConfig) -> tuple[Stage, ...]:
    """Every stage of a model of this config, in the order it runs."""
    made: list[Stage] = []
    for stack in config.stacks:
        line = Line(config, stack)
        memory = made[-1].name if made else ""
        _embedding(line)
        layers = config.encoder_layers if stack == "encoder" else config.n_layers
        for layer in range(layers):
            _block(line, layer, memory)
        is_last = stack == config.stacks[-1]
        if config.final_norm:
            section = "Answer" if is_last else "Memory"
            line.section = section
            line.put("final", "Last norm", "final", STREAM, site=True, module="norm")
        if is_last:
            _head(line)
        made += line.stages
    return tuple(made)


def _embedding(line: Line) -> None:
    config = line.config
    tokens = line.put("tokens", "Tokens", "tokens", TOKENS)
    chain = (*TOKENS, *STREAM)
    added = [line.put("embed", "Embedding", "embed", chain, tokens, site=True, module="embedding")]
    if config.positions in ("sinusoidal", "learned"):
        added.append(
            line.put(
                "pos_embed", "Positions", "positions", chain, tokens, site=True, module="positions"
            )
        )
    if config.n_segments:
        added.append(
            line.put(
                "segment_embed",
                "First or second",
                "segments",
                chain,
                tokens,
                site=True,
                module="segments",
            )
        )
    normed = config.embedding_norm
    begins = f"{line.stack}.0.resid_pre"
    if len(added) > 1:
        site = "" if normed else begins
        line.put("sum", "Sum: the stream begins", "begin", STREAM, *added, site=site)
    if normed:
        line.put(
            "sum_norm",
            "Norm of the sum",
            "norm behind",
            STREAM,
            site=begins,
            module="embedding_norm",
        )


def _block(line: Line, layer: int, memory: str) -> None:
    config = line.config
    line.layer, line.section = layer, f"Layer {layer}"
    cross = config.kind == "encoder-decoder" and line.stack == "decoder"
    before = line.stream
    normed = _attention(line, "self_attn", "", "resid_mid")
    if cross:
        _attention(line, "cross_attn", memory, "resid_cross")
    if config.d_ff:
        _feed_forward(line, before, normed)
    line.layer, line.branch = None, ""


def _attention(line: Line, branch: str, memory: str, after: str) -> str:
    """One attention, until the stream behind it; the name of what it reads."""
    config = line.config
    line.branch = branch
    cross, residual = bool(memory), branch.replace("attn", "residual")
    reads = _norm_before(line, branch, residual)
    q = _projected(line, branch, "q", reads, "heads", "tokens")
    shared = "heads" if config.kv_heads == config.n_heads else "kv heads"
    looked_at, along = (memory, "source tokens") if cross else (reads, "tokens")
    k = _projected(line, branch, "k", looked_at, shared, along)
    v = _projected(line, branch, "v", looked_at, shared, along)
    square = (("batch", "heads", "queries", "keys"),)
    products = line.put(f"{branch}.products", "q · k", "products", square, q, k)
    logits = line.put(f"{branch}.scores", "Scores", "scores", square, products, site=True)
    forward = [logits]
    if not cross and config.positions in ("relative", "alibi"):
        forward += [
            line.put(
                f"{branch}.bias",
                "Bias of the distance",
                "bias",
                square,
                site=True,
                module="positions",
            )
        ]
    if len(forward) > 1 or _is_masked(config, line, cross):
        forward = [line.put(f"{branch}.masked", "Masked", "masked", square, *forward)]
    weights = line.put(f"{branch}.weights", "Softmax", "weights", square, *forward, site=True)
    each = ("batch", "heads", "tokens", "d_head")
    heads = line.put(
        f"{branch}.head_out", "Head outputs", "head out", (each,), weights, v, site=True
    )
    joined = (each, ("batch", "tokens", "heads", "d_head"), ("batch", "tokens", "heads·d_head"))
    concat = line.put(f"{branch}.concat", "Heads joined", "concat", joined, heads)
    out = line.put(
        f"{branch}.out", "W_O", "linear", STREAM, concat, site=True, module=f"{branch}.o_proj"
    )
    _add(line, branch, residual, out, after)
    return reads


def _norm_before(line: Line, branch: str, residual: str, reads: str = "") -> str:
    """What the branch reads: the stream, normed where the norm stands before."""
    if line.config.norm_position == "post":
        return line.stream
    reads = reads or line.stream
    return line.put(f"{branch}.norm", "Norm", "norm", STREAM, reads, module=f"{residual}.norm")


def _add(line: Line, branch: str, residual: str, out: str, after: str) -> None:
    where = line.config.norm_position
    if where == "sandwich":
        module = f"{residual}.out_norm"
        out = line.put(f"{branch}.out_norm", "Norm of it", "norm", STREAM, out, module=module)
    if where == "post":
        line.put(f"{branch}.add", "Add", "add", STREAM, line.stream, out)
        line.put(after, "Norm", "norm behind", STREAM, site=True, module=f"{residual}.norm")
    else:
        line.put(after, "Add", "add", STREAM, line.stream, out, site=True)


NAMED = {"q": "Queries", "k": "Keys", "v": "Values"}


def _projected(line: Line, branch: str, letter: str, reads: str, heads: str, along: str) -> str:
    """Queries, keys or values: projected, split into heads, normed and turned where they are."""
    config, title = line.config, NAMED[letter]
    wide = ("batch", along, f"{heads}·d_head")
    split = (wide, ("batch", along, heads, "d_head"), ("batch", heads, along, "d_head"))
    steps: list[tuple[str, Chain, str]] = [("projected", split, f"{branch}.{letter}_proj")]
    if letter != "v" and config.qk_norm:
        steps.append(("head norm", split[-1:], f"{branch}.{letter}_norm"))
    if letter != "v" and config.positions == "rotary" and branch == "self_attn":
        steps.append(("turned", split[-1:], "positions"))
    for at, (kind, chain, module) in enumerate(steps):
        last = at == len(steps) - 1
        tail = f"{branch}.{letter}" + ("" if last else {0: "_proj", 1: "_norm"}[at])
        more = {"head norm": ", normed", "turned": ", turned"}.get(kind, "")
        reads = line.put(tail, title + more, kind, chain, reads, site=last, module=module)
    return reads


def _is_masked(config: TransformerConfig, line: Line, cross: bool) -> bool:
    causal = line.stack == "decoder" and not cross
    return causal or bool(config.windows) or config.pad_id is not None


def _feed_forward(line: Line, before: str, normed: str) -> None:
    config = line.config
    line.branch = "mlp"
    wide: Chain = (("batch", "tokens", "d_ff"),)
    if config.shared_norm:
        reads = normed
    else:
        reads = _norm_before(line, "mlp", "mlp_residual", before if config.parallel else "")
    inner = [("up", "Feed-forward in", "mlp.up_proj")]
    if config.gated:
        inner.insert(0, ("gate", "Gate in", "mlp.gate_proj"))
    made = [
        line.put(f"mlp.{tail}", title, "linear", wide, reads, module=module)
        for tail, title, module in inner
    ]
    title = "Activation × in" if config.gated else "Activation"
    hidden = line.put("mlp.hidden", title, "activation", wide, *made, site=True)
    out = line.put(
        "mlp.out", "Feed-forward out", "linear", STREAM, hidden, site=True, module="mlp.down_proj"
    )
    _add(line, "mlp", "mlp_residual", out, "resid_post")


def _head(line: Line) -> None:
    config = line.config
    line.section, stream = "Answer", line.stream
    if config.head == "none":
        return
    if config.head == "classifier":
        pooled = line.put("head.pooled", "Pooled", "pooled", (("batch", "d_model"),), stream)
        if config.d_classifier is not None:
            wide: Chain = (("batch", "d_classifier"),)
            pooled = line.put("head.hidden", "Head, hidden", "class hidden", wide, pooled)
        chain: Chain = (("batch", "classes"),)
        read = line.put("logits", "Logits", "class logits", chain, pooled, site="logits")
    else:
        if config.head == "masked-language-model":
            stream = line.put("head.transform", "Transform", "transform", STREAM, stream)
        chain = (("batch", "tokens", "vocabulary"),)
        read = line.put("logits", "Logits", "logits", chain, stream, site="logits")
    line.put("probabilities", "Softmax", "probabilities", chain, read)
