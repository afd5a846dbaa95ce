"""Two texts of unequal length: what is patched at partners is a whole pass, and nothing else is."""

from functools import partial

import pytest
import torch
from torch import Tensor

from explorer.analysis.ablation_and_patching import exact_edges, exact_writers
from explorer.analysis.attribution_patching import attribute
from explorer.analysis.causal_tracing import ATTENTION, RESIDUAL, Tracing
from explorer.analysis.circuit_faithfulness import corrupted_pass
from explorer.analysis.output_change import has_words
from explorer.analysis.token_alignment import align_texts
from explorer.analysis.wiring import wiring_of
from explorer.text import Token
from models import TransformerConfig, trace
from models.interventions import Replace, ReplaceAt
from tests.analysis.contrasts import (
    metric_of,
    partner_values,
    passed,
    unequal_contrast,
    without_edge,
)
from tests.analysis.kinds_of_model import WIRED

close = partial(torch.testing.assert_close, rtol=1e-9, atol=1e-9)
KINDS = ["decoder", "rotary, grouped", "alibi, windows", *"learned beside masked mean last".split()]
EACH_MODEL = pytest.mark.parametrize("config", [WIRED[kind] for kind in KINDS], ids=KINDS)


@pytest.mark.parametrize(
    ("texts", "places", "partners"),
    [
        (("abXcd", "abYZcd"), (4, 5), "00 11 23 34 45"),  # the last of a longer run
        (("abcd", "abXcd"), (3, 4), "00 11 23 34"),
        (("abXYc", "abc"), (4, 2), "00 11 42"),
        (("ab", "abc"), (1, 2), "00 12"),  # the outputs are partners
        (("aMb", "aaMb"), (1, 2), "00 12 23"),
        (("abc", "acb"), (2, 2), "00 11 22"),  # of one length, whatever the tokens
    ],
)
def test_partners(texts: tuple[str, str], places: tuple[int, int], partners: str) -> None:
    first, second = ([Token(ord(letter), letter) for letter in text] for text in texts)
    aligned = align_texts(first, second, places)
    assert " ".join(f"{a}{b}" for a, b in aligned) == partners
    backwards = align_texts(second, first, places[::-1])
    assert backwards == tuple((b, a) for a, b in aligned)


@EACH_MODEL
def test_edges_and_circuits_are_whole_passes(config: TransformerConfig) -> None:
    contrast, wiring = unequal_contrast(config), wiring_of(config)
    edges = [(row, column) for row, column in wiring.is_edge.nonzero().tolist()]
    edges = edges[:: max(1, len(edges) // 12)]
    clean, exact = metric_of(contrast, contrast.clean), dict(exact_edges(contrast, edges))
    keep = wiring.is_edge.expand(len(edges) + 2, -1, -1).clone()
    for at, edge in enumerate(edges):
        keep[at][edge] = False
    keep[-1] = False
    base = corrupted_pass(contrast)
    *left, every, none = base.metrics(keep).tolist()
    close([clean - exact[at] for at in range(len(edges))], left)
    close([without_edge(contrast, wiring, *edge) for edge in edges], left)
    close([every, none], [clean, base.metric])
    if has_words(config):
        close(base.metric, metric_of(contrast.swapped, contrast.corrupted))


@EACH_MODEL
@pytest.mark.parametrize("more", [1, -1])
def test_parts_and_estimates_are_of_partners(config: TransformerConfig, more: int) -> None:
    contrast, wiring = unequal_contrast(config, more), wiring_of(config)
    both = (contrast.clean, contrast.corrupted)
    own, other = (trace(contrast.model, text, sites=list(wiring.writers)) for text in both)
    clean, estimate = metric_of(contrast, contrast.clean), attribute(contrast)
    lost = {columns[0]: values.tolist() for columns, values in exact_writers(contrast)}
    for site, columns in wiring.columns_at.items():
        aligned = partner_values(contrast, own[site], other[site])
        for at, value in enumerate(lost[columns.start]):
            changed = own[site].clone()
            part = (0, at) if changed.dim() == 4 else (0,)
            changed[part] = aligned[part]
            patched = metric_of(contrast, contrast.clean, Replace(site, changed))
            assert patched == pytest.approx(clean - value)
        gap = torch.zeros_like(own[site], requires_grad=True)

        def shown(name: str, x: Tensor, here: str = site, more: Tensor = gap) -> Tensor:
            return x + more if name == here else x

        (slope,) = torch.autograd.grad(passed(contrast, shown), gap)
        effect = ((own[site] - aligned) * slope)[0].sum((-1, -2)).reshape(-1)
        close(estimate.writers[columns], effect)


@EACH_MODEL
@pytest.mark.parametrize("denoising", [True, False])
def test_tracing_patches_partners(config: TransformerConfig, denoising: bool) -> None:
    contrast, stack = unequal_contrast(config), wiring_of(config).stack
    patched = contrast.swapped if denoising else contrast
    other, partners = trace(contrast.model, patched.corrupted), dict(patched.partners)
    for site in (RESIDUAL, ATTENTION):
        tracing = Tracing(contrast, site, denoising)
        grid = tracing.grid([*tracing.columns()])
        for layer, row in enumerate(grid.values.tolist()):
            name = f"{stack}.{layer}.{site}"
            for at, value in enumerate(row):
                there = [partners[at]] if at in partners else []
                edits = [ReplaceAt(name, at, other[name][0, place]) for place in there]
                assert metric_of(patched, patched.clean, *edits) == pytest.approx(value)
        ends = [metric_of(side, side.clean) for side in (contrast, contrast.swapped)]
        close([grid.clean, grid.corrupted], ends)
