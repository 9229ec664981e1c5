"""Tables in HTML that any notebook shows: without style sheets, scripts and links, in the colours of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_CELL = "text-align:left;vertical-align:top;padding:2px 10px 2px 0;white-space:pre-wrap"


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a row of heads."""
    head = "".join(f'<th style="{_CELL}">{escape(text)}</th>' for text in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(text: str) -> str:
    return f'<td style="{_CELL}">{escape(text)}</td>'
