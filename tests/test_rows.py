"""Every row of what the bench must do has tests in a browser that do it by hand."""

from __future__ import annotations

import ast

import pytest

from tests.source import ROOT

BROWSER = ROOT / "tests" / "browser"
LOOKING = {
    "type text, no code": ["type_text_no_code"],
    "token, id, bytes, readable pieces": ["token_id_bytes_readable_pieces"],
    "merge subwords to words": [
        "merge_subwords_to_words",
        "words_of_a_published_tokenizer_are_merged",
    ],
    "sentence-pair filter": ["sentence_pair_filter"],
    "one head as a matrix": ["one_head_as_a_matrix_with_numbers"],
    "line (bipartite) view": [
        "line_view_of_512_tokens_no_cdn",
        "line_view_of_any_subset_of_heads_takes_the_same_look",
    ],
    "all heads of a layer; layers × heads overview": [
        "all_heads_of_a_layer_and_layers_by_heads_overview"
    ],
    "q and k vectors, real values": [
        "q_and_k_vectors_with_real_values_of_ours",
        "q_and_k_vectors_of_a_published_model_with_rotary_positions",
    ],
    "encoder, decoder and cross-attention": ["encoder_decoder_and_cross_attention"],
    "padding mask drawn": ["padding_mask_drawn"],
    "hover value, lock, direction, head subset": [
        "hover_value_lock_direction",
        "hover_value_lock_and_both_directions_of_a_token",
        "line_view_of_any_subset_of_heads_takes_the_same_look",
    ],
    "mean/max of heads, mass cut, hide sinks and renormalise, scaling choice": [
        "mean_and_max_of_heads",
        "mass_cut_keeps_the_fewest_keys",
        "hide_sinks_and_renormalise_removed_mass_printed",
        "scaling_choice_by_row_column_or_picture_linear_or_log",
    ],
    "value-norm weighting": ["value_norm_weighting"],
    "rollout, attention flow": ["rollout_and_attention_flow"],
    "head metrics, ranked finder": ["head_metrics_ranked_finder"],
    "head similarity": ["head_similarity"],
    "logit lens": ["logit_lens"],
    "long inputs stay usable": ["long_inputs_stay_usable"],
}
CHANGING = {
    "edit the mask, run again": ["edit_the_mask_and_run_again"],
    "ablate head / layer / edge live": [
        "ablate_a_head_a_layer_and_an_edge_and_undo",
        "every_head_is_ablated_at_once_and_a_click_ablates_one",
    ],
    "patching": ["patching"],
    "mask or replace a token": ["replace_a_token_and_mask_one"],
    "compare prompts / models / steps, difference map": [
        "compare_prompts_and_models",
        "compare_training_steps",
        "compare_two_heads_difference_map",
        "compare_edited_against_plain",
    ],
    "faithfulness test of the map": ["faithfulness_of_a_map"],
    "undo, history in the address": [
        "ablate_a_head_a_layer_and_an_edge_and_undo",
        "the_history_is_in_the_address",
    ],
}
NUMBERS = {
    "tokenizer merge stepper joined to a model": [
        "tokenizer_merge_stepper_joined_to_a_model",
        "the_tie_rule_and_the_textbooks_score_of_wordpiece",
        "a_unigram_loses_pieces_and_cuts_by_their_probabilities",
        "one_sentence_under_several_tokenizers_and_back",
    ],
    "step through the whole model": [
        "step_through_the_whole_model_with_the_keys",
        "step_through_a_classifier_to_its_answer",
        "step_through_a_published_model",
        "every_number_of_the_walk_is_the_models",
    ],
    "score → scale → mask → softmax, staged": [
        "score_scale_mask_softmax_staged_with_real_values_to_the_stream",
        "staged_with_the_bias_of_a_published_model",
        "q_and_k_vectors_with_real_values_of_ours",
    ],
    "equation term ↔ number": [
        "equation_term_and_number_are_linked_both_ways",
        "equation_term_and_number_are_linked_of_a_published_model",
    ],
    "every number is the model's": [
        "every_number_is_the_model_s",
        "a_planted_false_number_is_seen",
    ],
    "parameter ledger": [
        "parameter_ledger_sums",
        "parameter_ledger_of_the_documents_configurations",
    ],
    "code that reproduces the view": ["code_that_reproduces_the_view"],
    "positional encodings; compare schemes": [
        "positional_encodings_compare_six_schemes_of_ours",
        "the_learned_positions_and_the_buckets_are_the_published_models_own",
        "without_positions_a_permuted_sentence_changes_nothing",
        "longer_than_trained_is_really_passed",
    ],
    "temperature/top-k/top-p with live bars": [
        "temperature_top_k_top_p_with_live_bars",
        "force_a_token_branch_and_undo",
        "beam_tree",
    ],
}

TEACHING = {
    "tutorials' mistakes as exhibits": [
        "tutorials_mistakes_as_exhibits",
        "a_published_model_makes_mistakes_too",
        "a_mistake_is_switched_off_and_on",
        "find_it",
        "the_four_systems_are_opened_and_trained",
    ],
}


@pytest.fixture(scope="module")
def tests() -> set[str]:
    """The names of all tests in a browser."""
    nodes = (
        node for path in BROWSER.rglob("test_*.py") for node in ast.parse(path.read_text()).body
    )
    names = (node.name for node in nodes if isinstance(node, ast.FunctionDef))
    return {name.removeprefix("test_") for name in names if name.startswith("test_")}


@pytest.mark.parametrize("row", [*LOOKING, *CHANGING, *NUMBERS, *TEACHING])
def test_a_row_is_done_by_hand(row: str, tests: set[str]) -> None:
    wanted = (LOOKING | CHANGING | NUMBERS | TEACHING)[row]
    assert wanted
    assert set(wanted) <= tests
