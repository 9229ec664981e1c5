"""Boxes → HTML that any notebook shows.

It has no script, no style sheet and no link, as notebooks and mail remove these. All colours are the text's own, so it
is readable in light and in dark themes; what forbids events is dashed.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from cepheid.lang.pictures.box import Box

_BOX = "display:inline-block;border:1px {border} currentColor;border-radius:6px;padding:4px 10px;margin:3px"
_ROW = "display:flex;flex-wrap:wrap;align-items:center"
_LINE = "opacity:0.8;font-family:monospace;font-size:90%;white-space:pre-wrap"
_ARROW = "text-align:center;padding:0 6px;font-size:85%;line-height:1.1"


def html_of(box: Box) -> str:
    """The picture as one `div`."""
    return "".join(_box(box))


def text_html(text: str) -> str:
    """The text as it stands, with its lines."""
    return f'<pre style="white-space:pre-wrap">{escape(text)}</pre>'


def _box(box: Box) -> Iterator[str]:
    style = _BOX.format(border="dashed" if box.forbids else "solid")
    yield f'<div style="{style}"><div><b>{escape(box.title)}</b></div>'
    if box.inner:
        yield f'<div style="{_ROW}">'
        for inner in box.inner:
            if inner.arrow is not None:
                yield f'<div style="{_ARROW}">{escape(inner.arrow)}<br>→</div>'
            yield from _box(inner)
        yield "</div>"
    yield from (f'<div style="{_LINE}">{escape(line)}</div>' for line in box.lines)
    yield "</div>"
