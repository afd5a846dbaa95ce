"""Published files in our core, beside the libraries that made them and TransformerLens.

A folder of GPT-2's small size, and a quantized Llama of SmolLM2's shape out of its GGUF file; their
weights are random: what is measured is time and memory.
"""

import ctypes
import gc
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import count, product
from pathlib import Path
from statistics import median
from typing import Any

import gguf
import torch
from gguf import GGMLQuantizationType as Kind

from explorer.analysis.ablation_and_patching import ablate_every_head
from explorer.analysis.batched_passes import RecordedPass
from explorer.analysis.logit_attribution import contributions
from explorer.analysis.query_key import by_distance, query_key_pair, strongest
from explorer.analysis.residual_writes import key_contribution
from explorer.analysis.score_sources import score_sources
from explorer.inference.answers import Answer
from explorer.inference.forward_pass import ForwardPass
from explorer.text import Token
from explorer.views.attention import query_key_view as onwards
from explorer.views.attention import query_key_view as pairs
from models import Transformer, TransformerConfig, load_checkpoint, trace
from models.interventions import Scale
from models.loading.gguf_header import read_gguf_header
from models.loading.gguf_weights import gguf_weights
from models.trace import CHEAP_SITES, Trace
from tests.benchmarks.measuring import Row, at_most, by_turns, compared, milliseconds, timed
from tests.parity.llama_cpp import write_gguf
from tests.source import ROOT

TITLE, VOCABULARY = "GPT-2 small", 50_257
LAYERS = HEADS = 12
EVERY_HEAD = list(product(range(LAYERS), range(HEADS)))
PART = "decoder.self_attn"
LLAMA = TransformerConfig(
    vocab_size=49_152,
    d_model=576,
    n_layers=30,
    n_heads=9,
    n_kv_heads=3,
    d_ff=1536,
    max_len=2048,
    positions="rotary",
    norm="rms",
    activation="silu",
    gated=True,
    bias=False,
    qkv_bias=False,
    tie_embeddings=True,
)
"""SmolLM2-135M, to which random weights are given where only time and memory count."""
QUANTIZED = "SmolLM2-135M's shape in Q4_1"
ONE_THREAD = "import sys, torch; torch.set_num_threads(1); "
OURS_OPENS = ONE_THREAD + "from models import load_checkpoint; load_checkpoint(sys.argv[1])"
THEIRS_OPENS = ONE_THREAD + (
    "from transformers import GPT2LMHeadModel; GPT2LMHeadModel.from_pretrained(sys.argv[1])"
)


@cache
def saved(positions: int = 1024) -> tempfile.TemporaryDirectory[str]:
    """The reference library saves it; the folder goes with the process."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(0)
    made = tempfile.TemporaryDirectory(prefix="gpt2-small-")
    config = transformers.GPT2Config(n_positions=positions)
    transformers.GPT2LMHeadModel(config).save_pretrained(made.name)
    return made


def reference() -> Any:
    """The reference library's model, with attention that gives its weights."""
    from transformers import GPT2LMHeadModel

    return GPT2LMHeadModel.from_pretrained(saved().name, attn_implementation="eager").eval()


def reference_llama() -> Any:
    """The reference library's model of SmolLM2's sizes."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=LLAMA.vocab_size,
        hidden_size=LLAMA.d_model,
        intermediate_size=LLAMA.d_ff,
        num_hidden_layers=LLAMA.n_layers,
        num_attention_heads=LLAMA.n_heads,
        num_key_value_heads=LLAMA.kv_heads,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config).eval()


def ours(positions: int = 1024) -> Transformer:
    return load_checkpoint(Path(saved(positions).name)).model


def ids(tokens: int) -> torch.Tensor:
    return torch.randint(VOCABULARY, (1, tokens), generator=torch.Generator().manual_seed(0))


def looked(model: Transformer, text: torch.Tensor) -> Trace:
    """The pass that a page asks for: nothing is kept that can be derived."""
    return trace(model, text, sites=CHEAP_SITES, read_at=slice(-1, None))


def unwatched(model: Any, text: torch.Tensor, **how: bool) -> Any:
    with torch.no_grad():
        return model(text, **how)


def forward() -> Iterator[Row]:
    """What the peers do to see one head, and what a page asks our core for instead."""
    theirs, model = reference(), ours()
    name = "of transformers, eager, output_attentions"
    for tokens, rounds, page_goal in ((128, 7, 0.85), (512, 5, 0.75)):
        text, of = ids(tokens), f"{TITLE}, {tokens} tokens"
        beside = partial(unwatched, theirs, text, output_attentions=True)
        assert len(beside().attentions) == LAYERS
        watched = partial(trace, model, text, sites=("*.weights", "logits"))
        all_weights = timed(watched, beside, rounds)
        yield compared(f"all attention weights and all logits, {of}", all_weights, name, 1.05)
        a_page = timed(partial(one_head_of, model, text), beside, rounds)
        yield compared(f"what a page asks for, {of}", a_page, name, page_goal)


def one_head_of(model: Transformer, text: torch.Tensor) -> object:
    seen = looked(model, text)
    return seen, seen.weights("decoder.5.self_attn", head=3)


def one_head() -> Iterator[Row]:
    """Derived from queries and keys, beside a plain product and softmax of the same sizes.

    The median of single calls: every head once, each followed by its reference.
    """
    seen = looked(ours(), ids(512))
    q, k = torch.randn(2, HEADS, 512, 64)
    spent, plain = [], []
    for layer, head in EVERY_HEAD:
        begun = time.process_time()
        seen.weights(f"decoder.{layer}.self_attn", head=head)
        ended = time.process_time()
        (q[head] @ k[head].mT).softmax(-1)
        plain.append(time.process_time() - ended)
        spent.append(ended - begun)
    each, beside, goal = median(spent), median(plain), 0.002
    what = f"one head's weights derived, {TITLE}, 512 tokens"
    product_and_softmax = f"{milliseconds(beside)} of a plain product and its softmax"
    goals = f"≤ {milliseconds(goal)}"
    yield Row(what, milliseconds(each), product_and_softmax, each / beside, goals, each <= goal)


def everything() -> Iterator[Row]:
    """Every site of a pass beside every hook of TransformerLens.

    The longer the text, the more of both sides is the same matrix products.
    """
    from transformer_lens.model_bridge import TransformerBridge

    model, name, goal = ours(), "of TransformerLens run_with_cache", 0.9
    bridge = TransformerBridge.boot_transformers(saved().name, hf_model=reference())
    for tokens, rounds in ((32, 11), (128, 3)):
        mine = partial(trace, model, ids(tokens))
        theirs = torch.no_grad()(partial(bridge.run_with_cache, ids(tokens)))
        what = f"everything recorded, {TITLE}, {tokens} tokens"
        yield compared(what, timed(mine, theirs, rounds), name, goal)
        what = f"the same: memory at its peak, {tokens} tokens"
        yield megabytes(what, peak_bytes(mine), "", peak_bytes(theirs), name, goal)


def memory() -> Iterator[Row]:
    tokens = 2048
    model = ours(tokens)
    looked(model, ids(16))
    peak = peak_bytes(partial(one_head_of, model, ids(tokens)))
    all_weights = LAYERS * HEADS * tokens**2 * 4
    what = f"memory while looking at {tokens:,} tokens, {TITLE}"
    yield megabytes(what, peak, " at its peak", all_weights, "of all attention weights", 0.25)


def megabytes(what: str, ours: int, note: str, theirs: int, name: str, goal: float) -> Row:
    mine, beside = f"{ours / 1e6:.0f} MB{note}", f"{theirs / 1e6:.0f} MB {name}"
    return at_most(what, mine, beside, ours / theirs, goal)


def peak_bytes(work: Callable[[], object]) -> int:
    """How far the memory of this process rises above where it stands before the work.

    Memory that earlier work left behind is given back first, or the rise would hide in it.
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # forget the highest level so far
    before = _status("VmRSS")
    kept = work()
    peak = _status("VmHWM") - before
    del kept
    return peak


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))


def opening() -> Iterator[Row]:
    """From the import of the library to a model that can read, in a fresh Python each time."""
    (found,) = by_turns(partial(opened, OURS_OPENS), partial(opened, THEIRS_OPENS), rounds=2)
    what = f"opening the folder of {TITLE}, imports included"
    yield compared(what, found, "of transformers from_pretrained", 0.5)


def opened(program: str) -> list[float]:
    """Processor time of a fresh Python that runs the program on the folder."""
    command = [sys.executable, "-c", program, saved().name]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return [after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime]


def generation() -> Iterator[Row]:
    theirs, model, prompt = reference(), ours(), ids(16)
    exactly = {"max_new_tokens": 64, "min_new_tokens": 64, "do_sample": False, "pad_token_id": 0}
    beside = partial(theirs.generate, prompt, attention_mask=torch.ones_like(prompt), **exactly)
    mine = partial(model.generate, prompt, max_length=64, temperature=0)
    assert torch.equal(mine(), beside())
    what = f"64 tokens generated with the cache, {TITLE}"
    yield compared(what, timed(mine, beside, rounds=5), "of transformers generate", 1.0)


def every_head_ablated() -> Iterator[Row]:
    """The pass to beat is cheap already: fused attention, logits at the last token only.

    Half the arithmetic, in batches that pass at least twice as quickly per row as one row
    alone: a processor that has its full speed with one row already cannot meet this goal.
    """
    model, text = ours(), ids(32)

    def one_by_one() -> None:
        for layer, head in EVERY_HEAD:
            off = Scale(f"decoder.{layer}.self_attn.head_out", head=head)
            trace(model, text, sites=("logits",), read_at=slice(-1, None), edits=[off])

    def at_once() -> None:
        list(ablate_every_head(RecordedPass(looked(model, text), (text,), 31), PART, LAYERS))

    what = f"{len(EVERY_HEAD)} heads ablated at once, {TITLE}, 32 tokens"
    found = timed(at_once, one_by_one, rounds=3)
    yield compared(what, found, "of one pass with one edit for each", 0.25)


def a_pass(model: Transformer, text: torch.Tensor) -> ForwardPass:
    """A pass as the app keeps it."""
    tokens = tuple(Token(i, str(i), 0, 1) for i in text[0].tolist())
    return ForwardPass("", model.config, (), tokens, (), looked(model, text), Answer("next", ""))


def watched_forward() -> Iterator[Row]:
    """A pass that keeps every attention weight beside one that nobody watches."""
    config = TransformerConfig(
        vocab_size=1000, d_model=768, n_layers=12, n_heads=12, d_ff=3072, activation="gelu"
    )
    model = Transformer(config).eval()
    text = ids(128) % 1000

    def watched() -> None:
        assert len(trace(model, text, sites=("*.weights",)).sites) == 12

    found = timed(watched, partial(unwatched, model, text), 15)
    what = "forward with all attention weights, 12 layers, 12 heads, d 768, 128 tokens"
    yield compared(what, found, "of the same core unwatched", 1.1)


def cached_generation() -> Iterator[Row]:
    """Generation with cached keys and values beside reading everything again.

    A cached token reads all weights from memory once, an uncached one computes with all tokens
    so far: how many times as fast follows from the length of the prompt and from how fast the
    machine's memory is beside its arithmetic. So a short prompt has no goal.
    """
    model = Transformer(
        TransformerConfig(vocab_size=1000, d_model=512, n_layers=12, n_heads=8, d_ff=2048)
    ).eval()
    for length in (64, 16):
        generate = partial(model.generate, ids(length) % 1000, max_length=64, greedy=True)
        cached, uncached = (partial(generate, use_cache=cache) for cache in (True, False))
        assert torch.equal(cached(), uncached())
        found = timed(cached, uncached, rounds=1)
        quicker = 1 / found.times
        what = f"generation of 64 tokens, 12 layers, d 512, prompt of {length}, cached"
        mine = f"{found.ours:.2f} s, {quicker:.1f} times as fast"
        row = Row(what, mine, f"{found.reference:.2f} s uncached", found.times)
        yield replace(row, goal="3 times as fast", met=quicker >= 3) if length == 64 else row


def one_pair() -> Iterator[Row]:
    """Another head, query and key each time; the pass is kept, as it is in the app."""
    model, text, clicks = ours(), ids(128), count()
    forward = a_pass(model, text)

    def a_pair() -> None:
        click = next(clicks)
        here = PART, click % LAYERS, 5 * click % HEADS
        query = 127 - 7 * click % 60
        key = strongest(forward, *here, query)
        way = key_contribution(forward, *here, query, key)
        assert pairs.weight_steps(query_key_pair(forward, *here, query, key))
        assert onwards.stream_terms(way)
        by_distance(forward, *here, query, key)

    what = f"opening another query-key pair, {TITLE}, 128 tokens, the pass kept"
    yield compared(what, timed(a_pair, partial(unwatched, model, text)), "of one pass", 0.1)


def sources_of_a_score() -> Iterator[Row]:
    """Another layer and head each time, against the mean of all other keys; the pass is kept."""
    model, clicks = ours(), count()
    for length in (32, 512):
        forward = a_pass(model, ids(length))

        def a_cell(forward: ForwardPass = forward, last: int = length - 1) -> None:
            click = next(clicks)
            score_sources(forward, PART, 7 * click % LAYERS, 5 * click % HEADS, last, 1)

        what = f"the sources of one score, {TITLE}, {length} tokens, the pass kept"
        yield compared(
            what, timed(a_cell, partial(unwatched, model, ids(length)), 15), "of one pass", 0.5
        )


def direct_contributions() -> Iterator[Row]:
    """All heads and blocks to one logit, beside one plain pass without anything recorded."""
    model, text = ours(), ids(128)
    mine = partial(contributions, a_pass(model, text), 127, 7)
    what = f"what all heads and blocks contribute to one logit, {TITLE}, 128 tokens"
    yield compared(what, timed(mine, partial(unwatched, model, text)), "of one pass", 0.5)


def save_quantized(file: Path) -> None:
    def vocabulary(writer: gguf.GGUFWriter) -> None:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("smollm")
        writer.add_token_list([f"t{i}" for i in range(LLAMA.vocab_size)])
        writer.add_token_types([1] * LLAMA.vocab_size)
        writer.add_token_merges(["t 1"])

    write_gguf(reference_llama(), file, kind=Kind.Q4_1, more=vocabulary)


def opening_gguf() -> Iterator[Row]:
    """The numbers alone beside the library's way to them, then the whole model."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory(prefix="gguf-") as folder:
        file = Path(folder) / "model.gguf"
        save_quantized(file)
        numbers = timed(partial(all_numbers, file), partial(by_the_library, file), rounds=3)
        yield compared(
            f"all numbers of {QUANTIZED}", numbers, "of gguf's reader and dequantize", 0.5
        )
        model = transformers.LlamaForCausalLM
        theirs = partial(model.from_pretrained, file.parent, gguf_file=file.name)
        whole = timed(partial(load_checkpoint, file), theirs, rounds=3)
        yield compared(f"opening {QUANTIZED}", whole, "of transformers gguf_file", 0.5)
        peak, weights = peak_bytes(partial(load_checkpoint, file)), 4 * 134_515_008
        what = f"memory to open {QUANTIZED}"
        yield megabytes(what, peak, " at its peak", weights, "of weights", 1.6)


def all_numbers(file: Path) -> None:
    weights = gguf_weights(read_gguf_header(file))
    with weights.open() as read:
        for name in weights.names:
            read(name)


def by_the_library(file: Path) -> None:
    for tensor in gguf.GGUFReader(file).tensors:
        gguf.dequantize(tensor.data, tensor.tensor_type)
