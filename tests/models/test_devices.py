"""The core on any device: whatever it makes is made where the model is.

No tensor may be made without a device of its own. Where torch's default device is another one
than the model's, such a tensor lands there, and the pass that meets it fails; so the same work is
done under both. On a machine with a GPU everything is also done there.
"""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from models import load_checkpoint, save_checkpoint
from models.beam_search import beam_steps, take_rows
from models.cache import KeyValueCache
from models.config import TrainConfig, TransformerConfig
from models.generation import DecodingState, generate
from models.interventions import Edit, Mean, Replace, ReplaceAt, Scale, SetCell
from models.loading.checkpoint import load_state
from models.model import Transformer
from models.sampling import Sampling, sample
from models.trace import trace
from models.training import Batch, TrainState, batch_loss, seeded, train
from tests.closeness import assert_close_to
from tests.models.grid import ODDITIES, YARN
from tests.tiny import assert_equal_weights, config_of, inputs_of, keeps_of, shake, weights

DEVICES = [torch.device("cpu")]
DEVICES += [torch.device("cuda", 0)] if torch.cuda.is_available() else []
ON_EACH = pytest.mark.parametrize("device", DEVICES, ids=str)
ELSEWHERE = torch.device("meta")
"""Nothing can be computed with what is made here and what is not."""

CONFIGS = ODDITIES | {
    f"{kind}, {positions}": config_of(kind, positions=positions)
    for kind in ("decoder", "encoder-decoder")
    for positions in ("relative", "alibi", "rotary")
}
CONFIGS |= {
    kind: config_of("decoder", positions="rotary", rope_scaling=YARN.replace(kind=kind))
    for kind in ("linear", "llama3")
}
HOW = TrainConfig(steps=2, batch_size=3, lr=0.01, warmup=1, label_smoothing=0.1)


def built(config: TransformerConfig, device: torch.device) -> Transformer:
    return shake(Transformer(config)).eval().to(device)


def is_writer(config: TransformerConfig) -> bool:
    return config.kind != "encoder" and config.head == "language-model"


class Given:
    """A model and what it is given, made before the default device is another."""

    def __init__(self, config: TransformerConfig, device: torch.device) -> None:
        self.config, self.device = config, device
        self.model = built(config, device)
        inputs = inputs_of(config)  # on the CPU, where a task makes its batches
        self.inputs = tuple(ids.to(device) for ids in inputs)
        self.keeps = {name: keep.to(device) for name, keep in keeps_of(config, "left").items()}
        self.learner = built(config.replace(dropout=0.3), device)
        is_classifier = config.head == "classifier"
        self.batch = Batch(inputs, inputs[-1][:, 0] % 2 if is_classifier else inputs[-1])
        ones, at = torch.ones(config.d_model), "decoder.0.self_attn"
        self.edits: list[Edit] = [
            Scale(f"{at}.out", 0.5),
            Mean(f"{at}.head_out", head=1),
            SetCell(f"{at}.weights", 1, 0, None, head=2),
            SetCell(f"{at}.mask", None, 1, False),
            ReplaceAt("decoder.0.resid_post", 1, ones),  # from the CPU, and moved
            Replace("decoder.0.resid_mid", ones),
        ]

    def results(self) -> Iterator[Tensor]:
        """Everything that the core computes for this model."""
        yield self.model(*self.inputs)
        yield from trace(self.model, *self.inputs, **self.keeps).values.values()
        whole = trace(self.model, *self.inputs, sites=("*.positions", "*.q", "*.k", "*.mask"))
        stack = self.config.stacks[-1]
        yield whole.weights(f"{stack}.0.self_attn")
        yield whole.weights(f"{stack}.1.self_attn", 1)
        if is_writer(self.config):
            yield from (trace(self.model, *self.inputs, edits=[edit]).output for edit in self.edits)
            yield from self.generated()
        if self.config.head != "none":
            yield from self.learnt()

    def generated(self) -> Iterator[Tensor]:
        source, how = self.inputs[0], {"max_length": 2, "seed": 3}
        for changes in ({}, {"top_k": 4, "top_p": 0.8}, {"greedy": True}, {"use_cache": False}):
            yield from (step.ids for step in generate(self.model, source, **(how | changes)))
        *_, last = beam_steps(self.model, source[:1], beams=2, max_length=2)
        yield torch.tensor([last.path(end) for end in last.ends], device=self.device)
        yield torch.tensor([node.score for node in last.nodes], device=self.device)
        state, more = DecodingState(self.model, source), self.inputs[-1]
        yield state.read(more[:, :2])
        take_rows(state, [1, 1, 0])
        yield state.read(more[:, :1])

    def learnt(self) -> Iterator[Tensor]:
        for report in train(self.learner, lambda step: self.batch, HOW):
            yield torch.tensor([report.loss, report.grad_norm], device=self.device)
        yield from self.learner.parameters()


def assert_same(found: list[Tensor], expected: list[Tensor], device: torch.device) -> None:
    """Bit for bit on a CPU; a GPU adds up gradients in an order of its own."""
    for one, other in zip(found, expected, strict=True):
        assert_close_to(one, other, 0.0 if device.type == "cpu" else 1e-4)


@pytest.mark.usefixtures("shapes_unchecked")
@ON_EACH
@pytest.mark.parametrize("name", CONFIGS)
def test_everything_is_made_where_the_model_is(name: str, device: torch.device) -> None:
    expected = [each.clone() for each in Given(CONFIGS[name], device).results()]
    given = Given(CONFIGS[name], device)
    with ELSEWHERE:
        found = [each.clone() for each in given.results()]
    assert len(found) == len(expected)
    assert {each.device for each in found} == {device}
    assert_same(found, expected, device)


@ON_EACH
def test_every_device_computes_what_the_cpu_computes(device: torch.device) -> None:
    """The weights of a seed, logits, and the tokens that a seed samples."""
    for name in ("encoder-decoder", "stretched", "decoder, alibi", "decoder, relative"):
        with device:
            there = Transformer(CONFIGS[name], seed=4)
        there = shake(there.cpu()).eval()  # the same noise, which is made on the CPU
        here = shake(Transformer(CONFIGS[name], seed=4)).eval()
        assert_equal_weights(weights(here), weights(there))
        there.to(device)
        inputs = inputs_of(CONFIGS[name])
        moved_there = [ids.to(device) for ids in inputs]
        assert_close_to(there(*moved_there).cpu(), here(*inputs), 1e-4)
        tokens = there.generate(moved_there[0], seed=1, max_length=6)
        assert torch.equal(tokens.cpu(), here.generate(inputs[0], seed=1, max_length=6))


@ON_EACH
def test_a_training_goes_on_where_the_model_is(device: torch.device, tmp_path: Path) -> None:
    config, how = config_of("decoder", dropout=0.3), HOW.replace(steps=4)
    inputs = inputs_of(config)
    batch = Batch(inputs, inputs[0])
    straight, stopped = built(config, device), built(config, device)
    list(train(straight, lambda step: batch, how))
    state = TrainState.fresh(stopped, how)
    list(train(stopped, lambda step: batch, how.replace(steps=2), state))
    save_checkpoint(tmp_path / "half", stopped, state=state)
    with ELSEWHERE:
        again = load_checkpoint(tmp_path / "half").model.to(device)
        list(train(again, lambda step: batch, how, load_state(tmp_path / "half", again, how)))
    assert_same([*again.parameters()], [*straight.parameters()], device)


def test_the_generator_of_an_accelerator_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen on a stand-in: torch asks the module named like the type of the device."""
    state = [torch.tensor([7])]
    stand_in = SimpleNamespace(
        get_rng_state=lambda device: state[0],
        set_rng_state=lambda new, device: state.__setitem__(0, new),
        manual_seed=lambda number: state.__setitem__(0, torch.tensor([number])),
    )
    monkeypatch.setattr(torch, "privateuseone", stand_in, raising=False)
    seen = []
    for seed, step in ((0, 1), (0, 2), (1, 1), (0, 1)):
        with seeded(seed, step, torch.device("privateuseone")):
            seen.append(int(state[0]))
        assert int(state[0]) == 7
    assert seen[0] == seen[3]
    assert len(set(seen)) == 3


def test_a_seed_samples_what_multinomial_samples_on_the_cpu() -> None:
    """So every link and every test of an earlier version still gets its tokens."""
    ours, theirs = (torch.Generator().manual_seed(3) for _ in range(2))
    for rows, words in ((1, 7), (3, 13), (2, 1000), (1, 50_257)):
        for dtype in (torch.float32, torch.float64):
            some = torch.rand(rows, words, dtype=dtype, generator=ours).pow(8)
            torch.rand(rows, words, dtype=dtype, generator=theirs)
            some = some.where(some > some.mean(), 0.0)
            found = sample(some / some.sum(-1, keepdim=True), Sampling(), ours)
            assert torch.equal(found, torch.multinomial(some, 1, generator=theirs)[:, 0])
    with pytest.raises(ValueError, match="a probability is not a finite number"):
        sample(torch.tensor([[torch.nan, 1.0]]), Sampling(), ours)


@pytest.mark.usefixtures("shapes_unchecked")
def test_a_model_without_numbers_has_the_shapes_of_one_with_them() -> None:
    """On the meta device: the pass, one with a cache, the loss and its gradients."""
    for name in ("plain", "encoder-decoder", "windows", "stretched", "decoder, relative"):
        config = CONFIGS[name]
        inputs = inputs_of(config)
        with ELSEWHERE:
            model = Transformer(config.replace(pad_id=None))
        there = tuple(ids.to(ELSEWHERE) for ids in inputs)
        real = Transformer(config.replace(pad_id=None))
        found = model(*there)
        assert found.is_meta
        assert found.shape == real(*inputs).shape, name
        if is_writer(config):
            memory = model.encode(there[0]) if config.kind == "encoder-decoder" else None
            cache = KeyValueCache.empty(config.n_layers)
            model.decode(there[-1], memory, cache=cache)
            assert model.decode(there[-1][:, :1], memory, cache=cache).is_meta
            with seeded(0, 0, ELSEWHERE):
                batch_loss(model.train(), Batch(there, there[-1]), 0.1).backward()
            assert all(p.grad is not None and p.grad.is_meta for p in model.parameters()), name
