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
    finite = expected.isfinite()
    torch.testing.assert_close(actual[~finite], expected[~finite], equal_nan=True)
    if not finite.any():
        return 0.0
    difference = (actual[finite] - expected[finite]).abs().max().item()
    return difference / expected[finite].abs().max().item() if difference else 0.0


def assert_close_to(
    actual: Tensor, expected: Tensor, tolerance: float | None = None, what: str = ""
) -> None:
    """Both are the same up to rounding; the coarser of the two types says how much that is."""
    if tolerance is None:
        types = (actual.dtype, expected.dtype)
        tolerance = max(TOLERANCE.get(dtype, 0.0) for dtype in types)
    difference = largest_difference(actual, expected)
    assert difference <= tolerance, (
        f"{what or 'numbers'}: {difference:.2g} of the largest value, not {tolerance:g}"
    )
