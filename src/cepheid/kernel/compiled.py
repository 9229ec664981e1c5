"""The compiled kernel with its memory: makes room when it asks for it, and hands out what was emitted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from cepheid.compile.tables import EDGE, INSTRUCTION, NONE, SCRIPT, SETTINGS, SLOT, STATE, Ints, SkipKind, Tables
from cepheid.errors import SkipError
from cepheid.kernel.collect import collect, rebase
from cepheid.kernel.interpret import CAST_FAILED, DIVISION_BY_ZERO, OUT_OF_RANGE
from cepheid.kernel.jit import compiling_alone
from cepheid.kernel.layout import (
    FOREVER,
    Events,
    Int32s,
    new_cursor,
    new_output,
    new_partial_matches,
)
from cepheid.kernel.release import NOTHING_TO_SKIP_TO, SKIPS_TO_START
from cepheid.kernel.step import Status, run

T = TypeVar("T", bound=np.generic)

FAILURES = {
    OUT_OF_RANGE: "a result is out of the range of its type",
    DIVISION_BY_ZERO: "division by zero",
    CAST_FAILED: "a value cannot be cast",
}


SKIP_FAILURES = {
    NOTHING_TO_SKIP_TO: "a match has no event of the stage to skip to",
    SKIPS_TO_START: "the event to skip to is the first of the match itself",
}


@dataclass(frozen=True)
class Emitted:
    """Matches as flat arrays, in the order of emission."""

    end: Ints
    """(matches,) match i has the events from end[i - 1] (0 for the first) to end[i]."""
    detected_at: Ints
    """(matches,) microseconds, NO_TIME where only the end of the input made the match certain."""
    event: Int32s
    """(events,) position in the working set."""
    stage: Int32s
    """(events,) the stage that took it."""


class ConditionFailed(Exception):
    """A script failed on the event at `event`; `script` is its number."""

    def __init__(self, event: int, script: int, reason: str) -> None:
        super().__init__(reason)
        self.event = event
        self.script = script
        self.reason = reason


class CompiledMatcher:
    """Runs the kernel for one key after the other. `until` is the time that each key's input reaches (FOREVER:
    complete).
    """

    def __init__(self, tables: Tables, until: int, *, capacity: int = 1024) -> None:
        self.tables = tables
        self.until = until
        self.partials = new_partial_matches(tables, capacity)
        self.cursor = new_cursor(tables, self.partials)
        self.output = new_output(1 << 16, 1 << 18)
        depth = int((tables.scripts["end"] - tables.scripts["start"]).max(initial=0))
        self.scratch = np.zeros(depth, np.int64), np.zeros(depth, np.bool_)

    def run(self, events: Events, *, finish: bool) -> Emitted:
        """Processes the events of the working set that are not processed yet; the last key ends too if `finish`.

        Raises:
            ConditionFailed: the matcher is of no use afterwards.
        """
        parts: list[Emitted] = []
        while True:
            status = run(
                self.tables, events, self.partials, self.output, self.cursor, self.until, finish, *self.scratch
            )
            parts.append(self._take_output())
            match status:
                case Status.DONE:
                    return _join(parts)
                case Status.OUTPUT_FULL:
                    self._grow_output()
                case Status.ROOM_NEEDED:
                    self._make_room()
                case _ if self.cursor.failure < 0:
                    raise SkipError(SKIP_FAILURES[int(self.cursor.failure)])
                case _:
                    reason = FAILURES[int(self.cursor.failure)]
                    raise ConditionFailed(int(self.cursor.event), int(self.cursor.failed_script), reason)

    def hold(self) -> Int32s:
        """The positions of the events that partial matches hold, ascending. They are renamed 0, 1, … and are the
        start of the next working set.
        """
        if self.cursor.live == 0:
            self.cursor.nodes = 0
        collect(self.partials, self.cursor)
        held = np.unique(self.partials.nodes["event"][: self.cursor.nodes])
        position = np.zeros(int(held[-1]) + 1 if len(held) else 0, np.int32)
        position[held] = np.arange(len(held), dtype=np.int32)
        rebase(self.tables, self.partials, self.cursor, position)
        self.cursor.event = len(held)
        return held

    def _take_output(self) -> Emitted:
        matches = self.output.matches[: self.cursor.matches]
        events = self.output.events[: self.cursor.match_events]
        self.cursor.matches = self.cursor.match_events = 0
        fields = (matches["end"], matches["detected_at"], events["event"], events["stage"])
        return Emitted(*(np.array(field) for field in fields))

    def _grow_output(self) -> None:
        """The output was taken, so it is only too small if the next match alone does not fit."""
        length = int(self.partials.completed["length"][0])
        if length > len(self.output.events):
            self.output = new_output(len(self.output.matches), 2 * length)

    def _make_room(self) -> None:
        cursor, partials = self.cursor, self.partials
        collect(partials, cursor)
        most = int((cursor.live + 1) * cursor.fanout)
        if cursor.free < most:
            self._grow_rows(2 * most)
        if len(partials.nodes) < 2 * (cursor.nodes + most):  # at least half free after a collection: its cost is shared
            self.partials = self.partials._replace(nodes=_grown(partials.nodes, 4 * (int(cursor.nodes) + most)))
        if len(partials.completed) - cursor.completed < most + cursor.live:
            room = 2 * int(cursor.completed + most + cursor.live)
            self.partials = self.partials._replace(completed=_grown(partials.completed, room))

    def _grow_rows(self, more: int) -> None:
        before = len(self.partials.rows)
        capacity = before + more
        free = _grown(self.partials.free, capacity)
        free[self.cursor.free : self.cursor.free + more] = np.arange(before, capacity, dtype=np.int32)
        self.cursor.free += more
        live = np.stack([_grown(side, 2 * capacity) for side in self.partials.live])
        slots, rows = _grown(self.partials.slots, capacity), _grown(self.partials.rows, capacity)
        self.partials = self.partials._replace(rows=rows, slots=slots, live=live, free=free)


def warm_up() -> None:
    """Loads the kernel, compiled if it is not in the disk cache.

    One process compiles at a time and the others wait for its result: each for itself they would be no sooner.
    """
    with compiling_alone():
        _run_once()


@cache
def _run_once() -> None:
    tables = Tables(
        settings=np.array([(0, NONE, 0, SkipKind.NO_SKIP, NONE, 0, 0)], SETTINGS),
        states=np.zeros(1, STATE),
        edges=np.zeros(0, EDGE),
        state_scripts=np.zeros(0, np.int64),
        scripts=np.zeros(0, SCRIPT),
        code=np.zeros(0, INSTRUCTION),
        constants=np.zeros(0, np.int64),
        stage_slots=np.zeros(2, np.int64),
        slots=np.zeros(0, SLOT),
    )
    times, flags = np.zeros(0, np.int64), np.zeros(0, np.bool_)
    nothing = Events(times, times.copy(), np.zeros((0, 0), np.int64), np.zeros((0, 0), np.bool_), flags)
    matcher = CompiledMatcher(tables, FOREVER)
    matcher.run(nothing, finish=True)
    matcher.hold()


def _grown(array: npt.NDArray[T], capacity: int) -> npt.NDArray[T]:
    larger = np.zeros((capacity, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def _join(parts: list[Emitted]) -> Emitted:
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0] + [len(part.event) for part in parts[:-1]])
    return Emitted(
        end=np.concatenate([part.end + start for part, start in zip(parts, starts, strict=True)]),
        detected_at=np.concatenate([part.detected_at for part in parts]),
        event=np.concatenate([part.event for part in parts]),
        stage=np.concatenate([part.stage for part in parts]),
    )
