"""The fourteen mistakes of the documents: where each is, what is right, what gives it away."""

from dataclasses import dataclass

HANDOUT, NOTEBOOK, WEB = "lecture handout", "notebook tutorial", "web tutorial"
REPOSITORY = "repository README"


@dataclass(frozen=True)
class Exhibit:
    """One mistake; `name` is its key in `MISTAKES`, `sign` the instrument that gives it away."""

    number: int
    name: str
    title: str
    where: str
    error: str
    right: str
    sign: str = ""
    telling: str = ""

    @property
    def label(self) -> str:
        return f"{self.number} · {self.title}"


EXHIBITS = (
    Exhibit(
        1,
        "doubled-exponent",
        "The exponent is doubled",
        NOTEBOOK,
        "The loop over the dimensions already steps by two, and the code has 2i/d for the sine "
        "and 2(i + 1)/d for the cosine.",
        "i/d for both of a pair: a sine and its cosine share one frequency.",
        "Positions",
        "The dot product of two positions should depend on their distance alone: equally far "
        "apart, its standard deviation is 0. With the mistake it is not, and the larger exponents "
        "leave more dimensions that hardly change.",
    ),
    Exhibit(
        2,
        "batch-softmax",
        "Softmax over the batch",
        NOTEBOOK,
        "F.softmax is called without a dimension; on three dimensions it takes the first, which "
        "is the batch.",
        "Over the vocabulary, and only where probabilities are wanted.",
        "Model output",
        "A softmax over a batch of one gives every token probability 1: the sum is the size of "
        "the vocabulary, the argmax is ID 0 whatever the text, and the gradient is zero.",
    ),
    Exhibit(
        3,
        "lost-target",
        "The target is lost",
        NOTEBOOK,
        "The decoder attends to the encoder's output where it should attend to itself, and the "
        "residual adds that instead of the target's stream.",
        "Self-attention and residual run over the target's own stream.",
        "Replaced target",
        "With the mistake the target reaches the logits only through the queries of "
        "cross-attention: with that ablated, the target has no effect at all.",
    ),
    Exhibit(
        4,
        "never-appends",
        "Generation that never appends",
        NOTEBOOK,
        "Each step feeds back one token, always at position 0. It never stops at the end token, "
        "fails at a batch of two, and leaves dropout on.",
        "Append every token, stop at the end token, any batch, dropout off.",
        "Generation",
        "With the mistake each token depends on the last one alone: once a token comes back, the "
        "output repeats in a cycle.",
    ),
    Exhibit(
        5,
        "shared-projection",
        "One projection for all heads",
        NOTEBOOK,
        "The residual stream is split into slices first, and one small matrix projects them all.",
        "Every head has its own projection of the whole residual stream.",
        "Swapped slices",
        "With one projection for all, swapping two slices of the input only swaps two heads, so "
        "the difference is 0; and a projection has d_k² weights instead of d_model².",
    ),
    Exhibit(
        6,
        "fixed-heads",
        "The decoder always has eight heads",
        NOTEBOOK,
        "The number of heads and the expansion factor are fixed at 8 and 4 in the decoder, "
        "whatever the arguments are.",
        "Both arguments are used.",
        "Shapes",
        "Encoder and decoder are given the same number of heads, so their heads should be equally "
        "wide.",
    ),
    Exhibit(
        7,
        "no-padding-mask",
        "No padding mask",
        "notebook and the web tutorial",
        "Padding tokens are attended to like any other: in the source, the target and the memory.",
        "A padding mask, wherever keys come from.",
        "Padding",
        "Under a mask, padding after the sentence changes nothing beyond rounding: a larger change "
        "shows that padding is attended to.",
    ),
    Exhibit(
        8,
        "softmax-twice",
        "Softmax twice",
        NOTEBOOK,
        "The model ends in a softmax, and cross-entropy takes another one.",
        "The model returns logits.",
        "Model output",
        "With the mistake the output is between 0 and 1 and sums to 1, so with V options the loss "
        "cannot fall below log(e + V − 1) − 1 nats, however certain the model is.",
    ),
    Exhibit(
        9,
        "filled-row",
        "A number in place of a mask",
        "lecture handout, the notebook and the web tutorial",
        "Masked scores become −1e9 or −1e20. A fully masked row then attends to every key "
        "equally; with −∞ it is NaN; in float16 −1e9 is out of range.",
        "The lowest finite number of the dtype, then zeros for the row.",
        "Fully masked row",
        "A fully masked row should sum to 0: with a number it sums to 1, with −∞ it is NaN.",
    ),
    Exhibit(
        10,
        "dropped-weights",
        "Weights computed and dropped",
        HANDOUT,
        "The heads do not return their weights, and no mask ever reaches them.",
        "The weights are returned, and the mask is applied.",
        "Causality check",
        "In a causal model a later token changes no prediction before it. Where the mask is lost "
        "it can, and where the weights are lost too there is no map to draw.",
    ),
    Exhibit(
        11,
        "printed-count",
        "Wrong parameter count",
        WEB,
        "“Total parameters: 398,272” is printed below the code of the encoder.",
        "520,064 = 320,000 + 4 × 49,984 + 128.",
        "",
        "The parameters of the parts add up to another number.",
    ),
    Exhibit(
        12,
        "random-labels",
        "Random labels, measured on the training batch",
        WEB,
        "Labels are random, accuracy is measured on the training batch, with dropout on and "
        "without a fixed seed, and the first token is not [CLS].",
        "Real labels, a held-out set, dropout off, fixed seeds, a <cls> token in front.",
        "",
        "Random labels can be memorized, not predicted: only held-out accuracy, which should be "
        "near chance, shows that a rise on the training batch means nothing.",
    ),
    Exhibit(
        13,
        "norm-order",
        "Post-norm in words, pre-norm in code",
        REPOSITORY,
        "The README's equations normalize the sum after a sublayer; the repository's model.py, "
        "read at its commit 7620f86, normalizes the input. Nor does that file parse, and the "
        "repository's Transformer has no generate, which the README calls.",
        "Say which one is used: with the other one the same weights give another model.",
        "Residual stream",
        "With post-norm every block ends in a norm, whose own weights set the size of the stream; "
        "with pre-norm each block adds to the stream, and nothing bounds its size.",
    ),
    Exhibit(
        14,
        "wrong-scale",
        "Scaled by 1/√d_x",
        HANDOUT,
        "“Scaled by 1/√d_x”, where d_x is not defined, and “each dimension is scaled uniquely”. "
        "If d_x is d_model, the scale is too small.",
        "1/√d_k, the width of a head; and each pair of sine and cosine shares one frequency.",
        "Score scale",
        "The scores are q·k / √d_model instead of q·k / √d_k: the smaller the factor, the flatter "
        "the softmax of the same products.",
    ),
)
BY_LABEL = {exhibit.label: exhibit for exhibit in EXHIBITS}
FINDABLE = tuple(exhibit for exhibit in EXHIBITS if exhibit.sign)
