"""Makes the pictures of docs/how_to/plot.md by running its code: each `picture.save("NAME.png")` there becomes
docs/images/plot/NAME.png, and NAME_dark.png beside it.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image
from tests.docs.page import ROOT, blocks_of

from cepheid.plotting.picture import Picture
from cepheid.plotting.theme import Theme

PAGE = ROOT / "docs" / "how_to" / "plot.md"
IMAGES = ROOT / "docs" / "images" / "plot"
SAVED = re.compile(r'^picture\.save\("(\w+)\.png"\)$', re.MULTILINE)
_COLOURS = 96
"""Enough for all that the pictures have; the files are then a third as large."""


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block in blocks_of(PAGE):
            if block.kind != "python":
                continue
            exec(compile(block.text, str(PAGE), "exec"), names)  # noqa: S102 our own page
            for name in SAVED.findall(block.text):
                write(names["picture"], IMAGES / f"{name}.png", "light")
                write(names["picture"], IMAGES / f"{name}_dark.png", "dark")


def write(picture: Picture, path: Path, theme: Theme) -> None:
    with Image.open(BytesIO(picture.png(theme))) as image:
        few = image.convert("RGB").quantize(_COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
