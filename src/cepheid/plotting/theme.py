"""The colours and fonts of pictures, as a configuration of Vega-Lite. Charts name styles, so that one chart can be
drawn in each theme.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Theme: TypeAlias = Literal["light", "dark"]


@dataclass(frozen=True)
class _Colours:
    paper: str
    ink: str
    soft: str
    line: str
    event: str
    window: str
    plan: str
    delay: str
    category: tuple[str, ...]


_COLOURS: Mapping[Theme, _Colours] = {
    "light": _Colours(
        paper="#fbfaf7",
        ink="#1d2433",
        soft="#5b6576",
        line="#e3e1da",
        event="#8b95a5",
        window="#2f6f9f",
        plan="#c9d2de",
        delay="#d9482b",
        category=("#2f6f9f", "#dd7e12", "#3b8c5a", "#8a4fb0", "#16899a", "#c2417c", "#8c6d31", "#5b6576"),
    ),
    "dark": _Colours(
        paper="#14181f",
        ink="#eef1f5",
        soft="#a7b0bf",
        line="#2a303b",
        event="#7d8797",
        window="#5aa7db",
        plan="#475467",
        delay="#ff7a59",
        category=("#5aa7db", "#f5a742", "#63c287", "#c08be8", "#45c1d1", "#f17eb3", "#c9ab6b", "#a7b0bf"),
    ),
}

FONT = "system-ui, 'Segoe UI', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"


def paper(theme: Theme) -> str:
    """The colour of the background."""
    return _COLOURS[theme].paper


def config_of(theme: Theme) -> dict[str, Any]:
    """The configuration of Vega-Lite for a theme."""
    c = _COLOURS[theme]
    small: dict[str, Any] = {"labelColor": c.soft, "titleColor": c.soft, "labelFontSize": 12, "titleFontSize": 12}
    return {
        "background": c.paper,
        "font": FONT,
        "padding": 18,
        "view": {"stroke": None, "continuousWidth": 760},
        "title": {
            "anchor": "start",
            "frame": "group",
            "color": c.ink,
            "fontSize": 20,
            "fontWeight": 600,
            "subtitleColor": c.soft,
            "subtitleFontSize": 13,
            "subtitlePadding": 7,
            "subtitleLineHeight": 18,
            "offset": 16,
        },
        "axis": {
            **small,
            "gridColor": c.line,
            "domainColor": c.line,
            "tickColor": c.line,
            "titleFontWeight": "normal",
            "titlePadding": 10,
            "labelPadding": 6,
        },
        "legend": {**small, "labelColor": c.ink, "symbolSize": 90, "labelLimit": 260, "titleFontWeight": "normal"},
        "header": {**small, "labelColor": c.ink, "labelFontSize": 14, "labelFontWeight": 600, "labelLimit": 600},
        "range": {"category": [*c.category]},
        "style": {
            "event": {"fill": c.event, "stroke": c.event, "color": c.event},
            "trend": {"stroke": c.event, "color": c.event},
            "spread": {"fill": c.event, "color": c.event},
            "thread": {"stroke": c.soft, "color": c.soft},
            "window": {"fill": c.window, "stroke": c.window, "color": c.window},
            "plan": {"fill": c.plan, "color": c.plan},
            "delay": {"stroke": c.delay, "fill": c.delay, "color": c.delay},
            "words": {"fill": c.ink, "color": c.ink},
            "outline": {"fill": c.paper, "stroke": c.paper, "color": c.paper},
            "count": {"fill": c.window, "color": c.window},
        },
    }
