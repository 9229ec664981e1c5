"""Pages in a real browser: they are drawn, follow its theme, show tooltips, and run nothing that data contains."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from tests.plotting.browser import dom_of
from tests.plotting.png import colours_of

from cepheid import Pattern, detect, plot

EVIL = "</script><script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"
HOVER = """<script>
const waiting = setInterval(() => {
  const dot = document.querySelector(".mark-symbol path");
  if (!document.body.dataset.drawn || !dot) return;
  clearInterval(waiting);
  dot.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, clientX: 200, clientY: 200}));
}, 50);
</script>"""
"""Points at the first dot when the picture is there."""


@pytest.mark.parametrize("dark", [False, True])
def test_a_page_is_drawn(events: pd.DataFrame, rising: Pattern, tmp_path: Path, dark: bool) -> None:  # noqa: FBT001
    """The page has the picture with its words, in the browser's theme, and in the screenshot there are its colours."""
    page = tmp_path / "prices.html"
    plot(events, detect(events, rising, key="symbol", time="at"), y="price", key="symbol", time="at").save(page)
    dom = dom_of(page, dark=dark)
    assert f'data-drawn="{"dark" if dark else "light"}"' in dom
    shown = re.findall(r"<text[^>]*>([^<]+)</text>", dom)
    assert {"4 matches", "a", "b", "low", "high", "08:02"} <= {*shown}
    paper, low = ("14181f", "5aa7db") if dark else ("fbfaf7", "2f6f9f")
    assert {paper, low} <= colours_of(page.with_suffix(".png"))


def test_nothing_in_data_runs(tmp_path: Path) -> None:
    """Values, names of columns and titles that look like HTML are shown as they are, also in tooltips; a column named
    image loads none.
    """
    events = pd.DataFrame({EVIL: ["x"], "at": [pd.Timestamp("2026-03-02")], "image": ["x.png"], "who": [EVIL]})
    page = tmp_path / "evil.html"
    picture = plot(events, time="at", key="who", title=EVIL, columns=[EVIL, "image", "who"])
    page.write_text(picture.html().removesuffix("</body>\n</html>\n") + HOVER, "utf-8")
    dom = re.sub(r"<script>.*?</script>", "", dom_of(page), flags=re.DOTALL)
    assert "<title>&lt;/script&gt;" in dom
    (tooltip,) = re.findall(r'<div id="vg-tooltip-element".*?</div>', dom, re.DOTALL)
    assert "&lt;img src=x" in tooltip
    assert "x.png" in tooltip
    assert "<img" not in dom
