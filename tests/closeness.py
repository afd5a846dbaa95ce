"""How equal two computations of the same numbers must be, on any processor."""

import torch
from torch import Tensor

TOLERANCE = {torch.float64: 1e-11, torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3}
"""Largest difference ÷ largest value: what the kernels of two processors may differ by."""


def largest_difference(actual: Tensor, expected: Tensor) -> float:
    """The largest difference ÷ the largest value; 0 where both are equal, infinities included.

    Infinite or undefined numbers must stand in the same places.
    """
    assert actual.shape == expected.shape, f"{[*actual.shape]} is not {[*expected.shape]}"
    actual, expected = actual.detach().double(), expected.detach().double()
    finite = actual.isfinite() & expected.isfinite()
    torch.testing.assert_close(actual[~finite], expected[~finite], equal_nan=True)
    actual, expected = actual[finite], expected[finite]
    if torch.equal(actual, expected):
        return 0.0
    largest = torch.cat([actual, expected]).abs().max()
    return float((actual - expected).abs().max() / largest)


def assert_close_to(
    actual: Tensor, expected: Tensor, tolerance: float | None = None, what: str = "it"
) -> None:
    """Both are the same up to rounding; the coarser of the two types says how much that is."""
    if tolerance is None:
        tolerance = max(TOLERANCE.get(each.dtype, 0.0) for each in (actual, expected))
    by = largest_difference(actual, expected)
    assert by <= tolerance, f"{what} differs by {by:.2g} of its largest value, not {tolerance:g}"
