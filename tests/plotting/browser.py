"""A real browser, for tests of pages."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--virtual-time-budget=10000",
)


def browser() -> str:
    """The command of a browser; skips the test where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium on this machine, so no page is looked at. On Debian: apt-get install chromium")
    return found


def dom_of(page: Path, *, dark: bool = False, size: tuple[int, int] = (1000, 800)) -> str:
    """The page as it is after its scripts have run; a picture of it is written beside it, as .png."""
    command = [browser(), *_OPTIONS, f"--window-size={size[0]},{size[1]}", f"--user-data-dir={page.parent / 'profile'}"]
    command += [f"--blink-settings=preferredColorScheme={0 if dark else 1}", f"--screenshot={page.with_suffix('.png')}"]
    done = subprocess.run(
        [*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=240, check=True
    )
    return done.stdout
