"""The words in tooltips. All of it is text, so that no value of an event is read as anything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import altair as alt
import pyarrow as pa

from cepheid.events.batch import python_values
from cepheid.plotting.clock import Clock

Tooltip: TypeAlias = Sequence[tuple[str, Sequence[str]]]
"""Lines of a tooltip: a title, and a text for each mark."""

MOST_COLUMNS = 12
_MEANT_OTHERWISE = ("image", "title")
"""Titles that Vega's tooltips give a meaning: they load the value as a picture, or show it as a heading."""
_NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"


def columns_in_words(table: pa.Table, names: Sequence[str], clock: Clock) -> Tooltip:
    """A line for each of the columns."""
    return [(name, [clock.word(value) for value in python_values(table.column(name))]) for name in names]


def fields_of(tooltip: Tooltip, place: int) -> dict[str, str]:
    """The texts for one mark, as the fields t0, t1 and so on."""
    return {f"t{number}": texts[place] for number, (_, texts) in enumerate(tooltip)}


def tooltip_encoding(tooltip: Tooltip) -> list[alt.Tooltip]:
    """The channel that shows the fields, under titles that differ."""
    titles: list[str] = []
    for title, _ in tooltip:
        shown = tooltip_title(title)
        while shown.casefold() in _MEANT_OTHERWISE or shown in titles or not shown:
            shown += _NO_BREAK_SPACE
        titles.append(shown)
    return [alt.Tooltip(f"t{number}:N", title=title) for number, title in enumerate(titles)]


def tooltip_title(name: str) -> str:
    """The name of a column as the title of a line: Vega-Lite puts it between quotes in an expression, and escapes only
    quotes.
    """
    return in_one_line(name).replace("\\", "\\\\")


def in_one_line(name: str) -> str:
    """The name of a column without line breaks."""
    return " ".join(name.splitlines())


def simple_columns(table: pa.Table, chosen: Sequence[str] | None, first: Sequence[str]) -> list[str]:
    """The columns for tooltips: those that come `first`, then the chosen ones, or the others up to a number."""
    wanted = table.schema.names if chosen is None else chosen
    names = [name for name in dict.fromkeys([*first, *wanted]) if name in table.schema.names]
    plain = [name for name in names if not _is_nested(table.schema.field(name).type)]
    return plain if chosen is not None else plain[:MOST_COLUMNS]


def _is_nested(type_: pa.DataType) -> bool:
    return bool(pa.types.is_nested(type_) or pa.types.is_binary(type_) or pa.types.is_large_binary(type_))
