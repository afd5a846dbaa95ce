"""Every parameter that an address can have, with the pages that read it.

`docs/addresses.md` is this table for readers; `python -m docs.addresses` writes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TEXT_LIMIT = 2_000
"""Characters of a text in an address, which must stay short enough to be sent."""

VERSION = 1
"""Of the language of addresses: raised when a name or an option of it changes."""

OF_LESSON = ("lesson", "lesson_step")
AROUND = ("present", "hidden", "sidebar")
"""What an address says of the app around the page: it goes on with every link."""

Kind = Literal["text", "option", "switch", "token", "whole number", "number", "list", "state"]
"""A token is its place and its label, "2 · cat". A state is what a view writes for itself."""


@dataclass(frozen=True)
class Parameter:
    """One name in the address. Without pages it belongs to all of them."""

    name: str
    kind: Kind
    values: str
    """Its range, or what can be chosen, in words."""
    default: str
    pages: tuple[str, ...] = ()


def _on(pages: str, *rows: tuple[str, Kind, str, str]) -> tuple[Parameter, ...]:
    return tuple(Parameter(*row, tuple(pages.split())) for row in rows)


PARAMETERS: tuple[Parameter, ...] = (
    *_on(
        "",
        ("text", "text", f"up to {TEXT_LIMIT:,} characters", "the model's example"),
        ("text_file", "state", "the hash of a longer text, which this server has", "none"),
        ("special", "state", "true where the text is a prompt with special tokens", "false"),
        ("pair", "text", f"the second sentence, up to {TEXT_LIMIT:,} characters", "none"),
        (
            "model",
            "option",
            "the name of a model that can be opened",
            "translation; where nothing is asked for, SmolLM2 if it is there",
        ),
        ("part", "option", "a kind of attention of the model", "the one worth seeing first"),
        ("layer", "whole number", "from 0 to the last layer", "the one worth seeing first"),
        ("head", "whole number", "from 0 to the last head", "the one worth seeing first"),
        ("training_step", "option", "a snapshot of the model's training", "the trained model"),
        ("lesson", "state", "the name of the lesson that is open", "none"),
        ("lesson_step", "whole number", "a step of the lesson, from 1", "1"),
        ("present", "switch", "true in presenter mode", "false"),
        ("hidden", "list", "the controls that a class does not see, see `links.py`", "none"),
        ("sidebar", "option", "folded", "unfolded"),
        ("version", "whole number", "that of the app which made the link", "this one"),
        ("code", "switch", "whether the panel with the code is open", "false"),
        ("export", "switch", "whether the panel of the export is open", "false"),
    ),
    *_on("attention", ("adjust", "switch", "whether the display options are open", "false")),
    *_on("heads", ("flow_sankey", "switch", "whether the panel is open", "false")),
    *_on("positions", ("position_surface", "switch", "whether the panel is open", "false")),
    *_on("circuits", ("finding", "switch", "whether the panel is open", "false")),
    *_on("checkpoints", ("parameter_icicle", "switch", "whether the panel is open", "false")),
    *_on(
        "runs",
        ("run_comparison", "switch", "whether the panel is open", "false"),
        ("own_sweep", "switch", "whether the panel is open", "false"),
        ("where_runs_train", "switch", "whether the panel is open", "false"),
    ),
    *_on("training", ("live_forcing", "switch", "whether the panel is open", "false")),
    *_on(
        "overview",
        ("answer", "whole number", "the place of an answer", "the last, the mask or the first"),
        ("traced", "state", "a token that is traced, such as d2, or e0 in the encoder", "none"),
        ("least", "number", "the smallest edge drawn, from 0.001 to 0.5", "0.005"),
        ("block", "state", "a layer that is open, such as d2, or e0 of the encoder", "none"),
    ),
    *_on(
        "attention",
        ("view", "option", "how the large head is drawn", "the first"),
        ("heads", "option", "the chosen head, or the mean or largest of several", "the first"),
        ("weighting", "option", "what a weight is multiplied by", "the first"),
        ("colours", "option", "the range of the colour scale", "1"),
        ("sentences", "option", "which sentence attends to which", "the first"),
        ("hide_first", "switch", "true or false", "false"),
        ("hide_special", "switch", "true or false", "false"),
        ("words", "switch", "true or false", "false"),
        ("log", "switch", "true or false", "false"),
        ("hide", "list", "up to 24 keys of the text", "none"),
        ("mass", "whole number", "from 10 to 100", "100"),
    ),
    *_on(
        "overview attention head_steps interventions",
        ("held", "state", "a query and a key by their places, such as q5k2", "none"),
        ("drawn", "state", "heads drawn as lines, such as 0.2.3, or all", "the chosen head"),
    ),
    *_on(
        "heads",
        ("side", "option", "a view of all heads", "the first"),
        ("metric", "option", "a head metric", "the one that fits the task"),
        ("best_is", "option", "highest or lowest", "the one that fits the metric"),
        ("best", "option", "how many heads are listed", "the first"),
        ("arranged", "option", "the order of the heads", "the first"),
        ("through", "option", "from 0 to the last layer", "the last layer"),
        ("flow_to", "token", "a token of the text", "the last"),
    ),
    *_on(
        "head_steps",
        ("up_to", "option", "a stage of the head", "the last"),
        ("queries", "whole number", "the first query shown of a long text", "around the pinned"),
        ("keys", "whole number", "the first key shown of a long text", "around the pinned"),
    ),
    *_on("masks", ("example", "option", "a batch of texts", "the padded batch, or the sentence")),
    *_on(
        "query_key",
        ("query", "token", "a query of the text", "the last"),
        ("key", "token", "a key of the text", "the key with the largest weight"),
        ("order", "option", "the order of the dimensions", "the first"),
    ),
    *_on(
        "query_key forward_pass",
        (
            "number",
            "whole number",
            "a dimension of the residual stream",
            "the largest, or the first",
        ),
    ),
    *_on(
        "forward_pass",
        ("stage", "option", "the name of a site, such as decoder.0.mlp.out", "the tokens"),
        ("encoder_token", "whole number", "a place in the encoder's text", "the last"),
        ("decoder_token", "whole number", "a place in the decoder's text", "the last"),
        ("key_token", "whole number", "a place among the keys", "the key with the largest weight"),
        ("option", "whole number", "a token ID, or a class", "the likeliest"),
    ),
    *_on("logit_lens", ("logit_of", "option", "one of the likeliest options", "the first")),
    *_on(
        "generation",
        ("way", "option", "a way of generating", "the first"),
        ("chat_system", "text", "a chat's system message, up to 1,000 characters", "none"),
        ("chat_user", "text", f"a chat's message, up to {TEXT_LIMIT:,} characters", "the text"),
        ("chat_answer", "switch", "whether the prompt begins an answer, true or false", "true"),
        ("length", "whole number", "from 1 to 64", "12"),
        ("temperature", "number", "from 0 to 3", "1"),
        ("top_k", "whole number", "from 0 to 1,000; 0 keeps all", "0"),
        ("top_p", "number", "from 0.01 to 1", "1"),
        ("seed", "whole number", "from 0 to 9,999", "0"),
        ("branches", "state", "tokens generated so far, and where they branch", "none"),
        ("written", "whole number", "how many tokens of the branch are shown", "all"),
        ("beams", "whole number", "from 1 to 8", "4"),
        ("alpha", "number", "from 0 to 2", "0.6"),
        ("given", "whole number", "from 1 to the last token but one", "half of the text"),
        ("target", "text", "the reference answer, up to 400 characters", "the task's own"),
    ),
    *_on(
        "positions",
        ("scheme", "option", "a scheme of positions", "the model's own"),
        ("other_scheme", "option", "another scheme, beside the first", "none"),
        ("similar_by", "option", "dot product or cosine similarity", "cosine of two schemes"),
        ("lab", "option", "an experiment with positions", "the first"),
        ("table_width", "option", "a width of the table", "the first"),
        ("dimensions", "whole number", "a pair of dimensions", "0"),
        ("place", "whole number", "a position", "3"),
        ("order_of", "option", "a permutation of the tokens", "the first"),
        ("swap_one", "token", "a token of the text", "the first"),
        ("swap_other", "token", "a token of the text", "the last"),
        ("places", "text", "every place once, in their new order", "as they stand"),
        ("times", "option", "a length, in lengths of training", "the longest"),
        ("width", "option", "a width of the table", "the first"),
    ),
    *_on(
        "tokens",
        ("step", "whole number", "a step of the tokenizer", "0"),
        ("beside", "list", "up to 6 other tokenizers", "those trained here"),
    ),
    *_on(
        "embedding_space",
        ("space_of", "option", "what the axes are taken from", "the token embedding"),
        ("of_stack", "option", "the encoder or the decoder", "that of the chosen attention"),
        ("near", "token", "a token of the text", "the last"),
        ("near_text", "text", "one token, up to 60 characters", "none"),
    ),
    *_on(
        "tokenizer_training tokens",
        ("learn_how", "option", "an algorithm", "the first"),
        ("learn_from", "option", "a text to train on", "the first"),
        ("learn_rules", "option", "the most merges", "100"),
        ("learn_own", "text", f"a text to train on, up to {TEXT_LIMIT:,} characters", "none"),
    ),
    *_on(
        "tokenizer_training",
        ("learn_step", "whole number", "how many merges are shown", "0"),
        ("learn_encode", "whole number", "how many merges are applied to the text", "all"),
        ("learn_size", "whole number", "a size of the vocabulary", "the largest"),
    ),
    *_on("interventions compare circuits", ("edits", "state", "the interventions as text", "none")),
    *_on(
        "interventions logit_lens",
        ("expected_at", "token", "an output position", "the last"),
    ),
    *_on(
        "interventions",
        ("look", "option", "what is shown of the changed pass", "the first"),
        ("against", "option", "the pass that it is compared with", "the unchanged pass"),
        ("watched", "option", "the token whose probability is followed", "the first"),
        ("change", "option", "a kind of intervention", "the first"),
        ("becomes", "option", "what the output of a head or block becomes", "the first"),
        ("edge_query", "token", "a query of the text", "the pinned one, or the last"),
        ("edge_key", "token", "a key of the text", "the pinned one, or the first"),
        ("edge_in", "option", "this head, or every head of the layer", "the first"),
        ("edge_becomes", "option", "what the weight becomes", "the first"),
        ("mask_how", "option", "a way of editing the mask", "the first"),
        ("mask_where", "option", "this layer, or every layer", "the first"),
        ("mask_preset", "option", "a mask", "none"),
        ("mask_size", "whole number", "from 1 to 4,096 tokens", "2"),
        ("mask_key", "token", "a key of the text", "the first"),
        ("cell_query", "token", "a query of the text", "the last"),
        ("cell_key", "token", "a key of the text", "the first"),
        ("token_at", "state", "a place in the text", "the pinned one, or 1"),
        ("new_token", "text", "one token, up to 60 characters", "none"),
        ("patch_text", "text", "a text of as many tokens", "none"),
        ("patch_what", "option", "what is patched", "the first"),
        ("patch_at", "token", "a token of the text", "the last"),
        ("steer_toward", "text", "a text, up to 300 characters", "none"),
        ("steer_away", "text", "a text, up to 300 characters", "none"),
        ("heads_are", "option", "what every head becomes", "the first"),
        ("heads_from", "text", "a text of as many tokens", "none"),
        ("number", "option", "what is measured of every head", "the first"),
        ("click", "option", "what a click on a head does", "the first"),
        ("edges_of", "option", "this head, or the whole layer", "the first"),
        ("draw_seed", "whole number", "from 0 to 9,999", "0"),
    ),
    *_on(
        "interventions circuits",
        ("steer_by", "option", "what a direction is made from", "the first"),
        ("steer_strength", "number", "from −10 to 10", "1"),
    ),
    *_on(
        "circuits",
        ("steer_prompt", "text", f"up to {TEXT_LIMIT:,} characters", "the corrupted text"),
        ("corrupted", "text", f"as many tokens, up to {TEXT_LIMIT:,} characters", "a word changed"),
        ("answer_token", "text", "one token, up to 60 characters", "the likeliest, clean"),
        ("against_token", "text", "one token, up to 60 characters", "the likeliest, corrupted"),
        ("outcome", "option", "what is measured of the output", "the logit difference"),
        ("pair_source", "option", "where the pairs of texts come from", "your two texts"),
        ("pair_count", "whole number", "from 1 to the limit `pairs`", "5"),
        ("pair_seed", "whole number", "from 0 to 9,999", "0"),
        ("pair_shown", "option", "one of the pairs", "the first"),
        ("circuit_view", "option", "what is shown of the circuit", "the first"),
        ("attributed_by", "option", "how parts and edges are estimated", "the first"),
        ("circuit_values", "option", "estimates or exact values", "the first"),
        ("circuit_step", "whole number", "a snapshot of the training", "the last"),
        ("patched_edges", "whole number", "from 1 to 200", "40"),
        ("lines_from", "option", "a text whose lines are searched", "the first"),
        ("excited_by", "option", "how much a head acts in a line: by norm or weight", "the first"),
        ("drawn_edges", "whole number", "how many edges the picture draws", "up to 40 strong ones"),
        ("drawn_part", "state", "a head in it, such as 23.3, or an edge, such as e7", "none"),
        ("card_of", "option", "a head at an end of the edge that is open", "where it ends"),
        ("composed_by", "option", "which input of a head reads: Q, K or V", "K"),
        ("patched_value", "option", "which value is patched", "the residual stream"),
        ("patch_way", "option", "denoising or noising", "denoising"),
        ("patch_number", "option", "the share of the difference or the metric", "the share"),
        ("path_end", "option", "edges from the chosen head, or into it", "from it"),
        ("path_reads", "option", "queries, keys or values", "queries"),
        ("patched_at", "option", "a token by its place", "the one that is read"),
    ),
    *_on(
        "compare",
        ("with", "option", "what the head is compared with", "the first"),
        ("other_layer", "option", "from 0 to the last layer", "the chosen layer"),
        ("other_head", "option", "from 0 to the last head", "the next head"),
        ("other_text", "text", f"up to {TEXT_LIMIT:,} characters", "the text"),
        ("other_model", "option", "the name of a model", "the first of the same kind"),
        ("other_step", "option", "a snapshot of the training", "the first"),
    ),
    *_on(
        "museum",
        ("room", "option", "a room of the museum", "the first"),
        ("exhibit", "option", "a mistake", "the first"),
        ("mistake", "switch", "true or false", "true"),
        ("fill", "option", "what masked scores are filled with", "the first"),
        ("instrument", "option", "a way of finding mistakes", "the first"),
        ("order", "whole number", "from 0 to 9,999", "0"),
        ("question", "whole number", "from 1 to the last question", "1"),
        ("system", "option", "a document's system", "the first"),
    ),
    *_on(
        "runs",
        ("runs_view", "option", "all runs, or races and sweeps", "all runs"),
        ("find", "text", "words that the row of a run has", "none"),
        ("sort", "option", "what the runs are sorted by", "the newest first"),
        ("runs", "list", "the names of the runs that are compared", "none"),
        ("sweep", "state", "the key of a race or sweep", "the newest"),
        ("curves_over", "option", "steps or seconds", "steps"),
    ),
    *_on(
        "training",
        ("task", "option", "a task", "the first"),
        ("training_view", "option", "the run or the data", "the first"),
        ("start_from", "option", "the model that a run starts from", "new weights"),
    ),
    *_on(
        "training inside_training",
        ("run", "option", "the name of a run", "the one that is training"),
    ),
    *_on(
        "training_history",
        ("history_view", "option", "what is shown of the run", "the film"),
        ("film_step", "state", "the step of the film", "the chosen step, else the last"),
        ("first_step", "option", "the first of two steps", "the first snapshot"),
        ("second_step", "option", "the second of two steps", "the last snapshot"),
    ),
    *_on(
        "inside_training",
        ("inside_view", "option", "what is shown of the run", "the first"),
        ("update_after", "whole number", "a step of the run by its place", "the saved state"),
        ("update_stage", "whole number", "a stage of the update", "0"),
        ("update_example", "whole number", "an example of the batch", "0"),
        ("update_matrix", "option", "the name of a tensor", "the first query projection"),
        ("scores_part", "option", "a kind of attention", "the last"),
        ("scores_metric", "option", "a head metric", "the maximum weight"),
        ("scores_text", "text", "the sentence that the heads are scored on", "the task's first"),
        ("spectrum_matrix", "option", "the name of a matrix", "the first query projection"),
        ("landscape_by", "option", "the directions of the loss landscape", "the training's"),
    ),
    *_on(
        "checkpoints",
        ("show", "option", "a view of the weights", "the first"),
        ("ledger", "option", "the chosen model, or a document's configuration", "the model"),
        ("tensor", "option", "the name of a tensor in its layer", "the query projection"),
        ("cell", "option", "what a cell stands for", "the mean"),
        ("tensors", "option", "matrices, norms or biases", "the first"),
        ("axis", "option", "linear or logarithmic", "linear"),
        ("statistic", "option", "a head metric", "the first"),
    ),
)


def of_pages() -> dict[str, frozenset[str]]:
    """The parameters of each page that has any of its own, by the name of the page."""
    pages = {page for row in PARAMETERS for page in row.pages}
    return {
        page: frozenset(row.name for row in PARAMETERS if not row.pages or page in row.pages)
        for page in pages
    }
