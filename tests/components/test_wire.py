"""Numbers on their way to the browser: the round trip here and in a real Chromium."""

import base64
import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page

from explorer.components import wire
from explorer.components.mounting import script
from tests.text.test_number_format import HELD

SEEDS = range(12)


def weights(seed: int) -> torch.Tensor:
    """Rows of attention, sharper with every seed."""
    random = torch.Generator().manual_seed(seed)
    size = int(torch.randint(1, 40, (), generator=random))
    return (seed * torch.randn(size, size, generator=random)).softmax(-1)


def there_and_back(sent: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    codes, header = wire.encode(sent)
    return codes, wire.decode(codes, header)


def message_of(sent: torch.Tensor) -> bytes:
    codes, header = wire.encode(sent)
    return wire.pack(header, {"values": wire.plane(codes)})


def step_of(sent: torch.Tensor) -> float:
    _, header = wire.encode(sent)
    return float(header["high"] - header["low"]) / header["steps"]


def test_a_weight_comes_back_to_half_a_ten_thousandth() -> None:
    for sent in map(weights, SEEDS):
        _, back = there_and_back(sent)
        error = np.abs(back - sent.double().numpy())
        assert error[sent.numpy() > 0.5e-4].max(initial=0) <= 0.5e-4 + 1e-9
        assert error.max() <= 1e-4 + 1e-9
        assert ((back > 0) == (sent.numpy() > 0)).all(), "small is not none"


def test_any_range_comes_back_to_its_step_and_zero_exactly() -> None:
    for seed, low in itertools.product(SEEDS, (-30.0, 0.0, 2.0)):
        random = torch.Generator().manual_seed(seed)
        sent = low + (seed + 2) * 10 * torch.rand(9, 7, generator=random, dtype=torch.float64)
        sent[0, 0] = 0
        _, back = there_and_back(sent)
        assert np.abs(back - sent.numpy()).max() <= step_of(sent) / 2 + 1e-9
        assert abs(back[0, 0]) < 1e-9


def test_what_is_no_number_has_its_own_code() -> None:
    codes, back = there_and_back(torch.tensor([0.25, math.nan, math.inf, -math.inf]))
    assert codes.tolist() == [2500, wire.ABSENT, wire.INFINITY, wire.MINUS_INFINITY]
    assert np.array_equal(back, [0.25, math.nan, math.inf, -math.inf], equal_nan=True)


def test_empty_and_tiny_arrays_and_a_bfloat16_that_wants_gradients_travel() -> None:
    for shape in [(0, 0), (1, 1), (3, 0)]:
        header, planes = wire.unpack(message_of(torch.zeros(shape)))
        assert wire.codes_of(planes["values"], header["shape"]).shape == shape
    sent = torch.rand(3, 3, dtype=torch.bfloat16).requires_grad_()
    assert wire.encode(sent)[0].shape == (3, 3)


def test_planes_and_flags_come_back() -> None:
    codes = np.arange(65_536, dtype=np.uint16).reshape(256, 256)
    flags = torch.rand(5, 13, generator=torch.Generator().manual_seed(0)) > 0.5
    message = wire.pack({"a": "ü"}, {"codes": wire.plane(codes), "flags": wire.bits(flags)})
    header, planes = wire.unpack(message)
    assert header == {"a": "ü"}
    assert (wire.codes_of(planes["codes"], [256, 256]) == codes).all()
    unpacked = np.unpackbits(np.frombuffer(planes["flags"], np.uint8))[: 5 * 13]
    assert (unpacked.reshape(5, 13).astype(bool) == flags.numpy()).all()


READ = """
async text => {
  const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const header = await unpack(bytes);
  return Array.from(joined(header.planes.values), code => {
    const value = valueOf(code, header);
    return [Number.isFinite(value) ? value : null, number(value, header)];
  });
}
"""


def shown(value: float) -> str:
    """Three significant digits, four decimals at most: what the views print of a weight."""
    if value == 0:
        return "0"
    size = math.floor(math.log10(value))
    return f"{value:.{max(0, min(4, 2 - size))}f}"


@pytest.fixture
def reader(browser: Browser) -> Iterator[Page]:
    """A page with the code that reads what is sent."""
    page = browser.new_page()
    page.add_script_tag(content="const THEME = {};\n" + script("shared.js"))
    yield page
    page.close()


def read_by(reader: Page, sent: torch.Tensor) -> list[tuple[float, str]]:
    """Every value as the browser reads it, and as it writes it."""
    message = base64.b64encode(message_of(sent)).decode()
    return [*reader.evaluate(READ, message)]


def test_the_browser_reads_what_python_wrote_and_says_no_other_digit(reader: Page) -> None:
    for sent in map(weights, SEEDS):
        expected, got = there_and_back(sent)[1].reshape(-1), read_by(reader, sent)
        assert np.allclose([value for value, _ in got], expected, atol=1e-12)
        assert [text for _, text in got] == [shown(value) for value in expected]
    # A number that is a step away, and so sent alike, is not said to another digit.
    for largest in (0.004, 1.6, 30.0, 800.0):
        sent = largest * torch.linspace(-1, 1, 101) ** 3
        for _, text in read_by(reader, sent):
            digits = len(text.partition(".")[2])
            assert 10.0**-digits >= step_of(sent) or digits == 0, text
    written = reader.evaluate("all => all.map(([value, error]) => three(value, error))", HELD)
    assert written == [text for *_, text in HELD], "a digit that a difference does not hold"


def test_a_signed_picture_is_right_to_half_a_shade_and_its_outliers_are_its_end() -> None:
    pictures = torch.randn(3, 8, 9, generator=torch.Generator().manual_seed(3))
    pictures[1, 2, 3], pictures[2] = 900.0, 0.0
    ends, plane = wire.signed_shades(pictures)
    codes = np.frombuffer(plane, np.uint8).reshape(pictures.shape)
    for (end, largest), shown, sent in zip(ends, codes, pictures.numpy(), strict=True):
        assert end is not None
        assert largest == np.abs(sent).max()
        back = (shown.astype(float) - wire.ZERO) / wire.ZERO * end
        assert np.abs(back - np.clip(sent, -end, end)).max() <= max(end / wire.ZERO, 1e-9)
        assert (np.sign(back) == np.sign(sent)).all(), "small is not none"
    assert ends[0][0] == ends[0][1]
    end, largest = ends[1]
    assert end is not None
    assert end < 8
    assert largest == 900
    assert ends[2] == [0.0, 0.0]


def test_what_is_no_number_has_a_shade_of_its_own() -> None:
    inf, nan = math.inf, math.nan
    ends, plane = wire.signed_shades(torch.tensor([[[1.0, inf, -inf, nan]], [[nan] * 4]]))
    assert [*plane] == [252, 253, 254, 255, 255, 255, 255, 255]
    assert ends == [[1.0, 1.0], [None, None]]
