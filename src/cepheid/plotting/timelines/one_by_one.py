"""The marks of a timeline one by one, with all that their tooltips say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cepheid.plotting.matches import MATCH_ID, Matches
from cepheid.plotting.request import PlotRequest
from cepheid.plotting.text import Tooltip, columns_in_words, fields_of, simple_columns
from cepheid.plotting.timelines.kinds import Kind, finite
from cepheid.plotting.timelines.scene import Marks, Scene

MOST_THREADS = 500
"""The most matches whose events are joined by lines."""
_MOST_IDS = 3


def _place(scene: Scene, marks: Marks, place: int) -> dict[str, Any]:
    found: dict[str, Any] = {"x": marks.x[place], "row": scene.rows[marks.row[place]]}
    if marks.end is not None:
        end = marks.end[place]
        found["x2"] = end if np.isfinite(end) else marks.x[place]
    if marks.y is not None:
        found["y"] = finite(marks.y[place])
    return found


def events_one_by_one(asked: PlotRequest, scene: Scene, marks: Marks) -> Kind:
    names = simple_columns(marks.table, asked.columns, [*asked.time, *asked.key, *asked.y])
    tooltip = columns_in_words(marks.table, names, scene.clock)
    extras = _extras(asked, scene, marks)
    order = np.argsort(marks.x, kind="stable").tolist()
    return Kind([_place(scene, marks, i) | fields_of(tooltip, i) | extras[i] for i in order], tooltip)


def taken_one_by_one(asked: PlotRequest, scene: Scene, marks: Marks, stage: Sequence[str]) -> Kind:
    """The events of matches, each once for each of its stages and rows."""
    names = simple_columns(marks.table, asked.columns, [*asked.time, *asked.key, *asked.y])
    words = columns_in_words(marks.table, names, scene.clock)
    extras = _extras(asked, scene, marks)
    same: dict[tuple[Any, ...], list[int]] = {}
    for i in range(len(marks.x)):
        content = (stage[i], marks.x[i], int(marks.row[i]), *(texts[i] for _, texts in words))
        same.setdefault(content, []).append(i)
    ids = _short_ids(scene.matches)
    tooltip: Tooltip = [
        ("stage", [stage[places[0]] for places in same.values()]),
        ("match", [_ids_in_words([ids[marks.match[i]] for i in places]) for places in same.values()]),
        *((title, [texts[places[0]] for places in same.values()]) for title, texts in words),
    ]
    rows = [
        _place(scene, marks, first) | {"stage": stage[first]} | fields_of(tooltip, n) | extras[first]
        for n, (first, *_) in enumerate(same.values())
    ]
    return Kind(rows, tooltip)


def _extras(asked: PlotRequest, scene: Scene, marks: Marks) -> list[dict[str, Any]]:
    """What is drawn beside events: where they were planned, and words."""
    parts: list[dict[str, Any]] = [{} for _ in range(len(marks.x))]
    if not len(marks.x):
        return parts
    for field, name in zip(("p", "p2"), asked.planned, strict=False):
        for part, place in zip(parts, scene.clock.places(marks.table.column(name)).tolist(), strict=True):
            part[field] = finite(place)
    if asked.label is not None:
        for part, value in zip(parts, marks.table.column(asked.label).to_pylist(), strict=True):
            part["words"] = "" if value is None else scene.clock.word(value)
    return parts


def windows_one_by_one(asked: PlotRequest, scene: Scene) -> Kind:
    windows, matches = scene.windows, scene.matches
    if matches is None:
        return Kind([], ())
    rows = matches.rows.take(windows.match)
    known = (MATCH_ID, "match_start", "match_end", "detected_at", "event")
    others = [name for name in simple_columns(rows, None, asked.key) if name not in known]
    counts = np.bincount(matches.match, minlength=matches.rows.num_rows)[windows.match]
    ids = _short_ids(matches)
    tooltip: Tooltip = [
        ("match", [ids[match] for match in windows.match.tolist()]),
        *columns_in_words(rows, others, scene.clock),
        ("from", [scene.clock.at(place) for place in windows.begin.tolist()]),
        ("to", [scene.clock.at(place) for place in windows.end.tolist()]),
        ("events", [str(count) for count in counts.tolist()]),
    ]
    return Kind(
        [
            {"x": windows.begin[i], "x2": windows.end[i], "row": name, **fields_of(tooltip, i)}
            for i in range(len(windows.begin))
            for name in _rows_of(scene, int(windows.row[i]))
        ],
        tooltip,
    )


def _rows_of(scene: Scene, row: int) -> list[str]:
    """The name of the row; one for all rows where the window lies behind all of them."""
    return [scene.rows[max(row, 0)]]


def threads(scene: Scene, taken: Marks) -> Kind:
    """A line through the events of each match, from lane to lane."""
    if len(scene.windows.match) > MOST_THREADS or len(set(taken.row.tolist())) < 2:
        return Kind([], ())
    rows = []
    for i in range(len(taken.x)):
        match = int(taken.match[i])
        rows.append({"x": taken.x[i], "row": scene.rows[taken.row[i]], "match": match, "n": 2 * i})
        if taken.end is not None and np.isfinite(taken.end[i]):
            rows.append({"x": taken.end[i], "row": scene.rows[taken.row[i]], "match": match, "n": 2 * i + 1})
    return Kind(rows, ())


def _short_ids(matches: Matches | None) -> list[str]:
    """The first digits of each match's id."""
    return [] if matches is None else [str(name)[:8] for name in matches.rows.column(MATCH_ID).to_pylist()]


def _ids_in_words(ids: Sequence[str]) -> str:
    named = list(dict.fromkeys(ids))
    rest = f" and {len(named) - _MOST_IDS} more" if len(named) > _MOST_IDS else ""
    return ", ".join(named[:_MOST_IDS]) + rest
