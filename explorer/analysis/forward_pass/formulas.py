"""The formula of every stage in LaTeX, with the choices of the model, and a sentence for it."""

from __future__ import annotations

import math
from collections.abc import Callable

from explorer.analysis.forward_pass.stage_line import Stage
from explorer.text.number_format import three
from models import TransformerConfig

LETTER = {"q": "Q", "k": "K", "v": "V"}
ACTIVATIONS = {
    "relu": r"\max(0, {x})",
    "silu": r"\frac{{x}}{1 + e^{-{x}}}",
    "gelu": r"{x} \cdot \Phi({x})",
    "gelu-tanh": r"\tfrac{1}{2}\,{x}\,\left(1 + \tanh\!\left(\sqrt{2/\pi}\,({x} + 0.044715\,{x}^3)"
    r"\right)\right)",
    "tanh": r"\tanh({x})",
}


def formula(stage: Stage, config: TransformerConfig) -> str:
    """How the stage follows from those it reads, as this model does it."""
    return FORMULAS[stage.kind](stage, config)


def sentence(stage: Stage, config: TransformerConfig) -> str:
    """What happens there."""
    if stage.kind == "pooled":
        return POOLED[config.pooling]
    if stage.kind == "scores" and config.scale == 1:
        return UNSCALED if config.attention_cap is None else BENT
    return SENTENCES[stage.kind]


def symbol_of(name: str, config: TransformerConfig) -> str:
    """What a stage is called in the formulas, its own and those of the stages that read it."""
    if name == "encoder.final" and config.kind == "encoder-decoder":
        return "m"
    tail = name.split(".")[-1]
    if name.endswith(("_attn.norm", "mlp.norm")) or tail == "final":
        return "y"
    named = {"concat": "H", "hidden": "h", "pooled": "c", "transform": "c", "out_norm": "z"}
    return named.get(tail, "x")


def symbol_read(stage: Stage, config: TransformerConfig) -> str:
    """What the stage that is read is called; cross-attention reads its keys from the memory."""
    if stage.branch == "cross_attn" and not stage.reads[0].startswith(f"{stage.stack}."):
        return "m"
    return symbol_of(stage.reads[0], config)


def norm(stage: Stage, config: TransformerConfig) -> str:
    made = symbol_of(stage.name, config)
    x = "z" if made == "z" else "x"
    becomes = r"\leftarrow" if made in ("x", "z") else "="
    if config.norm == "rms":
        size = rf"\sqrt{{\tfrac{{1}}{{d}}\sum {x}_i^2 + {_eps(config)}}}"
        return rf"{made} {becomes} \gamma \odot \frac{{{x}}}{{{size}}}"
    size = rf"\sqrt{{\sigma^2 + {_eps(config)}}}"
    return rf"{made} {becomes} \gamma \odot \frac{{{x} - \mu}}{{{size}}} + \beta"


def _eps(config: TransformerConfig) -> str:
    eps = f"{config.norm_eps:.0e}".replace("e-0", "e-")
    is_power = eps.startswith("1e") and float(eps) == config.norm_eps
    return rf"10^{{{eps.split('e')[1]}}}" if is_power else three(config.norm_eps)


def _head_norm(stage: Stage, config: TransformerConfig) -> str:
    """Of the queries or the keys; both by their root mean square, whatever other norms are."""
    x = stage.name.split(".")[-1][0]
    size = rf"\sqrt{{\tfrac{{1}}{{w}}\sum {x}_i^2 + {_eps(config)}}}"
    return rf"\hat {x} = \gamma \odot \frac{{{x}}}{{{size}}}"


def _projected(stage: Stage, config: TransformerConfig) -> str:
    letter = LETTER[stage.name.split(".")[-1][0]]
    reads = symbol_read(stage, config)
    bias = rf" + b_{letter}" if config.qkv_bias else ""
    heads = config.n_heads if letter == "Q" else config.kv_heads
    made = rf"{letter} = {reads}\,W_{letter}{bias}, \quad \text{{cut into {heads} heads}}"
    is_stream = reads == "m" and not stage.reads[0].endswith(".final")
    return made + (r", \quad m = x \text{ of the encoder}" if is_stream else "")


def _scores(stage: Stage, config: TransformerConfig) -> str:
    width = config.head_width
    is_root = math.isclose(config.scale, width**-0.5)
    factor = "" if config.scale == 1 else rf"{three(config.scale)} \, "
    product = r"q_i \cdot k_j"
    scaled = rf"\frac{{{product}}}{{\sqrt{{{width}}}}}" if is_root else f"{factor}{product}"
    if config.attention_cap is None:
        return rf"s_{{ij}} = {scaled}"
    cap = three(config.attention_cap)
    return rf"s_{{ij}} = {cap} \tanh\left(\frac{{1}}{{{cap}}} \cdot {scaled}\right)"


def _embed(stage: Stage, config: TransformerConfig) -> str:
    scaled = rf"\sqrt{{{config.d_model}}}\; " if config.scale_embedding else ""
    begins = config.positions not in ("sinusoidal", "learned") and not config.n_segments
    return rf"{'x' if begins else 'e'}_t = {scaled}E[\mathrm{{id}}_t]"


def _positions(stage: Stage, config: TransformerConfig) -> str:
    if config.positions == "learned":
        offset = f" + {config.position_offset}" if config.position_offset else ""
        return rf"p_t = P[t{offset}]"
    d = config.d_model
    angle = rf"\frac{{t}}{{10000^{{2i/{d}}}}}"
    if config.pairs == "halves":
        return rf"p_t = \left[\sin{angle},\; \cos{angle}\right] \text{{, all sines first}}"
    return rf"p_{{t,2i}} = \sin{angle}, \quad p_{{t,2i+1}} = \cos{angle}"


def _begin(stage: Stage, config: TransformerConfig) -> str:
    added = {"embed": "e_t", "pos_embed": "p_t", "segment_embed": "s_t"}
    return "x_t = " + " + ".join(added[name.split(".")[-1]] for name in stage.reads)


def _bias(stage: Stage, config: TransformerConfig) -> str:
    if config.positions == "alibi":
        return r"b_{ij} = -m_h\,|i - j|"
    return r"b_{ij} = B_h[\mathrm{bucket}(j - i)]"


def _masked(stage: Stage, config: TransformerConfig) -> str:
    added = "s_{ij} + b_{ij}" if len(stage.reads) > 1 else "s_{ij}"
    cases = rf"{added} & i \text{{ may look at }} j \\ -\infty & \text{{else}}"
    return rf"s_{{ij}} \leftarrow \begin{{cases}} {cases} \end{{cases}}"


def _linear(stage: Stage, config: TransformerConfig) -> str:
    tail = stage.name.split(".", 2)[2]
    if tail.endswith("attn.out"):
        return r"z = H\,W_O" + (" + b_O" if config.has_out_bias else "")
    names = {"mlp.up": ("u", "W_1", "b_1"), "mlp.gate": ("g", "W_g", "b_g")}
    names["mlp.out"] = ("z", "W_2", "b_2")
    made, weight, bias = names[tail]
    x = symbol_read(stage, config)
    return rf"{made} = {x}\,{weight}" + (f" + {bias}" if config.has_mlp_bias else "")


def _activation(stage: Stage, config: TransformerConfig) -> str:
    x = "g" if config.gated else "u"
    made = ACTIVATIONS[config.activation].replace("{x}", x)
    return rf"h = {made}" + (r"\;\odot\; u" if config.gated else "")


def _pooled(stage: Stage, config: TransformerConfig) -> str:
    x = symbol_read(stage, config)
    return {
        "first": rf"c = {x}_{{\text{{first}}}}",
        "last": rf"c = {x}_{{\text{{last}}}}",
        "mean": rf"c = \frac{{1}}{{T}}\sum_t {x}_t",
    }[config.pooling]


def _class_hidden(stage: Stage, config: TransformerConfig) -> str:
    return "h = " + ACTIVATIONS[config.classifier_activation].replace("{x}", "c\\,W + b")


def _class_logits(stage: Stage, config: TransformerConfig) -> str:
    x = "c" if config.d_classifier is None else "h"
    return rf"\ell = {x}\,W" + (" + b" if config.classifier_bias else "")


def _transform(stage: Stage, config: TransformerConfig) -> str:
    x = symbol_read(stage, config)
    return rf"c = \mathrm{{Norm}}(f({x}\,W + b)), \quad f = \text{{{config.activation}}}"


def _logits(stage: Stage, config: TransformerConfig) -> str:
    weight = r"E^\top" if config.tie_embeddings else "W"
    scale = "" if config.logit_scale == 1 else rf"{three(config.logit_scale)} \cdot "
    made = rf"{scale}{symbol_read(stage, config)}\,{weight}" + (
        " + b" if config.has_head_bias else ""
    )
    if config.logit_cap is None:
        return rf"\ell = {made}"
    cap = three(config.logit_cap)
    return rf"\ell = {cap} \tanh\left(\frac{{{made}}}{{{cap}}}\right)"


FORMULAS: dict[str, Callable[[Stage, TransformerConfig], str]] = {
    "tokens": lambda *_: r"\mathrm{id}_t = \text{place of token } t \text{ in the vocabulary}",
    "embed": _embed,
    "positions": _positions,
    "segments": lambda *_: r"s_t = S[\text{sentence of } t]",
    "begin": _begin,
    "norm": norm,
    "norm behind": norm,
    "final": norm,
    "projected": _projected,
    "head norm": _head_norm,
    "turned": lambda *_: (
        r"(a, b) \mapsto (a\cos\varphi - b\sin\varphi,\; a\sin\varphi + "
        r"b\cos\varphi), \quad \varphi = t\,\theta_i"
    ),
    "products": lambda *_: r"q_i \cdot k_j = \sum_n q_{in}\,k_{jn}",
    "scores": _scores,
    "bias": _bias,
    "masked": _masked,
    "weights": lambda *_: r"a_{ij} = \frac{e^{s_{ij}}}{\sum_{j'} e^{s_{ij'}}}",
    "head out": lambda *_: r"o_i = \sum_j a_{ij}\,v_j",
    "concat": lambda *_: r"H = [\,o^{(0)},\; o^{(1)},\; \dots\,]",
    "linear": _linear,
    "add": lambda *_: r"x \leftarrow x + z",
    "activation": _activation,
    "transform": _transform,
    "pooled": _pooled,
    "class hidden": _class_hidden,
    "class logits": _class_logits,
    "logits": _logits,
    "probabilities": lambda *_: r"p_v = \frac{e^{\ell_v}}{\sum_{v'} e^{\ell_{v'}}}",
}
UNSCALED = "This model scales nothing: the products themselves are the scores."
BENT = "This model scales nothing; large products are bent towards a bound."
POOLED = {
    "first": "The first token's vector stands for the whole text and all others end here: what "
    "they had to say came to it through attention.",
    "last": "The last token's vector stands for the whole text and all others end here: what "
    "they had to say came to it through attention.",
    "mean": "The mean of all tokens' vectors stands for the whole text.",
}
SENTENCES = {
    "tokens": "What the model reads: one number for each token.",
    "embed": "Each number picks its row of the embedding table.",
    "positions": "One vector for each position, to be added.",
    "segments": "One vector for the first sentence, one for the second, to be added.",
    "begin": "They are added up: here the residual stream begins.",
    "norm": "Read by what follows; the stream itself stays as it is.",
    "norm behind": "The stream itself is normed, and goes on like this.",
    "final": "The last norm of the stream.",
    "projected": "Projected once for all heads, then cut into heads.",
    "head norm": "Every head's vectors are normed.",
    "turned": "Pairs of numbers are turned by an angle that grows with the position.",
    "products": "Every query times every key.",
    "scores": "Scaled, so that wide heads have no larger scores.",
    "bias": "What the distance of query and key adds to their score.",
    "masked": "What may not be looked at is taken out.",
    "weights": "Each row becomes shares that add up to 1.",
    "head out": "The values, weighted and added up for each query.",
    "concat": "The outputs of all heads, side by side.",
    "linear": "A matrix of weights is applied to every token.",
    "add": "What was computed is added to the stream.",
    "activation": "Number by number; small or negative ones are held back.",
    "transform": "One more layer before the words.",
    "class hidden": "The hidden layer of the head.",
    "class logits": "One number for each class.",
    "logits": "One number for each token of the vocabulary.",
    "probabilities": "The logits as shares that add up to 1.",
}
