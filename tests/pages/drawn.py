"""What every view draws and says, whatever it is shown of."""

ATTENTION = {
    "Encoder": "encoder.self_attn",
    "Decoder": "decoder.self_attn",
    "Cross": "decoder.cross_attn",
}
MASKS = {"mask_padding", "mask_causal", "mask_both"}
MAPS = {"map_first", "map_second"}
DRAWN: dict[tuple[str, ...], set[str]] = {
    ("attention/heads", "Finder"): {"best_heads", "heads_table", "found_head"},
    ("attention/heads", "Similarity"): {"nearest_heads", "similarity"},
    ("attention/heads", "Map of heads"): {"head_of_map"},
    ("attention/heads", "Distribution"): {"decile_0"},
    ("attention/heads", "Rollout"): {"rollout"},
    ("attention/heads", "Flow"): {"flow"},
    ("attention/heads", "Attribution"): {"attribution"},
    ("generation/generation", "Token by token"): {
        *("decoded", "stages", "branches_tree", "decoded_head", "written_steps")
    },
    ("generation/generation", "Beam search"): {"beam_tree"},
    ("generation/generation", "Teacher forcing"): {"forcing"},
    ("attention/head_steps",): {"stages"},
    ("forward_pass/forward_pass",): {"stage_list", "stage_values"},
    ("attention/masks", "I am a student"): MASKS,
    ("attention/masks", "Your sentence"): {*MASKS, "scores", "masked", "weights"},
    ("attention/masks", "A padded batch"): {*MASKS, "scores", "masked", "weights"},
    ("experiments/compare", "Another head"): {*MAPS, "map_difference"},
    ("experiments/compare", "Another sentence"): {*MAPS, "map_difference"},
    ("experiments/compare", "Your interventions"): {*MAPS, "map_difference"},
    ("experiments/compare", "Another model"): MAPS,
    ("models/checkpoints", "Weights"): {"weights_picture"},
    ("models/checkpoints", "Heads"): {"head_statistics"},
}
SAID = {
    "input/embedding_space": "first two principal components",
    "input/positions": "This is the chosen model's own scheme.",
    "attention/head_steps": "→",
}
