"""An overview of many matches: when they begin, which keys they have, and how long they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np

from cepheid.errors import SchemaError
from cepheid.plotting.altair_values import AnyChart, inline
from cepheid.plotting.bins import MOST_MARKS, Steps, steps_for
from cepheid.plotting.clock import Clock, Floats, Ints, clock_of
from cepheid.plotting.labels import labels_of
from cepheid.plotting.matches import MATCH_END, MATCH_START, Matches
from cepheid.plotting.request import PlotRequest
from cepheid.plotting.text import in_one_line, tooltip_title
from cepheid.plotting.time_axis import x_axis
from cepheid.plotting.timelines.chart import WIDTH, Chart

MOST_KEYS = 20
_COUNTS_WIDTH = 170
_STEPS, _LENGTHS = 90, 40
"""The most bars of the two histograms."""
_UNITS = (("days", 2 * 86_400_000, 86_400_000), ("hours", 2 * 3_600_000, 3_600_000), ("minutes", 120_000, 60_000))
"""Units of length, from which length on they are used, and their own length, in milliseconds."""


@dataclass(frozen=True)
class _Found:
    """The matches, one entry each."""

    clock: Clock
    begin: Floats
    length: Floats
    key: Ints
    keys: list[str]
    """The keys by number, those with the most matches first."""
    pattern: list[str] | None

    @property
    def shown(self) -> list[str]:
        return self.keys[:MOST_KEYS] if self.keys != [""] else []


def overview(asked: PlotRequest, matches: Matches) -> tuple[Chart, list[str]]:
    """The chart, and notes on what it does not show.

    Raises:
        SchemaError: there are no matches, or they have no times.
    """
    found = _found(asked, matches)
    steps = steps_for(found.begin, _STEPS, found.clock)
    unit, size = _unit(found)
    lengths = steps_for(np.append(found.length / size, 0), _LENGTHS, Clock(is_time=False, zone=None))
    rows = _rows(found, steps, lengths, size)
    period = alt.selection_interval(name="period", encodings=["x"])
    parts: list[Any] = [_when(found, steps).add_params(period)]
    if found.shown:
        parts.append(_by_key(found, period, " · ".join(asked.key)))
    parts.append(_how_long(found, lengths, unit, size, period))
    chart = alt.vconcat(*parts, data=inline(rows), spacing=26).resolve_scale(color="shared")
    height = 470 + (19 * len(found.shown) + 90 if found.shown else 0)
    return Chart(chart, height), [*_notes(found), "Drag over the first panel to choose a time for the others"]


def _found(asked: PlotRequest, matches: Matches) -> _Found:
    rows = matches.rows
    clock = (
        clock_of([rows.schema.field(MATCH_START).type], asked.time_zone) if MATCH_START in rows.schema.names else None
    )
    begin = clock.places(rows.column(MATCH_START)) if clock is not None else np.zeros(0)
    known = np.flatnonzero(np.isfinite(begin))
    if clock is None or not len(known):
        raise SchemaError("matches: there is none with a time, so there is nothing to draw")
    (codes,), labels = labels_of([rows], asked.key, clock)
    # Lengths are those of instants, as the clock on the wall may be changed meanwhile.
    length = clock.instants(rows.column(MATCH_END)) - clock.instants(rows.column(MATCH_START))
    codes, begin, length = codes[known], begin[known], length[known]
    order = np.argsort(-np.bincount(codes, minlength=len(labels)), kind="stable")
    number = np.empty(len(labels), np.int64)
    number[order] = np.arange(len(labels))
    patterns = rows.column("pattern").take(known).to_pylist() if len(matches.patterns) > 1 else None
    return _Found(clock, begin, length, number[codes], [labels[place] for place in order], patterns)


def _unit(found: _Found) -> tuple[str, float]:
    if not found.clock.is_time:
        return "", 1.0
    longest = float(found.length.max())
    return next(((name, float(size)) for name, least, size in _UNITS if longest >= least), ("seconds", 1000.0))


def _rows(found: _Found, steps: Steps, lengths: Steps, size: float) -> list[dict[str, Any]]:
    """One row for each match or, where they are too many, for those that agree in all that is drawn."""
    number, length = steps.number(found.begin), lengths.number(found.length / size)
    key = np.minimum(found.key, MOST_KEYS)
    one_by_one = len(number) <= MOST_MARKS
    apart = np.arange(len(number)) if one_by_one else np.zeros(len(number), np.int64)
    names = sorted(set(found.pattern or [""]))
    pattern = np.array([names.index(name) for name in found.pattern], np.int64) if found.pattern else key * 0
    table, counts = np.unique(np.stack([number, length, key, pattern, apart]), axis=1, return_counts=True)
    rows = []
    for (step, long, place, of, i), count in zip(table.T.tolist(), counts.tolist(), strict=True):
        begin = step * steps.length
        row = {
            "t": begin,
            "t2": begin + steps.length,
            "x": found.begin[i] if one_by_one else begin + steps.length / 2,
            "w": found.clock.at(found.begin[i] if one_by_one else begin),
            "step": found.clock.at(begin),
            "d": long * lengths.length,
            "d2": (long + 1) * lengths.length,
            "n": count,
        }
        row |= {"key": found.keys[place]} if place < MOST_KEYS else {}
        row |= {"pattern": names[of]} if found.pattern else {}
        row |= {"long": _length_in_words(float(found.length[i]), found.clock)} if one_by_one else {}
        rows.append(row)
    return rows


def _length_in_words(length: float, clock: Clock) -> str:
    """A length as two units: "4 h 12 min"."""
    if not clock.is_time:
        return clock.word(length)
    seconds = round(length / 1000)
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    parts = [f"{n} {unit}" for n, unit in ((days, "d"), (hours, "h"), (minutes, "min"), (seconds % 60, "s")) if n]
    return " ".join(parts[:2]) or "0 s"


def _color(found: _Found) -> dict[str, Any]:
    if found.pattern is None:
        return {}
    names = sorted(set(found.pattern))
    legend = alt.Legend(title=None, orient="top", direction="horizontal")
    return {"color": alt.Color("pattern:N", scale=alt.Scale(domain=names), legend=legend)}


def _style(found: _Found) -> dict[str, Any]:
    return {} if found.pattern is not None else {"style": "count"}


def _title(text: str) -> alt.TitleParams:
    return alt.TitleParams(text=text, fontSize=14, offset=8)


def _count_axis(title: str) -> alt.Y:
    return alt.Y("sum(n):Q", title=title, axis=alt.Axis(tickCount=4, format=",d", tickMinStep=1))


_MATCHES = alt.Tooltip("sum(n):Q", title="matches", format=",")


def _when(found: _Found, steps: Steps) -> AnyChart:
    x = x_axis(found.clock, "match_start", field="t")
    tooltip = [alt.Tooltip("step:N", title="from"), _MATCHES]
    bars = alt.Chart().mark_bar(**_style(found), binSpacing=1)
    bars = bars.encode(x=x, x2="t2:Q", y=_count_axis(f"in {steps.words}"), tooltip=tooltip, **_color(found))
    return bars.properties(width=WIDTH, height=130, title=_title("When they begin"))


def _by_key(found: _Found, period: Any, key: str) -> AnyChart:
    scale = alt.Scale(domain=found.shown)
    names = alt.Axis(labelLimit=220, ticks=False, domain=False)
    named, unnamed = (alt.Y("key:N", sort=found.shown, scale=scale, title=None, axis=axis) for axis in (names, None))
    x = x_axis(found.clock, "match_start", field="x")
    base = alt.Chart().transform_filter("isValid(datum.key)").transform_filter(period)
    named_key = alt.Tooltip("key:N", title=tooltip_title(key))
    tooltip = [named_key, alt.Tooltip("w:N", title="from")]
    if len(found.begin) <= MOST_MARKS:
        marks = base.mark_tick(**_style(found), thickness=2, height=12, opacity=0.75)
        marks = marks.encode(x=x, y=named, tooltip=[*tooltip, alt.Tooltip("long:N", title="length")], **_color(found))
    else:
        size = alt.Size("sum(n):Q", scale=alt.Scale(range=[4, 160]), legend=None)
        marks = base.mark_circle(**_style(found), opacity=0.8)
        marks = marks.encode(x=x, y=named, size=size, tooltip=[*tooltip, _MATCHES], **_color(found))
    counts = base.mark_bar(**_style(found), height=12)
    count_axis = alt.X("sum(n):Q", title="matches", axis=alt.Axis(tickCount=3, format=",d", tickMinStep=1))
    counts = counts.encode(x=count_axis, y=unnamed, tooltip=[named_key, _MATCHES], **_color(found))
    height = alt.Step(19)
    left = marks.properties(width=WIDTH - _COUNTS_WIDTH - 20, height=height, title=_title(f"By {in_one_line(key)}"))
    return alt.hconcat(left, counts.properties(width=_COUNTS_WIDTH, height=height), spacing=20)


def _how_long(found: _Found, lengths: Steps, unit: str, size: float, period: Any) -> AnyChart:
    median = float(np.median(found.length))
    x = alt.X("d:Q", title=f"length in {unit}" if unit else "length", scale=alt.Scale(nice=False))
    tooltip = [alt.Tooltip("d:Q", title=f"from, {unit}"), alt.Tooltip("d2:Q", title=f"to, {unit}"), _MATCHES]
    bars = alt.Chart().mark_bar(**_style(found), binSpacing=1).transform_filter(period)
    bars = bars.encode(
        x=x, x2="d2:Q", y=_count_axis(f"in {lengths.words} {unit}".rstrip()), tooltip=tooltip, **_color(found)
    )
    at = inline([{"m": median / size, "words": f"median {_length_in_words(median, found.clock)}"}])
    rule = alt.Chart(at).mark_rule(style="delay", strokeWidth=2).encode(x="m:Q")
    words = alt.Chart(at).mark_text(style="words", align="left", dx=6, dy=-4, baseline="bottom", fontSize=12)
    words = words.encode(x="m:Q", y=alt.value(0), text="words:N")
    return alt.layer(bars, rule, words).properties(width=WIDTH, height=110, title=_title("How long they are"))


def _notes(found: _Found) -> list[str]:
    notes = []
    if len(found.begin) > MOST_MARKS:
        notes.append(f"More than {MOST_MARKS:,} marks: circles stand for the matches of a key in a step of time")
    if len(found.keys) > MOST_KEYS:
        notes.append(f"By key: {MOST_KEYS} of {len(found.keys):,} keys, those with the most matches")
    return notes
