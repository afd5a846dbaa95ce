"""A config.json with one value changed, opened by the reference library and by us.

Equal, refused by us in one sentence, or refused by both: nothing else is right. The folder's
weights stay as they are; where they no longer fit, the reference is built anew with the change
too. What we open and the reference does not counts as right only where the key means nothing
to it: where no value of it that it opens moves the logits.
"""

import copy
import inspect
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from torch import Tensor
from transformers.models.auto import modeling_auto

from models.loading.checkpoint import Checkpoint, CheckpointError, load_checkpoint
from tests.closeness import assert_close_to
from tests.parity.cases import CASES
from tests.parity.families import AllInDouble, Case, build_reference
from tests.parity.test_published_configs import ROTATIONS

Values = dict[str, Any]
LENGTH = 11
IDS = (8, 25)
"""Tokens that no changed value makes special, and that half of a vocabulary still has."""
EQUAL, DIFFERENT = "equal", "DIFFERENT"
REFUSED, BOTH, PLAIN, ALONE = "refused", "both refused", "plain to us alone", "ours alone"
OUTCOMES = (EQUAL, REFUSED, BOTH, PLAIN, ALONE, DIFFERENT)
IDLE = "*pooler.dense.*"
"""Weights that a body has and its last hidden state does not depend on."""
IDLE_KEYS = "^return_dict$|^output_|^chunk_size|dropout|pdrop"
"""How the reference cuts up its work and hands it over, and what training drops: nonsense under
such a key ends in its own code, and a number there means nothing to what it computes."""
ROUNDED = 1e-4
"""Of the largest value: scaled frequencies are of 32 bits in both, and a default width is large."""
SIZES = "size$|_dim$|^dim$|^d_|^hidden|^n_|layers$|heads$|^max_pos|^layer_types$"
"""Keys without which the weights do not fit: building a model of default size takes long."""
MOST_WORDS = 200
TOGETHER = 12
"""Keys of other families that are tried at once; one by one only where that is not equal."""

ACTIVATIONS = (
    "relu", "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "silu", "swish", "quick_gelu",
    "tanh", "gelu_10", "linear", "relu2",
)  # fmt: skip
SCALED = (
    *("yarn, newer", "yarn and a window", "llama3, older", "linear, newer"),
    *("gpt_neox, older", "phi3, newer"),
)
TURNED = [case for case in ROTATIONS if case.name in SCALED]
"""With scaled rotations, whose inner values are tried too."""
PLAUSIBLE: dict[str, list[Any]] = json.loads(
    Path(__file__).with_name("config_values.json").read_text("utf-8")
)
"""Values that a reader might find under these names, in the older notation too."""
LISTED = ("architectures", "model_type")
"""Keys whose values are names of the library."""


@dataclass(frozen=True)
class Change:
    """Keys with another value; ... leaves a key out."""

    values: Values

    def __str__(self) -> str:
        return ", ".join(
            f"{key} {'absent' if value is ... else json.dumps(value)}"
            for key, value in self.values.items()
        )

    def of(self, config: Mapping[str, Any]) -> Values:
        changed = {**config, **self.values}
        return {key: value for key, value in changed.items() if value is not ...}


@dataclass(eq=False)
class Report:
    """What became of every change. `moved` are keys that the reference computes something from."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    alone: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    moved: set[str] = field(default_factory=set)

    def count(self, change: Change, outcome: str, words: str = "", rebuilt: bool = False) -> None:
        self.counts[outcome] += len(change.values)
        said = f"{change}{' (rebuilt)' if rebuilt else ''}: {outcome}, {words[:MOST_WORDS]!r}"
        if outcome == DIFFERENT:
            self.faults.append(said)
        if outcome == ALONE:
            for key in change.values:
                self.alone[key].append(said)

    def every_fault(self) -> list[str]:
        """All that is wrong: ours alone only under keys that mean something to the reference."""
        alone = [said for key in self.alone if key in self.moved for said in self.alone[key]]
        return self.faults + alone

    def __str__(self) -> str:
        return ", ".join(f"{self.counts[name]} {name}" for name in OUTCOMES)


def changes_of(case: Case, config: Mapping[str, Any], strays: Sequence[Change]) -> list[Change]:
    """Every key that the file has, the reference's class knows, or an older file may have."""
    known = {**defaults(case), **config}
    changes = [
        Change({key: value})
        for key in sorted({*known, *PLAUSIBLE} - set(LISTED))
        for value in values_of(key, known.get(key, ...), key in config)
    ]
    name = case.reference.__name__
    stem = case.config.__class__.__name__.removesuffix("Config")
    named = [None, ..., [], [3], 3, name, ["Strange"], [f"{stem}Model"], [name, "Strange"]]
    named += [[f"{stem}ForSequenceClassification"]]
    changes += [Change({"architectures": value}) for value in named]
    changes += [Change({"model_type": value}) for value in (None, ..., "strange", 3)]
    foreign = [one for one in strays if not known.keys() & one.values.keys()]
    for i in range(0, len(foreign), TOGETHER):
        bundle = foreign[i : i + TOGETHER]
        changes.append(Change({k: v for one in bundle for k, v in one.values.items()}))
    return changes


def every_key_absent(case: Case, config: Mapping[str, Any]) -> Change:
    """All keys at once, but for sizes that are not the default of the reference's class."""
    known = defaults(case)
    keys = [k for k in config if known.get(k, ...) == config[k] or not re.search(SIZES, k)]
    return Change(dict.fromkeys((key for key in keys if key not in LISTED), ...))


def strays_of(cases: Sequence[Case]) -> list[Change]:
    """One value for every key that any family's class knows."""
    found: Values = {}
    for case in cases:
        for key, value in defaults(case).items():
            if value is not None and key not in PLAUSIBLE and key not in LISTED:
                found.setdefault(key, not value if isinstance(value, bool) else value)
    return [Change({key: value}) for key, value in sorted(found.items())]


def defaults(case: Case) -> Values:
    """What the reference's class has without being told, its other names among it."""
    plain = json.loads(type(case.config)().to_json_string(use_diff=False))
    known = {name: plain.get(own) for name, own in case.config.attribute_map.items()}
    return {key: value for key, value in (known | plain).items() if key not in LISTED}


def values_of(key: str, value: Any, given: bool) -> Iterator[Any]:
    """Other values for one that is `value`, each once."""
    seen = [json.dumps(value) if value is not ... else "", *([] if given else [""])]
    for other in (..., *PLAUSIBLE.get(key, ()), *others(key, value)):
        written = "" if other is ... else json.dumps(other)
        if written not in seen or (other is ... and given):
            seen.append(written)
            yield other


def others(key: str, value: Any) -> Iterator[Any]:
    """Others of the same type, of none and of the wrong one."""
    yield None
    match value:
        case bool():
            yield from (not value, int(not value), "strange", str(value), [value])
        case int():
            yield from (2 * value, value // 2, value + 1, 0, -1)
            if "vocab_size" not in key:  # a single word is a special one
                yield 1
            yield from (float(value), value + 0.5, str(value), True, [value])
        case float():
            yield from (0.25, 3 * value, 0.0, -1.0, 1.0, 1, str(value), True, [value])
        case str():
            yield from (*(ACTIVATIONS if value in ACTIVATIONS else ()), "strange", 3, [value], "")
        case list():
            yield from (value[:-1], value + value[:1], value[::-1], [], [None], "strange", 3)
        case dict():
            yield from ({}, "strange", 3, [value])
            for inner, one in value.items():
                for other in values_of(inner, one, True):
                    yield Change({inner: other}).of(value)
        case _ if key not in PLAUSIBLE:
            yield from (True, False, 1, 7, 0, -1, 0.5, "strange", [], {})
        case _:
            yield from (0, -1, "strange", [])


class Fuzz:
    """One case: its folder, and both ways to open it."""

    def __init__(self, case: Case, folder: Path) -> None:
        hf.logging.set_verbosity_error()
        hf.logging.disable_progress_bar()
        self.case, self.folder, self.report = case, folder, Report()
        self.config = self.build(case, folder / "as it is")
        opened = self.reference(folder / "as it is")
        assert opened is not None
        self.opened = opened
        ours = load_checkpoint(folder / "as it is")
        self.before = answer(opened, ours)

    def build(self, case: Case, folder: Path) -> Values:
        """A folder of the reference, and what its config.json says."""
        build_reference(case).save_pretrained(folder)
        (folder / "generation_config.json").unlink(missing_ok=True)
        values: Values = json.loads((folder / "config.json").read_text())
        if case.published is not None:
            values = copy.deepcopy(dict(case.published))
            (folder / "config.json").write_text(json.dumps(values))
        return values

    def reference(self, folder: Path) -> Any:
        """The reference as it opens the folder; None where the weights do not fit its config."""
        values = json.loads((folder / "config.json").read_text())
        names = values.get("architectures")
        if names:
            if isinstance(names, str) or not isinstance(names[0], str):
                raise TypeError(f"{names} are no names of models")
            named = getattr(hf, names[0], hf.AutoModel)
        else:
            named = unnamed(self.case)
        config = hf.AutoConfig.from_pretrained(folder)
        how = {"dtype": torch.float32, "attn_implementation": "eager"}
        told = {"ignore_mismatched_sizes": True, "output_loading_info": True}
        model, found = named.from_pretrained(folder, config=config, **how, **told)
        idle = (IDLE, *self.case.fixed)
        missing = [n for n in found["missing_keys"] if not any(fnmatch(n, one) for one in idle)]
        return None if missing or found["mismatched_keys"] else model.eval()

    def run(self, changes: Sequence[Change]) -> Report:
        for change in changes:
            self.try_change(change)
        return self.report

    def try_change(self, change: Change) -> None:
        folder, values = self.folder / "as it is", change.of(self.config)
        write(folder, values)
        if self.judge(change, folder) or len(change.values) > 1:
            return
        config, _ = attempt(type(self.case.config).from_dict, copy.deepcopy(values))
        case = Case(**vars(self.case) | {"config": config})
        built, _ = attempt(self.build, case, self.folder / "rebuilt")
        if built is not None:
            write(self.folder / "rebuilt", values)
            self.judge(change, self.folder / "rebuilt", rebuilt=True)

    def judge(self, change: Change, folder: Path, *, rebuilt: bool = False) -> bool:
        """Counts the outcome; whether the weights fit what the reference reads."""
        theirs, why = attempt(self.reference, folder)
        fitting = bool(theirs or why)
        ours, said = attempt(load_checkpoint, folder)
        expected = None
        if theirs is not None:
            expected, why = attempt(answer, theirs, ours)
        # Up to rounding, of which there is more where a layer is computed in parts.
        still = expected is not None and not attempt(assert_close_to, expected, self.before)[1]
        if len(change.values) > 1:
            absent = all(value is ... for value in change.values.values())
            alike = ours is not None and (still or (absent and expected is not None))
            if alike and not attempt(same_answer, theirs, ours, expected)[1]:
                self.report.count(change, EQUAL)
            else:
                items, middle = [*change.values.items()], len(change.values) // 2
                for half in (items[:middle], items[middle:]):
                    self.try_change(Change(dict(half)))
            return True
        if not fitting or (theirs is not None and not still):
            self.report.moved |= {key for key in change.values if not re.search(IDLE_KEYS, key)}
        if ours is None:
            kind, _, sentence = said.partition(": ")
            plain = kind == CheckpointError.__name__ and re.fullmatch(r".*[.]", sentence)
            outcome = DIFFERENT if not plain else BOTH if expected is None else REFUSED
            self.report.count(change, outcome, said, rebuilt)
        elif expected is None:
            # A setting that is named as contradicted by the files is not believed either.
            named = set(change.values) <= set(ours.unfollowed)
            outcome = BOTH if named else PLAIN if self.is_plain(change, ours, why) else ALONE
            self.report.count(change, outcome, why or "its weights do not fit", rebuilt)
        else:
            _, fault = attempt(same_answer, theirs, ours, expected)
            self.report.count(change, DIFFERENT if fault else EQUAL, fault, rebuilt)
        return fitting

    def is_plain(self, change: Change, ours: Checkpoint, why: str) -> bool:
        """Whether null is read like nothing and 1 like 1.0, which are tried in their own right."""
        ((key, value),) = change.values.items()
        if value is not None and not (type(value) is int and "float" in why):
            return False
        same: Any = ... if value is None else float(value)
        write(self.folder / "as it is", Change({key: same}).of(self.config))
        other, _ = attempt(load_checkpoint, self.folder / "as it is")
        return other is not None and other.config == ours.config


def attempt(make: Callable[..., Any], *given: Any) -> tuple[Any, str]:
    """What it makes, and what it raises."""
    try:
        return make(*given), ""
    except Exception as error:  # noqa: BLE001  the reference raises whatever it likes
        return None, f"{type(error).__name__}: {error}"


def write(folder: Path, values: Values) -> None:
    (folder / "config.json").write_text(json.dumps(values))


def unnamed(case: Case) -> Any:
    """The class that a folder of the family is opened with when its config names none."""
    kind = case.config.model_type
    if kind in ENCODERS:
        return hf.AutoModel
    autos: tuple[Any, ...] = (
        (modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, hf.AutoModelForCausalLM),
        (modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES, hf.AutoModelForSeq2SeqLM),
    )
    order = autos[::-1] if case.config.is_encoder_decoder else autos
    return next(auto for names, auto in order if kind in names)


ENCODERS = ("bert", "distilbert", "roberta", "xlm-roberta", "camembert")
"""Some of them can also be told to be decoders."""


def texts(ours: Checkpoint | None, reference: Any) -> tuple[Tensor, ...]:
    """One text, which both can read, and for an encoder-decoder a target; none is padding."""
    length, words = LENGTH, IDS[1]
    if ours is not None:
        length = max(1, min(LENGTH, ours.config.max_len))
        words = min(ours.config.vocab_size, ours.config.src_vocab_size or IDS[1], IDS[1])
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(*IDS, (1, length), generator=generator).clamp(max=words - 1)
    target = torch.randint(*IDS, (1, max(1, length - 1)), generator=generator)
    if "decoder_input_ids" in inspect.signature(reference.forward).parameters:
        return ids, target.clamp(max=words - 1)
    return (ids,)


def answer(reference: Any, ours: Checkpoint | None) -> Tensor:
    """The reference's logits, or what a body without a head ends in."""
    given: Values = {"use_cache": False, "return_dict": True}
    for stem, ids in zip(("", "decoder_"), texts(ours, reference), strict=False):
        given |= {f"{stem}input_ids": ids, f"{stem}attention_mask": torch.ones_like(ids)}
    with torch.no_grad(), AllInDouble():
        out = reference(**given)
    names = ("logits", "prediction_logits", "last_hidden_state")
    return next(out[name] for name in names if name in out)


def our_answer(reference: Any, ours: Checkpoint) -> Tensor:
    given = texts(ours, reference)
    keep = [torch.ones_like(ids, dtype=torch.bool) for ids in given]
    names = ("keep",) if len(given) == 1 else ("source_keep", "target_keep")
    with torch.no_grad():
        return ours.model(*given, **dict(zip(names, keep, strict=True)))


def same_answer(reference: Any, ours: Checkpoint, expected: Tensor) -> None:
    """Asserts it; in float64 where float32 leaves a doubt."""
    try:
        assert_close_to(our_answer(reference, ours), expected)
    except AssertionError:
        reference.double()
        ours.model.double()
        most = None if ours.config.rope_scaling is None else ROUNDED
        assert_close_to(our_answer(reference, ours), answer(reference, ours), most)


STRAYS = strays_of(list(CASES.values()))
FUZZED = {case.name: case for case in (*CASES.values(), *TURNED)}
FIRST = {case.config.model_type: case for case in reversed(CASES.values())}
"""One case of each family."""
STEP = 89
"""Between the changes that the quick run tries."""


@pytest.mark.thorough
@pytest.mark.parametrize("case", FUZZED.values(), ids=str)
def test_no_value_is_read_otherwise(case: Case, tmp_path: Path) -> None:
    fuzz = Fuzz(case, tmp_path)
    report = fuzz.run(changes_of(case, fuzz.config, STRAYS))
    print(f"{case.name}: {report}")
    assert report.every_fault() == []


def test_no_value_of_a_few_is_read_otherwise(tmp_path: Path, subtests: pytest.Subtests) -> None:
    """One change of each family, and every key absent without which the weights still fit."""
    for number, case in enumerate(FIRST.values()):
        fuzz = Fuzz(case, tmp_path / str(number))
        changes = changes_of(case, fuzz.config, STRAYS)
        absent = every_key_absent(case, fuzz.config)
        report = fuzz.run([changes[number * STEP % len(changes)], absent])
        with subtests.test(case.name):
            assert report.every_fault() == []
