"""The timeline as a self-contained HTML page: inline SVG, no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from html import escape

from cepheid.demo import timeline as t
from cepheid.demo.timeline import Axis, Chain, Flight

_STYLE = """
:root { color-scheme: light dark; --paper: #fbfaf7; --ink: #1d2433; --soft: #667085; --line: #e3e1da; --plan: #c9d2de;
  --real: #2f6f9f; --delay: #d9482b; --turn: #98a2b3 }
@media (prefers-color-scheme: dark) { :root { --paper: #14181f; --ink: #eef1f5; --soft: #98a2b3; --line: #2a303b;
  --plan: #475467; --real: #5aa7db; --delay: #ff7a59; --turn: #667085 } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.45 system-ui, sans-serif }
main { max-width: 1120px; margin: 0 auto; padding: 2.2rem 1.2rem }
h1 { font-size: 1.65rem; line-height: 1.2; margin: 0 0 .3rem; letter-spacing: -.01em }
p { margin: 0 0 1.1rem; color: var(--soft) }
svg { width: 100%; height: auto; display: block; font-family: inherit }
text { fill: var(--ink) } .soft { fill: var(--soft) } .delay { fill: var(--delay) }
.grid { stroke: var(--line) } .midnight { stroke: var(--soft); stroke-dasharray: 2 4 }
.plan { fill: var(--plan) } .real { fill: var(--real) } .gap { stroke: var(--delay); stroke-width: 3 }
.end { fill: var(--delay) } .turn { stroke: var(--turn); stroke-width: 1.5; stroke-dasharray: 2 5; fill: none }
.back { fill: transparent } .row:hover .back { fill: var(--line); opacity: .45 }
"""


@dataclass(frozen=True)
class _Canvas:
    """Sizes in SVG units."""

    axis: Axis
    rows: int
    width: int = 1080
    left: int = 130
    right: int = 160
    top: int = 64
    row: int = 96

    def x(self, time: datetime) -> float:
        return round(self.left + self.axis.fraction(time) * (self.width - self.left - self.right), 1)

    def y(self, row: int) -> int:
        """The top edge of a row."""
        return self.top + row * self.row

    @property
    def bottom(self) -> int:
        return self.y(self.rows)


def html_page(chain: Chain) -> str:
    canvas = _Canvas(t.axis_of(chain), len(chain.flights))
    height = canvas.bottom + 18
    drawing = "\n".join([*_grid(canvas), *_turns(canvas, chain), *_rows(canvas, chain), *_legend()])
    title = escape(t.title(chain))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p>{escape(t.subtitle(chain))}</p>
<svg viewBox="0 0 {canvas.width} {height}" role="img" aria-label="{title}">
{drawing}
</svg>
</main>
</body>
</html>
"""


def _grid(canvas: _Canvas) -> list[str]:
    parts = []
    for tick in canvas.axis.ticks():
        x, midnight = canvas.x(tick), tick.hour == 0
        kind = "midnight" if midnight else "grid"
        parts.append(f'<line class="{kind}" x1="{x}" x2="{x}" y1="{canvas.top}" y2="{canvas.bottom}"/>')
        parts.append(_text(x, canvas.top - 10, f"{tick:%H:%M}", "soft", size=13, anchor="middle"))
        if midnight:
            parts.append(_text(x, canvas.bottom + 14, t.day(tick), "soft", size=13, anchor="middle"))
    return parts


def _rows(canvas: _Canvas, chain: Chain) -> list[str]:
    return [part for row, flight in enumerate(chain.flights) for part in _row(canvas, row, flight)]


def _row(canvas: _Canvas, row: int, flight: Flight) -> list[str]:
    y = canvas.y(row)
    return [
        '<g class="row">',
        f"<title>{escape(t.details(flight))}</title>",
        f'<rect class="back" x="0" y="{y + 4}" width="{canvas.width}" height="{canvas.row - 8}" rx="8"/>',
        _text(10, y + 44, t.label(flight), size=17, weight=600),
        _text(10, y + 65, t.route(flight), "soft", size=14),
        _bar(canvas, t.plan(flight), "plan", y + 26, 9),
        _bar(canvas, t.reality(flight), "real", y + 48, 20),
        *_delays(canvas, flight, y),
        "</g>",
    ]


def _delays(canvas: _Canvas, flight: Flight, y: int) -> list[str]:
    """The red line from the planned to the real departure, and both delays in words."""
    planned, left = canvas.x(flight.scheduled_at), canvas.x(flight.departed_at)
    landed = canvas.x(t.reality(flight)[1])
    return [
        f'<line class="gap" x1="{planned}" x2="{left}" y1="{y + 58}" y2="{y + 58}"/>',
        f'<circle class="end" cx="{planned}" cy="{y + 58}" r="4"/>',
        _text((planned + left) / 2, y + 82, t.departure_words(flight), "delay", size=14, weight=600, anchor="middle"),
        _text(landed + 8, y + 63, t.arrival_words(flight), "delay", size=14, weight=600),
    ]


def _turns(canvas: _Canvas, chain: Chain) -> list[str]:
    parts = []
    for row, (before, after) in enumerate(zip(chain.flights, chain.flights[1:], strict=False)):
        landed, left = (canvas.x(time) for time in t.turn(before, after))
        y, below = canvas.y(row) + 68, canvas.y(row + 1) + 48
        middle = (y + below) / 2
        parts.append(f'<path class="turn" d="M{landed} {y} C{landed} {middle} {left} {middle} {left} {below}"/>')
    return parts


def _legend() -> list[str]:
    y = 12
    shapes = {
        "planned": '<rect class="plan" x="{x}" y="{top}" width="26" height="10" rx="3"/>',
        "real": '<rect class="real" x="{x}" y="{top}" width="26" height="10" rx="3"/>',
        "late departure": '<path class="gap" d="M{x} {y} h26"/><circle class="end" cx="{x}" cy="{y}" r="4"/>',
        "the way back to New York, not in the data": '<path class="turn" d="M{x} {y} h26"/>',
    }
    x, parts = 10, []
    for words, shape in shapes.items():
        parts += [shape.format(x=x, y=y, top=y - 5), _text(x + 34, y + 5, words, "soft", size=13)]
        x += 64 + 7 * len(words)
    return parts


def _bar(canvas: _Canvas, times: tuple[datetime, datetime], kind: str, y: int, height: int) -> str:
    start, end = (canvas.x(time) for time in times)
    return f'<rect class="{kind}" x="{start}" y="{y}" width="{round(end - start, 1)}" height="{height}" rx="4"/>'


def _text(
    x: float, y: float, words: str, kind: str = "", *, size: int, weight: int = 400, anchor: str = "start"
) -> str:
    return (
        f'<text class="{kind}" x="{round(x, 1)}" y="{y}" font-size="{size}" font-weight="{weight}" '
        f'text-anchor="{anchor}">{escape(words)}</text>'
    )
