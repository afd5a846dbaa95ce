"""A hostile config.json does no more than print its sentence."""

from __future__ import annotations

import json
from pathlib import Path

from tests.models.hostile import (
    BERT,
    CONFIG,
    GPT2,
    LLAMA,
    PAGE,
    POINTER,
    UGLY,
    Cases,
    config,
    data,
    replaced,
    text,
    value,
)
from tests.models.opening import MOST_MEGABYTES, Opener, all_refused

TERABYTE = {"n_embd": 10**6, "n_head": 10**6, "vocab_size": 10**6, "n_positions": 10**6}

JSON: Cases = {
    "empty": (text(CONFIG, ""), "not readable JSON"),
    "a list": (text(CONFIG, "[]"), "must be a JSON object"),
    "a number": (text(CONFIG, "7"), "must be a JSON object"),
    "null": (text(CONFIG, "null"), "must be a JSON object"),
    "a word": (text(CONFIG, '"gpt2"'), "must be a JSON object"),
    "cut": (text(CONFIG, '{"model_type": "gp'), "not readable JSON"),
    "two objects": (text(CONFIG, "{}{}"), "not readable JSON"),
    "comments": (text(CONFIG, "{} // mine"), "not readable JSON"),
    "deep lists": (text(CONFIG, "[" * 10_000 + "]" * 10_000), "nested too deep"),
    "deep objects": (value("a", '{"a":' * 10_000 + "1" + "}" * 10_000), "nested too deep"),
    "a little too deep": (value("a", "[" * 40 + "]" * 40), "nested too deep"),
    "only opened": (text(CONFIG, "[" * 1_000_000), "too many values"),
    "half a million lists": (value("a", "[" + "[]," * 200_000 + "1]"), "too many values"),
    "a key twice": (value("a", '1, "n_embd": 12'), "it names a key twice"),
    "an inner key twice": (value("a", '{"b": 1, "b": 1}'), "it names a key twice"),
    "NaN": (value("layer_norm_epsilon", "NaN"), "it holds NaN"),
    "infinity": (value("layer_norm_epsilon", "-Infinity"), "it holds -Infinity"),
    "1e999": (value("layer_norm_epsilon", "1e999"), "a number that is too large"),
    "5,000 digits": (value("n_embd", "9" * 5_000), "a number of too many digits"),
    "a fraction of 5,000 digits": (value("n_embd", "0." + "9" * 5_000), "n_embd must be"),
    "90 digits": (value("n_embd", "9" * 90), "must be between"),
    "a byte order mark": (data(CONFIG, b"\xef\xbb\xbf" + json.dumps(GPT2).encode()), "JSON"),
    "UTF-16": (data(CONFIG, json.dumps(GPT2).encode("utf-16")), "is not text"),
    "UTF-16 without a mark": (data(CONFIG, json.dumps(GPT2).encode("utf-16-le")), "JSON"),
    "Latin-1": (data(CONFIG, b'{"model_type": "\xe9"}'), "is not text"),
    "zero bytes": (data(CONFIG, b"\0" * 1000), "not readable JSON"),
    "a zero byte in a word": (value("model_type", '"gpt2\\u0000"'), "gpt2\\x00 is not supported"),
    "half a character": (value("model_type", '"\\ud800"'), "\\ud800 is not supported"),
    "too large": (text(CONFIG, " " * (2 << 20)), "is too large to be one"),
    "a pointer": (text(CONFIG, POINTER), "fetch the file with git lfs pull"),
    "a page": (text(CONFIG, PAGE), "not readable JSON"),
    "run is a number": (text("run.json", "3"), "run.json in one must be a JSON object"),
    "run is deep": (text("run.json", "[" * 10_000), "run.json in one is nested too deep"),
    "run is a page": (text("run.json", PAGE), "run.json in one is not readable JSON"),
}

VALUES: Cases = {
    f"{field} is {shown}": (config(**{field: wrong}), words)
    for field, wrong, shown, words in [
        ("n_embd", "12", "text", "n_embd must be a whole number"),
        ("n_embd", 12.0, "a fraction", "n_embd must be a whole number"),
        ("n_embd", True, "true", "n_embd must be a whole number"),
        ("n_embd", None, "null", "n_embd must be given"),
        ("n_embd", [12], "a list", "n_embd must be a whole number"),
        ("n_embd", {"": UGLY}, "an object", "n_embd must be a whole number"),
        ("n_embd", 0, "nothing", "must be between 1 and"),
        ("n_embd", -12, "below nothing", "must be between 1 and"),
        ("n_embd", 13, "not divisible", "is not divisible by"),
        ("n_head", 0, "nothing", "must be between 1 and"),
        ("n_layer", 0, "nothing", "must be between 1 and"),
        ("n_layer", -1, "below nothing", "must be between 1 and"),
        ("n_layer", 10**9, "a billion", "must be between 1 and"),
        ("n_layer", 201, "201", "must be between"),
        ("n_layer", 200, "more than there is", "asks for 200 layers"),
        ("n_layer", 3, "one too many", "which its config asks for"),
        ("n_inner", -1, "below nothing", "must be between"),
        ("vocab_size", 14, "one too many", "has the shape (13, 12)"),
        ("vocab_size", 2**63, "huge", "must be between"),
        ("n_positions", 15, "one too few", "has the shape (16, 12)"),
        ("layer_norm_epsilon", "1e-5", "text", "layer_norm_epsilon must be a number"),
        ("layer_norm_epsilon", 0, "nothing", "must be between"),
        ("layer_norm_epsilon", [], "a list", "layer_norm_epsilon must be a number"),
        ("activation_function", "swish9", "unknown", "activation that is not supported"),
        ("activation_function", 3, "a number", "activation that is not supported"),
        ("activation_function", UGLY, "ugly", "activation that is not supported"),
        ("activation_function", {}, "an object", "activation that is not supported"),
        ("architectures", "GPT2Model", "a word", "architectures must be a list of names"),
        ("architectures", [["GPT2Model"]], "a deeper list", "must be a list of names"),
        ("tie_word_embeddings", "yes", "text", "tie_word_embeddings must be true or false"),
        ("tie_word_embeddings", 1, "a number", "tie_word_embeddings must be true or false"),
        ("eos_token_id", [[1]], "a deeper list", "eos_token_id must be a whole number"),
        ("eos_token_id", list(range(99)), "a long list", "eos_token_id must be"),
        ("eos_token_id", "1", "text", "eos_token_id must be a whole number"),
        ("pad_token_id", {}, "an object", "pad_token_id must be a whole number"),
        ("scale_attn_by_inverse_layer_idx", True, "true", "is not supported"),
        ("add_cross_attention", 1, "a number", "is not supported"),
        ("model_type", "gpt99", "unknown", "the family gpt99 is not supported"),
        ("model_type", 7, "a number", "the family 7 is not supported"),
        ("model_type", ["gpt2"], "a list", "is not supported"),
        ("model_type", "", "empty", "is not supported"),
        ("model_type", UGLY, "ugly", "is not supported"),
        ("model_type", None, "null", "unknown keys"),
        ("quantization_config", {"quant_method": "gptq"}, "given", "quantization_config"),
    ]
}

OTHERS: Cases = {
    "a terabyte": (config(**TERABYTE), "has the shape"),
    "a terabyte in heads": (config(n_embd=10**6, n_head=1), "has the shape"),
    "a long text": (config(n_positions=10**7), "has the shape"),
    "code of its own": (
        config(model_type="mine", auto_map={"AutoModel": "modeling.Mine"}),
        "code that a folder brings along is never run",
    ),
    "bert with classes by no number": (replaced(BERT | {"id2label": {"a": "b"}}), "id2label"),
    "bert with classes in a list": (replaced(BERT | {"id2label": ["a"]}), "id2label"),
    "bert with a class that is a number": (replaced(BERT | {"id2label": {"0": 1}}), "id2label"),
    "bert with -1 classes": (replaced(BERT | {"num_labels": -1}), "num_labels must be"),
    "bert of 10^9 classes": (replaced(BERT | {"num_labels": 10**9}), "num_labels must be"),
    "bert with relative positions": (
        replaced(BERT | {"position_embedding_type": "relative_key"}),
        "is not supported",
    ),
    "bert that is a gpt2": (replaced(BERT), "lacks "),
    **{
        f"llama with a scaling {name}": (replaced(LLAMA | {"rope_scaling": scaling}), words)
        for name, scaling, words in [
            ("of a number", 7, "rope_scaling must be an object"),
            ("of an unknown type", {"type": "mine"}, "is not supported"),
            ("of a list", {"type": ["yarn"]}, "is not supported"),
            ("by nothing", {"type": "linear", "factor": 0}, "must be between"),
            ("by less", {"type": "yarn", "factor": -3.0}, "must be between"),
            ("by text", {"type": "linear", "factor": "2"}, "factor must be a number"),
            ("from nothing", {"type": "yarn", "original_max_position_embeddings": 0}, "a factor"),
            ("from less", {"type": "yarn", "original_max_position_embeddings": -1}, "a factor"),
            ("between equals", {"type": "llama3", "factor": 2, "low_freq_factor": 4}, "_freq"),
            ("by too much", {"type": "yarn", "factor": 1e300}, "must be between"),
            ("and no turns", {"type": "yarn", "factor": 2, "beta_fast": -1}, "must be between"),
        ]
    },
    "llama of no length": (
        replaced(LLAMA | {"max_position_embeddings": 0, "rope_scaling": {"type": "yarn"}}),
        "must have a factor",
    ),
    "mistral with layers of a type": (
        replaced(LLAMA | {"model_type": "mistral", "layer_types": ["odd"]}),
        "layer_types",
    ),
    "qwen2 with layers of no type": (
        replaced(
            LLAMA | {"model_type": "qwen2", "use_sliding_window": True, "layer_types": ["odd"]}
        ),
        "layer_types",
    ),
    "mistral with a window of text": (
        replaced(LLAMA | {"model_type": "mistral", "sliding_window": "4"}),
        "sliding_window",
    ),
    "llama with odd heads": (replaced(LLAMA | {"head_dim": 3}), "a head of 3 is odd"),
    "llama with heads of a million": (replaced(LLAMA | {"head_dim": 10**6}), "lacks"),
    "llama with grouped thirds": (replaced(LLAMA | {"num_key_value_heads": 2}), "not divisible"),
}

OURS: Cases = {
    f"{field} is {shown}": (config(**{field: wrong}), words)
    for field, wrong, shown, words in [
        ("kind", "both", "unknown", "kind must be one of"),
        ("kind", 3, "a number", "kind must be str"),
        ("kind", UGLY, "ugly", "kind must be one of"),
        ("d_model", "12", "text", "d_model must be int"),
        ("d_model", 12.0, "a fraction", "d_model must be int"),
        ("d_model", False, "false", "d_model must be int"),
        ("d_model", 10**6 + 1, "too large", "d_model must be between"),
        ("n_heads", 5, "no divisor", "is not divisible by"),
        ("n_layers", 10**6, "a million", "n_layers must be between"),
        ("n_layers", 200, "more than there is", "asks for 200 layers"),
        ("max_len", 500_001, "long", "sinusoids is too large"),
        ("max_len", 10**30, "endless", "max_len must be between"),
        ("dropout", "0", "text", "dropout must be float"),
        ("norm_eps", 0, "nothing", "norm_eps must be between"),
        ("tie_embeddings", 1, "a number", "tie_embeddings must be bool"),
        ("pad_id", 13, "no token", "pad_id must be between"),
        ("windows", 3, "a number", "windows must be a list"),
        ("windows", [0] * 100_000, "long", "windows must name one per layer"),
        ("windows", [[0]], "a deeper list", "windows must be a list"),
        ("more_eos_ids", ["a"], "of words", "more_eos_ids must be a list"),
        ("rope_scaling", 3, "a number", "rope_scaling must be"),
        ("rope_scaling", {"kind": "mine"}, "unknown", "kind must be one of"),
        ("rope_scaling", {UGLY: 1}, "of unknown keys", "unknown keys"),
        (UGLY, 1, "no field", "unknown keys"),
    ]
}
OURS |= {
    f"{i:,} unknown keys": (config(**dict.fromkeys(map(str, range(i)))), "unknown keys")
    for i in (9, 30_000)
}


def test_a_hostile_config_of_a_published_family_is_refused(gpt2: Path, opener: Opener) -> None:
    assert all_refused(opener, gpt2, JSON | VALUES | OTHERS) == []


def test_a_hostile_config_of_ours_is_refused(ours: Path, opener: Opener) -> None:
    assert all_refused(opener, ours, OURS) == []


def test_the_longest_table_that_no_file_vouches_for(ours: Path, opener: Opener) -> None:
    config(max_len=500_000)(ours)
    answer = opener.ask(ours)
    assert answer.error is None
    assert answer.megabytes < MOST_MEGABYTES
