"""Colours in OKLCH, the space in which equal steps look equal (Ottosson, 2020)."""

from __future__ import annotations

from math import atan2, cos, degrees, hypot, pi, radians, sin


def linear(channel: float) -> float:
    """One sRGB channel in [0, 1] as light."""
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def encoded(light: float) -> float:
    """Light as one sRGB channel, clipped to what a screen can show."""
    light = min(1.0, max(0.0, light))
    return 12.92 * light if light <= 0.0031308 else 1.055 * light ** (1 / 2.4) - 0.055


def channels(colour: str) -> tuple[float, float, float]:
    """`#rrggbb` as three numbers in [0, 1]."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def to_lch(colour: str) -> tuple[float, float, float]:
    """Lightness in [0, 1], chroma and hue in degrees."""
    r, g, b = map(linear, channels(colour))
    long = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3)
    middle = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3)
    short = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3)
    lightness = 0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short
    a = 1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short
    bb = 0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short
    return lightness, hypot(a, bb), degrees(atan2(bb, a)) % 360


def light_of(lightness: float, chroma: float, hue: float) -> tuple[float, float, float]:
    """Red, green and blue light; outside [0, 1] where no screen can show the colour."""
    a, b = chroma * cos(radians(hue)), chroma * sin(radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
    )


def from_lch(lightness: float, chroma: float, hue: float) -> str:
    """The nearest colour of this lightness and hue that a screen can show."""
    while chroma > 0 and not all(-1e-6 <= x <= 1 + 1e-6 for x in light_of(lightness, chroma, hue)):
        chroma -= 0.002
    shown = light_of(lightness, max(chroma, 0.0), hue)
    return "#" + "".join(f"{round(255 * encoded(x)):02x}" for x in shown)


def ramp(
    start: str, lightness: float, hues: tuple[float, float], chroma: float, steps: int = 11
) -> tuple[str, ...]:
    """Colours from `start` to a lightness in equal steps, the hue turning on the way.

    The chroma rises and falls again, as it must towards black and white.
    """
    first = to_lch(start)[0]
    stops = [start]
    for step in range(1, steps):
        t = step / (steps - 1)
        stops.append(
            from_lch(
                first + (lightness - first) * t,
                chroma * sin(0.62 * pi * t) ** 0.9,
                hues[0] + (hues[1] - hues[0]) * t,
            )
        )
    return tuple(stops)
