"""The fourteen mistakes of the documents: where each stands, what is right, what gives it away."""

from __future__ import annotations

from dataclasses import dataclass

HANDOUT, NOTEBOOK, WEB = "lecture handout", "notebook tutorial", "web tutorial"
README = "repository's README"


@dataclass(frozen=True)
class Exhibit:
    """One mistake. `name` is its key in `MISTAKES`, by which a model can be given it.

    `sign` names the instrument that gives it away, `telling` says in a sentence how.
    """

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
        "The loop over the dimensions already steps by two, and the code writes 2i/d for the "
        "sine and 2(i + 1)/d for the cosine.",
        "i/d for both of a pair: a sine and its cosine share one frequency.",
        "Positions",
        "The product of two positions no longer depends on their distance alone, and far more "
        "dimensions stand still.",
    ),
    Exhibit(
        2,
        "batch-softmax",
        "Softmax over the batch",
        NOTEBOOK,
        "F.softmax is called without a dimension; on three dimensions it takes the first, which "
        "is the batch.",
        "Over the vocabulary, and only where probabilities are wanted.",
        "What leaves the model",
        "With one sentence in the batch every probability is 1, the likeliest token is always "
        "number 0, and no gradient comes back.",
    ),
    Exhibit(
        3,
        "lost-target",
        "The target is lost",
        NOTEBOOK,
        "The decoder attends to the encoder's output where it should attend to itself, and the "
        "residual adds that instead of the target's stream.",
        "Self-attention and residual run over the target's own stream.",
        "Another target",
        "The target reaches the logits only through the questions of cross-attention: silence "
        "that, and the target does not matter at all.",
    ),
    Exhibit(
        4,
        "never-appends",
        "Writing that never appends",
        NOTEBOOK,
        "Each step feeds back one token, always at position 0. It never stops at the end token, "
        "fails at a batch of two, and leaves dropout on.",
        "Append every token, stop at the end token, any batch, dropout off.",
        "Writing",
        "What it writes goes round in a circle: each token follows from the last one alone.",
    ),
    Exhibit(
        5,
        "shared-projection",
        "One projection for all heads",
        NOTEBOOK,
        "The stream is cut into slices first, and the same small matrix projects every slice.",
        "Every head has its own projection of the whole stream.",
        "Swapped slices",
        "Swapping two slices of the input only swaps two heads, and the model is much smaller.",
    ),
    Exhibit(
        6,
        "fixed-heads",
        "The decoder always has eight heads",
        NOTEBOOK,
        "The number of heads and the expansion factor stand as 8 and 4 in the decoder, whatever "
        "is asked for.",
        "Both are passed through.",
        "Shapes",
        "The heads of the decoder have another width than those of the encoder.",
    ),
    Exhibit(
        7,
        "no-padding-mask",
        "No padding mask",
        f"{NOTEBOOK} and {WEB}",
        "Filler tokens are looked at like any other: in the source, the target and the memory.",
        "A mask that hides filler, wherever keys come from.",
        "Filler",
        "Filler behind the sentence moves the logits; under a mask it moves nothing.",
    ),
    Exhibit(
        8,
        "softmax-twice",
        "Softmax twice",
        NOTEBOOK,
        "The model ends in a softmax, and cross-entropy takes another one.",
        "The model returns logits.",
        "What leaves the model",
        "What leaves the model lies between 0 and 1 and sums to 1, so the loss cannot come near "
        "0 however sure the model is.",
    ),
    Exhibit(
        9,
        "filled-row",
        "A number in place of a mask",
        f"{HANDOUT}, {NOTEBOOK} and {WEB}",
        "Forbidden scores become −1e9 or −1e20. A row that may see nothing then looks at "
        "everything alike; −∞ gives no number at all; in half precision −1e9 does not exist.",
        "The lowest finite number of the dtype, then zeros for the row.",
        "An empty row",
        "A row that may see nothing should sum to 0: under a number it sums to 1, under −∞ it is "
        "NaN.",
    ),
    Exhibit(
        10,
        "dropped-weights",
        "Weights computed and dropped",
        HANDOUT,
        "The heads throw their weights away, and no mask ever reaches them.",
        "Weights are shown, and the mask arrives.",
        "Causality check",
        "There is nothing to draw, and a token later in the sentence moves what the model makes of "
        "those before it.",
    ),
    Exhibit(
        11,
        "printed-count",
        "A count that is not the model's",
        WEB,
        "Total parameters: 398,272 stands under the code of the encoder.",
        "520,064 = 320,000 + 4 × 49,984 + 128.",
        "",
        "The ledger of the parts adds up to another number.",
    ),
    Exhibit(
        12,
        "random-labels",
        "Learning noise, measured on itself",
        WEB,
        "Labels are drawn at random, accuracy is measured on the batch just learned, with "
        "dropout on, from no fixed seed, and the first token is no [CLS].",
        "Real labels, a held-out set, dropout off, fixed seeds, a <cls> token in front.",
        "",
        "Accuracy on the training batch rises while held-out accuracy stays at a coin's.",
    ),
    Exhibit(
        13,
        "norm-order",
        "Post-norm in words, pre-norm in code",
        README,
        "The equations norm the sum of stream and part; the code norms what the part reads.",
        "Say which one runs: the same weights mean something else under the other.",
        "The stream",
        "After a norm of the sum, the stream leaves every block with the size of the norm's own "
        "weights; before it, the stream grows from block to block.",
    ),
    Exhibit(
        14,
        "wrong-scale",
        "Scaled by 1/√d_x",
        HANDOUT,
        "“Scaled by 1/√d_x”, where d_x is not defined, and “each dimension is scaled uniquely”. "
        "Read as the width of the stream, the scale is too small.",
        "1/√d_k, the width of a head; and each pair of sine and cosine shares one frequency.",
        "The scale",
        "The scores are q·k times another number, and the weights are flatter.",
    ),
)
BY_LABEL = {exhibit.label: exhibit for exhibit in EXHIBITS}
FINDABLE = tuple(exhibit for exhibit in EXHIBITS if exhibit.sign)
