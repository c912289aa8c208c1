"""What pixels say to an eye: the contrast of numbers with what is behind them, and how far colours are apart."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image

Pixels = Any
"""Red, green and blue of each pixel: linear light from 0 to 1, of the shape (height, width, 3)."""

EYES = {
    "all cones": np.eye(3),
    "no green cones": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "no red cones": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
}
"""What is left of linear red, green and blue for whom (Machado, Oliveira and Fernandes, 2009, severity 1.0)."""
_LIGHT = np.array([0.2126, 0.7152, 0.0722])
_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
_WHITE = np.array([0.9505, 1.0, 1.089])


def pixels_of(png: bytes) -> Pixels:
    """The pixels of a picture."""
    values = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=float) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def seen_by(eyes: str, pixels: Pixels) -> Pixels:
    """The same for such eyes."""
    return np.clip(pixels @ EYES[eyes].T, 0, 1)


def light(pixels: Pixels) -> Any:
    """The relative luminance of each pixel (WCAG)."""
    return pixels @ _LIGHT


def contrast(one: Any, other: Any) -> Any:
    """The contrast of two luminances, from 1 to 21 (WCAG)."""
    return (np.maximum(one, other) + 0.05) / (np.minimum(one, other) + 0.05)


def contrast_of(words: Pixels, behind: Pixels) -> float:
    """The contrast of a number with the worst pixel that is behind or beside it: `words` is the picture with it,
    `behind` the same without. 1 if there is nothing to be read.
    """
    with_it, without = light(words), light(behind)
    strength = np.abs(with_it - without)
    if strength.max() < 0.02:
        return 1.0
    rows, columns = np.where(strength > 0.2 * strength.max())
    top, left = max(0, rows.min() - 1), max(0, columns.min() - 1)
    around = without[top : rows.max() + 2, left : columns.max() + 2]
    ink = np.median(with_it[strength >= np.quantile(strength[strength > 0.02], 0.9)])
    return float(contrast(ink, around).min())


def apart(one: Any, other: Any) -> float:
    """How far two colours are apart (CIE 1976: a difference of 2 is just seen)."""
    first, second = (_lab(colour) for colour in (one, other))
    return float(np.linalg.norm(first - second))


def _lab(colour: Any) -> Any:
    x, y, z = (value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116 for value in _XYZ @ colour / _WHITE)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])
