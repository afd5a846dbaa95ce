"""Every parameter that an address can have: its control, its default, its range and its pages.

The widget, the check of an address, the list of controls that a link can hide, and
`docs/addresses.md` (written by `python -m docs.addresses`) all read the same row here.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from explorer.inference.generation_limits import MAX_GENERATED
from explorer.interventions.address_text import MAX_PATCH_TEXT

TEXT_LIMIT = 2_000
"""Characters of a text in an address, which must stay short enough for browsers and servers."""

VERSION = 3
"""The version of addresses, raised when a parameter or an option gets another name."""

OF_LESSON = ("lesson", "lesson_step")
AROUND = ("present", "hidden", "sidebar")
"""Parameters about the app around the page, which every link repeats."""

Kind = Literal["text", "option", "switch", "token", "whole number", "number", "list", "state"]
"""A token is its place and its label, "2 · cat". A view writes a state for itself."""
DEFAULTS = {"option": "the first", "token": "the last", "text": "none", "list": "none"}
DEFAULTS |= {"state": "none"}
"""The usual default of a kind, in words."""
ANY = {"switch": "true or false", "token": "a token of the text"}
"""The possible values of a kind, in words."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of the address; without `pages`, of every page."""

    name: str
    label: str = ""
    """The label of its control."""
    about: str = ""
    """The possible values, in words."""
    default: str = ""
    """The default in words, if it depends on what is on screen and is not that of its kind."""
    kind: Kind = "option"
    usual: Any = None
    """The default, if it is always the same."""
    low: float = 0
    high: float = 0
    step: float | None = None
    most: int = 0
    """Characters of a text, or values of a list."""
    help: str = ""
    inside: str = ""
    """The panel whose control it is."""
    pages: tuple[str, ...] = ()

    @property
    def values(self) -> str:
        """The possible values and their range, in words."""
        bounds = ""
        if self.most and self.kind == "text":
            bounds = f"up to {self.most:,} characters"
        elif self.high:
            bounds = f"from {self.low:,g} to {self.high:,g}".replace("-", "−")
        elif self.kind in ANY and not self.about:
            bounds = ANY[self.kind]
        return ", ".join(filter(None, (self.about, bounds)))


text = partial(Parameter, kind="text", most=TEXT_LIMIT)
option = partial(Parameter, kind="option")
token = partial(Parameter, kind="token")
items = partial(Parameter, kind="list")
switch = partial(Parameter, kind="switch", usual=False)
panel = partial(switch, about="whether the panel is open")
place = partial(Parameter, kind="whole number")
"""A whole number whose range depends on what is on screen."""


def number(name: str, label: str, low: float, high: float, usual: float, **more: Any) -> Parameter:
    """A number with a fixed range; whole if its default is."""
    kind: Kind = "number" if isinstance(usual, float) else "whole number"
    return Parameter(name, label, kind=kind, usual=usual, low=low, high=high, **more)


def state(name: str, about: str, default: str = "") -> Parameter:
    return Parameter(name, "", about, default, "state")


def _source_sentence(name: str) -> Parameter:
    label = "Source sentence (same number of tokens)"
    return text(name, label, "a text of as many tokens", most=MAX_PATCH_TEXT)


PARAMETERS: list[Parameter] = []
STRONGEST = "that of the strongest ordinary cell"


def _on(pages: str, *rows: Parameter, inside: str = "") -> None:
    PARAMETERS.extend(replace(row, pages=tuple(pages.split()), inside=inside) for row in rows)


_on(
    "",
    text("text", "Your sentence", default="the model's example"),
    state("text_file", "the hash of a longer text, which this server has"),
    state("special", "true where special tokens in the text are read as such", "false"),
    text("pair", "Second sentence", about="the second sentence"),
    option(
        "model",
        "Model",
        "the name of a model that can be opened",
        "translation; where nothing is asked for, SmolLM2 if it is there",
    ),
    option("part", "Attention", "a kind of attention of the model", "the one worth seeing first"),
    place("layer", "Layer", "from 0 to the last layer", "the one worth seeing first"),
    place("head", "Head", "from 0 to the last head", "the one worth seeing first"),
    option("training_step", "Step", "a snapshot of the model's training", "the trained model"),
    state("lesson", "the name of the lesson that is open"),
    place("lesson_step", "Step of the lesson", "a step of the lesson, from 1", "1"),
    replace(
        state("edits", "the interventions as text, also where a page shows the pass without them"),
        label="Interventions",
        help="The text in the address: a link with it has the same interventions.",
    ),
    switch("present", "Present", about="true in presenter mode"),
    items("hidden", "", "the controls that a class does not see, see `links.py`"),
    option("sidebar", "", "folded", "unfolded"),
    place("version", "", "that of the app which made the link", "this one"),
    panel("code", "Code"),
    panel("export", "Export"),
)
_on(
    "overview",
    place("answer", "Answer", "the place of an answer", "the last, the mask or the first"),
    state("traced", "a token that is traced, such as d2, or e0 in the encoder"),
    Parameter(
        *("least", "Importance at least", "the smallest edge drawn, from 0.001 to 0.5", "0.005"),
        kind="number",
    ),
    state("block", "a layer that is open, such as d2, or e0 of the encoder"),
)
_on(
    "attention",
    panel("adjust", "Display options"),
    option("view", "View", "how the large head is drawn"),
)
_on(
    "attention",
    option("heads", "Heads", "the chosen head, or the mean or largest of several"),
    option(
        "weighting",
        "Weighting",
        "what a weight is multiplied by",
        help="Value norm: each weight times the norm of the key's value after the output "
        "projection (Kobayashi et al. 2020).",
    ),
    option(
        "colours",
        "Colour scale",
        "the range of the colour scale",
        "1",
        help="The value at the end of the colour scale: 1, or the maximum of the matrix, of "
        "each row or of each column. The numbers do not change. With value norms, 1 "
        "means the maximum of the matrix.",
    ),
    option(
        "sentences",
        "Sentences",
        "which sentence attends to which",
        help="A is your sentence, B the second one.",
    ),
    switch("hide_first", "Hide the first token"),
    switch("hide_special", "Hide special tokens"),
    switch("words", "Merge words"),
    switch("log", "Log colour scale"),
    items(
        "hide",
        "Hidden keys",
        "up to 24 keys of the text",
        most=24,
        help="Every row is rescaled without the hidden keys. A click on the label of a "
        "column hides it too.",
    ),
    number(
        "mass",
        "Cumulative attention mass, %",
        10,
        100,
        100,
        step=5,
        help="Shows the fewest keys of each row that reach this share of its weight.",
    ),
    inside="adjust",
)
_on(
    "overview attention head_steps interventions",
    state("pinned", "a query and a key by their places, such as q5k2"),
    state("drawn", "heads drawn as lines, such as 0.2.3, or all", "the chosen head"),
)
_on(
    "heads",
    panel("flow_sankey", "Layer by layer"),
    option("side", "View", "a view of all heads"),
    option(
        "metric",
        "Metric",
        "a head metric",
        "the one that fits the task",
        help="Metrics without a value for this text are not listed, such as induction where "
        "no token repeats.",
    ),
    option("best_is", "Order", "highest or lowest", "the one that fits the metric"),
    option("best", "Heads shown", "how many heads are listed"),
    option("arranged", "Order of the heads", "the order of the heads"),
    option("across", "Across", "a measure of heads", "the mean distance, or the entropy"),
    option("up", "Up", "a measure of heads", "the previous-token score, or the diagonal score"),
    option("decile", "Decile", "a tenth of all weights, from 1 to 10", "10"),
    text("own_lines", "Your lines", "a text of several lines", "built-in lines"),
    option("through", "Through layer", "from 0 to the last layer", "the last layer"),
    token("flow_to", "Token"),
    option("answer_of", "Answer", "one of the likeliest options"),
    text("first_token", "Another first token", "one token", most=60),
)
_on(
    "head_steps",
    option("up_to", "Steps up to", "a stage of the head", "the first"),
    place("queries", "Queries", "the first query shown of a long text", "around the pinned"),
    place("keys", "Keys", "the first key shown of a long text", "around the pinned"),
)
_on("masks", option("example", "Example", "a text or a batch of texts", "“I am a student”"))
_on(
    "query_key",
    token("query", "Query", "a query of the text", STRONGEST),
    token("key", "Key", "a key of the text", "the key with the largest weight"),
    option("pair_view", "View", "what is shown of the pair", "the products"),
    option("against", "Compared with", "a visible key, the mean of all others, or nothing"),
    state("trail", "the cells that were followed back, such as 0.3.1q5k2-0.2.0q5k1"),
    option("order", "Order of the dimensions", "the order of the dimensions"),
)
_on(
    "query_key forward_pass",
    place(
        "number",
        "Residual stream dimension",
        "a dimension of the residual stream",
        "the largest, or the first",
    ),
)
_on(
    "forward_pass",
    option(
        "stage", "Stage", "the name of a site, such as decoder.0.mlp.out", "the attention weights"
    ),
    place("encoder_token", "Encoder token", "a place in the encoder's text", STRONGEST),
    place("decoder_token", "Decoder token", "a place in the decoder's text", STRONGEST),
    place("key_token", "Key token", "a place among the keys", "the key with the largest weight"),
    place("option", "Option", "a token ID, or a class", "the likeliest"),
    panel("notebook_batch", "The notebook's batch, 32 × 10"),
    panel("neuron_lines", "Lines that fire this neuron"),
)
_on(
    "circuits forward_pass",
    option("lines_from", "Lines from", "a text whose lines are searched"),
)
_on(
    "overview logit_lens query_key",
    option("shown_pass", "Pass", "before or after the interventions", "after, on Logit lens both"),
)
_on("logit_lens", option("logit_of", "Parts of the logit of", "one of the likeliest options"))
OF_TEMPERATURE = "0 always takes the likeliest token; the higher, the more often an unlikely one."
OF_TOP_P = "Keep the likeliest tokens that have this probability together."
OF_ALPHA = "At 0 short texts win: every token lowers the sum. The higher, the longer."
_on(
    "generation",
    option("way", "Way", "a way of generating"),
    text("chat_system", "System", "a chat's system message", most=1_000),
    text("chat_user", "User", about="a chat's message", default="the text"),
    switch(
        "chat_answer", "Add generation prompt", "whether the prompt begins an answer", usual=True
    ),
    number("length", "New tokens", 1, MAX_GENERATED, 12),
    number("temperature", "Temperature", 0.0, 3.0, 1.0, step=0.05, help=OF_TEMPERATURE),
    number("top_k", "Top-k (0: off)", 0, 1_000, 0, help="Keep the k likeliest tokens."),
    number("top_p", "Top-p", 0.01, 1.0, 1.0, step=0.01, help=OF_TOP_P),
    number("seed", "Seed", 0, 9_999, 0, help="The same seed samples the same tokens again."),
    state("branches", "tokens generated so far, and where they branch"),
    place("written", "Token", "how many tokens of the branch are shown", "all"),
    number("beams", "Beams", 1, 8, 4, help="So many beginnings are kept at every step."),
    number("alpha", "Length penalty α", 0.0, 2.0, 0.6, step=0.1, help=OF_ALPHA),
    place("given", "Tokens given", "from 1 to the last token but one", "half of the text"),
    text("target", "Target", "the reference answer", "the task's own", most=400),
)
_on(
    "positions",
    panel("position_surface", "Surface over two positions"),
    option("scheme", "Scheme", "a scheme of positions", "the model's own"),
    option("other_scheme", "Beside it", "another scheme, beside the first", "none"),
    option(
        "similar_by",
        "Similarity of two positions",
        "dot product or cosine similarity",
        "cosine of two schemes",
    ),
    option("lab", "View", "an experiment with positions"),
    option("table_width", "Width", "a width of the table"),
    place("dimensions", "Pair of dimensions", "a pair of dimensions", "0"),
    place("place", "Position", "a position", "3"),
    option("order_of", "Order", "a permutation of the tokens"),
    token("swap_one", "First token", default="the first"),
    token("swap_other", "Second token"),
    text(
        "places",
        "Positions in the new order",
        about="every place once, in their new order",
        default="as they stand",
    ),
    option("times", "Length", "a length, in lengths of training", "the longest"),
    option("width", "Width", "a width of the table"),
)
_on(
    "tokens",
    place("step", "Step", "a step of the tokenizer", "the last"),
    items("beside", "Compare with", "up to 6 other tokenizers", "those trained here", most=6),
)
_on(
    "embedding_space",
    option("space_of", "Axes", "what the axes are taken from", "the token embedding"),
    option("of_stack", "Stack", "the encoder or the decoder", "the encoder, usually"),
    token("near", "Nearest to"),
    switch("in_3d", "3-D", about="whether the space has three axes"),
    text("near_text", "or type a token", "one token", most=60),
)
_on(
    "tokenizer_training tokens",
    option("learn_how", "Algorithm", "an algorithm"),
    option("learn_from", "Training text", "a text to train on"),
    option("learn_rules", "Maximum new tokens", "the most merges", "100"),
    text("learn_own", "Your text", about="a text to train on"),
)
_on(
    "tokenizer_training",
    place("learn_step", "Merges", "how many merges are shown", "half of them"),
    place("learn_encode", "Encoding step", "how many merges are applied to the text", "all"),
    place("learn_size", "Size", "a size of the vocabulary", "the middle one"),
)
_on("interventions logit_lens heads", token("expected_at", "Output position", "an output position"))
_on(
    "interventions heads",
    text("head_program", "A program of your own", "a text of the grammar of programs", most=160),
)
_on(
    "heads",
    text("program_lines", "Lines", "the lines that programs are fitted and scored on", "the app's"),
)
_on(
    "interventions",
    option("look", "View", "what is shown of the changed pass"),
    option("against", "Compared with", "the pass that it is compared with", "the unchanged pass"),
    option("watched", "Tracked token", "the token whose probability is followed"),
    option("change", "Intervention", "a kind of intervention"),
    option("becomes", "Ablation value", "what the output of a head or block becomes"),
    token("edge_query", "Query", "a query of the text", "the pinned one, or the last"),
    token("edge_key", "Key", "a key of the text", "the pinned one, or that of the largest weight"),
    option("edge_in", "Heads", "this head, or every head of the layer"),
    option("edge_becomes", "Set the weight to", "what the weight becomes"),
    option("mask_how", "Masking", "a way of editing the mask"),
    option("mask_where", "Layers", "this layer, or every layer"),
    option("mask_preset", "Mask", "a mask", "none"),
    number("mask_size", "Size in tokens", 1, 4_096, 2),
    token("mask_key", "Key", "a key of the text", "the first"),
    token("cell_query", "Query", "a query of the text"),
    token("cell_key", "Key", "a key of the text", "the first"),
    state("token_at", "a place in the text", "the pinned one, or 1"),
    text("new_token", "Replace with", "one token", most=60),
    _source_sentence("patch_text"),
    option("patch_what", "Patched value", "what is patched"),
    token("patch_at", "Position", default="that of the answer, or the last ordinary token"),
    text("lens_from", "Second text", about="a text", default="a word changed", most=MAX_PATCH_TEXT),
    text("steer_toward", "Towards", "a text", most=MAX_PATCH_TEXT),
    text("steer_away", "Away from", "a text", most=MAX_PATCH_TEXT),
    option("heads_are", "Every head is", "what every head becomes"),
    _source_sentence("heads_from"),
    option("number", "Metric", "what is measured of every head"),
    option("click", "A click", "what a click on a head does"),
    option("edges_of", "Edges of", "this head, or the whole layer"),
    number("draw_seed", "Random seed", 0, 9_999, 0),
)
_on(
    "interventions circuits",
    option("steer_by", "Direction", "what a direction is made from"),
    number("steer_strength", "Strength", -10.0, 10.0, 1.0, step=0.25),
)
_on(
    "circuits",
    panel("finding", "Finding"),
    panel("estimates", "Estimates against exact values"),
    text("steer_prompt", "Prompt", default="the corrupted text"),
    text("corrupted", "Corrupted text", about="best of as many tokens", default="a word changed"),
    text("answer_token", "Answer", "one token", "the likeliest, clean", most=60),
    text("against_token", "Against", "one token", "the likeliest, corrupted", most=60),
    option("outcome", "Metric", "what is measured of the output", "the logit difference"),
    option("pair_source", "Pairs of texts", "where the pairs of texts come from", "your two texts"),
    place("pair_count", "Pairs", "from 1 to the limit `pairs`", "5"),
    number("pair_seed", "Seed", 0, 9_999, 0),
    option("pair_shown", "Pair on screen", "one of the pairs"),
    option("circuit_view", "View", "what is shown of the circuit"),
    option("attributed_by", "Estimate", "how parts and edges are estimated"),
    option("circuit_values", "Values", "estimates or exact values"),
    place("circuit_step", "Training step", "a snapshot of the training", "the last"),
    number("patched_edges", "Edges patched exactly", 1, 200, 40),
    option("excited_by", "Activation", "how a head's activation in a line is measured"),
    place("drawn_edges", "Edges drawn", "how many edges the picture draws", "up to 40 strong ones"),
    state("drawn_part", "a head in it, such as 23.3, or an edge, such as e7"),
    option("card_of", "Card of head", "a head at an end of the edge that is open", "where it ends"),
    option("composed_by", "Read by its", "which input of a head reads: Q, K or V", "K"),
    option("patched_value", "Patched", "which value is patched", "the residual stream"),
    option("patch_way", "Direction", "denoising or noising", "denoising"),
    option("patch_number", "Change as", "the share of the difference or the metric", "the share"),
    option("path_end", "Edges", "edges from the chosen head, or into it", "from it, if any"),
    option("path_reads", "Read as", "queries, keys or values", "queries; into a head, keys"),
    token("patched_at", "Position", default="the one that is read"),
)
_on(
    "compare",
    option("with", "Compared with", "what the head is compared with", "another sentence, if any"),
    option("other_layer", "Other layer", "from 0 to the last layer", "the chosen layer"),
    option("other_head", "Other head", "from 0 to the last head", "the next head"),
    text("other_text", "Other sentence", default="an example of as many tokens"),
    option("other_model", "Other model", "the name of a model", "the first of the same kind"),
    option("other_step", "Step", "a snapshot of the training"),
)
_on(
    "museum",
    option("room", "View", "a room of the museum"),
    option("exhibit", "Exhibit", "a mistake", "the fourth"),
    switch("mistake", "Make the mistake", usual=True),
    option("fill", "Filled with", "what masked scores are filled with"),
    option("instrument", "Measure with", "a way of finding mistakes", "Attention map"),
    number("order", "Order seed", 0, 9_999, 284),
    place("question", "Question", "from 1 to the last question", "1"),
    option("system", "System", "a document's system"),
)
_on(
    "runs",
    panel("run_comparison", "Compare runs"),
    panel("own_sweep", "A sweep of your own settings"),
    option("runs_view", "View", "all runs, or races and sweeps", "all runs"),
    text("find", "Search", "words that the row of a run has", most=100),
    option("sort", "Sort by", "what the runs are sorted by", "the newest first"),
    items("runs", "Runs", "the names of the runs that are compared"),
    state("sweep", "the key of a race or sweep", "the newest"),
    option("curves_over", "Over", "steps or seconds", "steps"),
)
_on(
    "training",
    panel("live_forcing", "Teacher forcing and free running"),
    option("task", "Task", "a task"),
    option("training_view", "View", "the run or the data"),
    state(
        "settings",
        "settings of the form by name, such as steps~77~lr~0.01",
        "those of the run on screen, or of the task",
    ),
    text(
        "sentence", "Sentence", most=400, default="that of the other pages, or the task's example"
    ),
    option(
        "start_from",
        "Start from",
        "the model that a run starts from",
        "new weights",
        help="Fine-tuning: a trained model keeps its architecture and its tokenizer. For "
        "labelled sentences it gets a classifier in place of its head.",
    ),
)
_on(
    "training runs",
    option(
        "tokens",
        "Tokens",
        "how a text of the task is read",
        help="Both vocabularies are trained on the training part only. Words that do not occur in "
        "it are unknown; subwords are made of bytes, so they read any text. The tokenizer of "
        "another model keeps its vocabulary, and gets the special tokens that this task needs.",
    ),
)
_on(
    "training inside_training",
    option("run", "Run", "the name of a run", "the one that is training"),
)
_on(
    "training_history",
    option("history_view", "View", "what is shown of the run", "the film"),
    state("film_step", "the step of the film", "the chosen step, else where the head forms"),
    option("first_step", "First step", "the first of two steps", "the first snapshot"),
    option("second_step", "Second step", "the second of two steps", "the last snapshot"),
)
_on(
    "inside_training",
    state("run_task", "a task, whose newest run is shown where no run is named", "any"),
    option("inside_view", "View", "what is shown of the run"),
    place("update_after", "Update", "an update of the run by its place", "the saved state"),
    place("update_stage", "Stage", "a stage of the update", "2"),
    place("update_example", "Example", "an example of the batch", "0"),
    option("update_matrix", "Matrix", "the name of a tensor", "the first query projection"),
    option("scores_part", "Attention", "a kind of attention", "the last"),
    option("scores_metric", "Score", "a head metric", "the maximum weight"),
    text(
        "scores_text",
        "Sentence",
        "the sentence that the heads are scored on",
        "the task's first",
        most=400,
    ),
    option("spectrum_matrix", "Matrix", "the name of a matrix", "the first query projection"),
    option("landscape_by", "Directions", "the directions of the loss landscape", "the training's"),
)
_on(
    "checkpoints",
    option("show", "View", "a view of the weights", "all models"),
    option(
        "ledger", "Parameters of", "the chosen model, or a document's configuration", "the model"
    ),
    option(
        "tensor",
        "Tensor",
        "the name of a tensor in its layer",
        "the query projection",
        help="The layer and the kind of attention are chosen above.",
    ),
    option("cell", "Each cell is", "what a cell stands for", "the mean"),
    option("tensors", "Tensors", "matrices, norms or biases"),
    option("axis", "Axis", "linear or logarithmic", "linear"),
    option("statistic", "Metric", "a head metric"),
)


def of_pages() -> dict[str, frozenset[str]]:
    """The parameters of each page that has any of its own, by the name of the page."""
    pages = {page for row in PARAMETERS for page in row.pages}
    return {
        page: frozenset(row.name for row in PARAMETERS if not row.pages or page in row.pages)
        for page in pages
    }
