"""How a picture is written and shown."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import pytest
from scripts.pictures import IMAGES, PAGE, SAVED
from tests.plotting.png import colours_of, size_of

from cepheid import Pattern, Picture, detect, plot
from cepheid.errors import SchemaError

FROM_ELSEWHERE = re.compile(r"(src|href)=|@import|url\(\s*['\"]?(?!data:|#)", re.IGNORECASE)


@pytest.fixture
def picture(events: pd.DataFrame, rising: Pattern) -> Picture:
    return plot(events, detect(events, rising, key="symbol", time="at"), y="price", key="symbol", time="at")


def test_a_page_loads_nothing(picture: Picture) -> None:
    """Outside its scripts the page refers to nothing, and its policy forbids to load anything."""
    page = picture.html()
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 2
    assert not FROM_ELSEWHERE.search(re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL))
    assert "default-src 'none'" in page


def test_data_cannot_end_its_script(events: pd.DataFrame) -> None:
    """Text from events stays within its script, whatever it contains."""
    evil = "</script><script>alert(1)</script><!--\u2028"
    page = plot(events.assign(note=evil), time="at", y="price", title=evil, columns="note").html()
    assert page.count("<script>") == page.count("</script>") == 2
    assert "alert(1)</" not in page
    assert "\u2028" not in page[page.index("<script>") :]


@pytest.mark.parametrize(("theme", "paper"), [("light", "fbfaf7"), ("dark", "14181f")])
def test_images_have_a_theme(picture: Picture, theme: Any, paper: str, tmp_path: Path) -> None:
    """PNG and SVG need no browser, and have the colours of their theme."""
    picture.save(tmp_path / "prices.png", theme)
    assert paper in colours_of(tmp_path / "prices.png")
    width, height = size_of((tmp_path / "prices.png").read_bytes())
    assert (width > 1_700, 600 < height < 1_400) == (True, True)
    picture.save(tmp_path / "prices.svg", theme)
    svg = ET.fromstring((tmp_path / "prices.svg").read_text("utf-8"))  # noqa: S314 (we wrote it)
    assert f"#{paper}" in ET.tostring(svg, "unicode")


def test_notebooks_show_the_page_in_a_frame(picture: Picture) -> None:
    """A notebook gets a frame that has the whole page and can reach nothing of the notebook."""
    bundle = picture._repr_mimebundle_()
    assert bundle["text/plain"] == "<Picture: 4 matches; save it as .html, .png or .svg>"
    frame = bundle["text/html"]
    assert frame.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
    assert 'sandbox="allow-scripts allow-downloads"' in frame
    assert frame.count('"') == 6


def test_a_chart_for_changes_of_ones_own(picture: Picture) -> None:
    """The chart is Altair's."""
    chart = picture.chart
    assert isinstance(chart, alt.FacetChart)
    assert chart.to_dict()["config"]["background"] == "#fbfaf7"


def test_unknown_files_and_themes_are_refused(picture: Picture, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"a picture is written as .html, .png, .svg; 'p.gif' is none of these"):
        picture.save(tmp_path / "p.gif")
    with pytest.raises(SchemaError, match=r"'p.png' cannot be written: there is no folder '.*/none'"):
        picture.save(tmp_path / "none" / "p.png")
    with pytest.raises(SchemaError, match="theme: 'blue' is none of 'light', 'dark'"):
        picture.save(tmp_path / "p.png", "blue")  # type: ignore[arg-type]


def test_without_the_extra() -> None:
    """Without Altair the error names the extra."""
    program = """
import sys
sys.modules["altair"] = None
from cepheid import plot
try:
    plot([])
except ModuleNotFoundError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "plot needs Altair and vl-convert: pip install 'cepheid[plot]'\n"


def test_the_gallery_has_its_pictures() -> None:
    """Each picture that the page saves is there, light and dark, and the page shows it; `make docs` makes them anew."""
    page = PAGE.read_text("utf-8")
    saved = {name + theme for name in SAVED.findall(page) for theme in (".png", "_dark.png")}
    assert saved == {file.name for file in IMAGES.iterdir()}
    assert all(f"../images/plot/{name}" in page for name in saved)
