"""The marks of a timeline in steps of time, where there are too many to draw them one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cepheid.plotting.bins import LEFT, Cells, Steps, cells_of, open_counts, steps_for
from cepheid.plotting.clock import Floats, Ints
from cepheid.plotting.text import Tooltip, fields_of
from cepheid.plotting.timelines.kinds import Kind
from cepheid.plotting.timelines.scene import Marks, Scene


def events_in_steps(scene: Scene, marks: Marks) -> Kind:
    """In panels the mean of each step, with the least and the greatest value; in lanes the number of events; for
    intervals how many overlap.
    """
    if marks.end is not None:
        ends = np.where(np.isfinite(marks.end), marks.end, marks.x)
        return _overlaps(scene, marks.x, ends, marks.row, "events")
    steps = steps_for(marks.x, max(LEFT // max(len(scene.rows), 1), 40), scene.clock)
    cells = cells_of(marks.x, marks.y, marks.row, steps)
    most = max(cells.count.tolist(), default=1)
    tooltip: Tooltip = [*_counts_in_words(scene, cells, steps), *_spread_in_words(cells)]
    rows = [
        {
            "x": cells.x[i] - (0 if scene.are_panels else steps.length / 2),
            "x2": cells.x[i] + steps.length / 2,
            "row": scene.rows[marks.row[first]],
            "share": int(cells.count[i]) / most,
            **_spread(cells, i),
            **fields_of(tooltip, i),
        }
        for i, first in enumerate(cells.first.tolist())
    ]
    return Kind(rows, tooltip, steps)


def taken_in_steps(scene: Scene, marks: Marks, stage: Sequence[str]) -> Kind:
    """A dot for the events of a stage in a step, at their mean."""
    stages = {name: number for number, name in enumerate(dict.fromkeys(stage))}
    groups: Ints = marks.row * len(stages) + np.array([stages[name] for name in stage], np.int64)
    steps = steps_for(marks.x, max(LEFT // max(len(np.unique(groups)), 1), 20), scene.clock)
    cells = cells_of(marks.x, marks.y, groups, steps)
    tooltip: Tooltip = [
        ("stage", [stage[first] for first in cells.first.tolist()]),
        *_counts_in_words(scene, cells, steps),
    ]
    rows = [
        {
            "x": cells.x[i],
            "row": scene.rows[marks.row[first]],
            "stage": stage[first],
            "count": int(cells.count[i]),
            **({"y": cells.y[i]} if cells.y is not None else {}),
            **fields_of(tooltip, i),
        }
        for i, first in enumerate(cells.first.tolist())
    ]
    return Kind(rows, tooltip, steps)


def open_matches(scene: Scene) -> Kind:
    """How many matches are open at each time."""
    windows = scene.windows
    return _overlaps(scene, windows.begin, windows.end, windows.row, "matches")


def _overlaps(scene: Scene, begin: Floats, end: Floats, row: Ints, what: str) -> Kind:
    groups = max(len(np.unique(row)), 1)
    steps = steps_for(np.concatenate([begin, end]), max(LEFT // groups, 40), scene.clock)
    found = open_counts(begin, end, row, steps)
    most = max(found.count.tolist(), default=1)
    tooltip: Tooltip = [
        (what, [f"{count:,}" for count in found.count.tolist()]),
        ("from", [scene.clock.at(x) for x in found.begin.tolist()]),
        ("to", [scene.clock.at(x) for x in found.end.tolist()]),
    ]
    rows = [
        {
            "x": found.begin[i],
            "x2": found.end[i],
            "row": scene.rows[max(int(found.group[i]), 0)],
            "share": int(found.count[i]) / most,
            **fields_of(tooltip, i),
        }
        for i in range(len(found.begin))
    ]
    return Kind(rows, tooltip, steps)


def _counts_in_words(scene: Scene, cells: Cells, steps: Steps) -> Tooltip:
    half = steps.length / 2
    return [
        ("events", [f"{count:,}" for count in cells.count.tolist()]),
        ("from", [scene.clock.at(x - half) for x in cells.x.tolist()]),
        ("to", [scene.clock.at(x + half) for x in cells.x.tolist()]),
    ]


def _spread_in_words(cells: Cells) -> Iterator[tuple[str, list[str]]]:
    for title, values in (("least", cells.low), ("mean", cells.y), ("greatest", cells.high)):
        if values is not None:
            yield title, [f"{value:.6g}" for value in values.tolist()]


def _spread(cells: Cells, place: int) -> dict[str, float]:
    named = {"y": cells.y, "low": cells.low, "high": cells.high}
    return {name: float(values[place]) for name, values in named.items() if values is not None}
