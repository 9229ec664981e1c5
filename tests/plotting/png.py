"""Reads images."""

from __future__ import annotations

from pathlib import Path

from PIL import Image


def colours_of(path: Path) -> set[str]:
    """The colours that an image has, as six hexadecimal digits."""
    with Image.open(path) as image:
        pixels = image.convert("RGB")
        found = pixels.getcolors(maxcolors=pixels.width * pixels.height) or []
    return {bytes(colour).hex() for _, colour in found if isinstance(colour, tuple)}


def size_of(image: bytes) -> tuple[int, int]:
    """Width and height of a PNG in pixels."""
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(image[16:20]), int.from_bytes(image[20:24])
