"""Runs the compiled kernel and owns its arrays: grows them when the kernel asks for room, and returns the matches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.compile.arrays import NONE, Ints
from cepheid.compile.stages.tables import Tables
from cepheid.errors import SkipError
from cepheid.events.batch import Batch
from cepheid.kernel.arrays import FOREVER, Events, Flags, Int32s, Visits, distinct, grown, new_stack
from cepheid.kernel.failures import ConditionFailed, PassedLimit
from cepheid.kernel.scripts.reasons import FAILURES
from cepheid.kernel.stages.collect import collect, rebase
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.fork import copy_nodes, copy_parked, forget_parked, parked_of
from cepheid.kernel.stages.layout import (
    START_ROW,
    Index,
    Output,
    Parked,
    Starts,
    new_cursor,
    new_index,
    new_output,
    new_partial_matches,
)
from cepheid.kernel.stages.listing import open_one_by_one
from cepheid.kernel.stages.node_kernel import NodeKernel
from cepheid.kernel.stages.release import NOTHING_TO_SKIP_TO, SKIPS_TO_START, TOO_MANY_MATCHES, TOO_MANY_PARTIAL_MATCHES
from cepheid.kernel.stages.state import checked_state
from cepheid.kernel.stages.step import Status, run
from cepheid.kernel.stages.withheld import count_withheld
from cepheid.kernel.stopping import stop_if_asked

_NODES = 1 << 16
"""Below so many nodes, which take a megabyte, a full array is doubled and not only collected. Each collection returns
to Python, where threads wait for each other: with 4,096 nodes, P8 of docs/performance.md took two threads 9 % longer
and one 4 %.
"""

_SKIP_FAILURES = {
    NOTHING_TO_SKIP_TO: "a match has no event of the stage to skip to",
    SKIPS_TO_START: "the event to skip to is the first of the match itself",
}
_LIMITS = {
    TOO_MANY_PARTIAL_MATCHES: "max_partial_matches",
    TOO_MANY_MATCHES: "max_matches_per_event",
}


class CompiledKernel(NodeKernel):
    """Runs the kernel. The open matches of a key are stored under its number from one visit to the next."""

    drops_deadlines_silently = False
    starts: Starts | None = None
    """What is recorded about starts."""

    def __init__(self, tables: Tables, *, capacity: int = 1024) -> None:
        self.tables = tables
        self.partials = new_partial_matches(tables, capacity)
        self.cursor = new_cursor(tables, self.partials)
        self.output = new_output(1 << 14, 1 << 16)
        self.stack = new_stack(tables.scripts)

    def run(self, events: Events, visits: Visits) -> Emitted:
        """Makes the visits. The working set begins with the events that `hold` returned.

        Raises:
            ConditionFailed, SkipError, PassedLimit: the kernel cannot be used afterwards.
        """
        self.cursor.visit = 0
        while True:
            stop_if_asked()
            status = run(self.tables, events, visits, self.partials, self.output, self.cursor, self.stack, self.starts)
            match status:
                case Status.DONE:
                    return self._take_output()
                case Status.OUTPUT_FULL:
                    self._grow_output()
                case Status.ROOM_NEEDED:
                    self._make_room(visits)
                case _:
                    raise self._failure()

    def hold(self) -> Int32s:
        """The positions of the events that partial matches hold, ascending. From now on these events are at 0, 1, … and
        begin the next working set.
        """
        return self._hold(np.zeros(0, np.int64))

    def _hold(self, also: Ints) -> Int32s:
        """The same with these events, whoever holds them."""
        if self.cursor.parked == 0:
            self.cursor.nodes = 0
        collect(self.partials, self.cursor)
        events = np.concatenate([self.partials.nodes["event"][: self.cursor.nodes], also])
        held = distinct(events, int(events.max(initial=-1)) + 1)
        position = np.zeros(int(held[-1]) + 1 if len(held) else 0, np.int32)
        position[held] = np.arange(len(held), dtype=np.int32)
        rebase(self.tables, self.partials, self.cursor, position)
        self.cursor.event = len(held)
        return held

    def open_partial_matches(self, _now: int) -> int:
        """The number of open partial matches of all keys; no deadline is due for any of them."""
        return int(self.cursor.parked)

    @property
    def withheld(self) -> int:
        """The number of matches of all keys that are found but not emitted, and of partial matches that would be
        matches if they ended now.
        """
        return count_withheld(self.tables, self.partials)

    def listed(self, events: Events, _now: int, most: int) -> Emitted:
        """For each key the `most` open partial matches that started last, in order of their start. detected_at is the
        deadline, NO_TIME if there is none. `events` are those of the working set.
        """
        return open_one_by_one(self.tables, self.partials, events, most)

    @contextmanager
    def only(self, keys: Int32s) -> Iterator[None]:
        """In the block the kernel has only these keys, numbered 0, 1, …; they must be open. They may be counted and
        listed.
        """
        partials, parked = self.partials, self.cursor.parked
        try:
            self.renumber(keys)
            self.cursor.parked, _ = parked_of(partials, keys)
            yield
        finally:
            self.partials, self.cursor.parked = partials, parked

    def is_open(self, keys: Int32s) -> Flags:
        """(k,) whether each of the keys has open partial matches."""
        entries = self.partials.parked.keys
        flags: Flags = entries["live_end"][keys] > entries["live"][keys]
        return flags

    def first_starts(self, keys: Int32s, times: Ints) -> list[int]:
        """(k,) when the earliest open partial match of each key began; each key must have one. `times` has the times of
        the working set.
        """
        first = self.partials.parked.live[self.partials.parked.keys["live"][keys]]
        starts: list[int] = times[self.partials.rows["start"][first]].tolist()
        return starts

    def open_starts(self) -> Int32s:
        """The positions of the first events of what is open for the key 0: of its partial matches and of the matches
        that wait; distinct and ascending.
        """
        partials = self.partials
        key, rows, waiting = partials.parked.keys[0], partials.parked.live, partials.parked.completed
        live = partials.rows["start"][rows[key["live"] : key["live_end"]]]
        completed = waiting["start"][key["completed"] : key["completed_end"]]
        return np.union1d(live, completed).astype(np.int32)

    @property
    def open_keys(self) -> Int32s:
        """The numbers of all keys that have open partial matches, ascending."""
        entries = self.partials.parked.keys
        return np.flatnonzero(entries["live_end"] > entries["live"]).astype(np.int32)

    def due(self, time: int) -> Int32s:
        """The numbers of the keys that have a deadline up to `time`, ascending."""
        return np.flatnonzero(self.partials.parked.due <= time).astype(np.int32)

    @property
    def next_due(self) -> int:
        """The earliest time for which `due` has a key; FOREVER if there is none."""
        return int(self.partials.parked.due.min(initial=FOREVER))

    @property
    def dropped(self) -> tuple[int, int]:
        """The numbers of partial matches and of matches that were dropped because of a limit."""
        return int(self.cursor.dropped), int(self.cursor.dropped_matches)

    @property
    def negated(self) -> Ints:
        """(stages,) the number of partial matches that an event of a negated stage has ended without a match."""
        return self.partials.negated

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that is open, as arrays. Call it right after `hold`, so that all nodes are reachable."""
        partials, cursor = self.partials, self.cursor
        rows = partials.parked.live[: cursor.parked_live]
        return {
            "rows": partials.rows[rows],
            "slots": partials.slots[rows],
            "nodes": partials.nodes[: cursor.nodes],
            "keys": partials.parked.keys[: int(self.open_keys.max(initial=-1)) + 1],
            "completed": partials.parked.completed[: cursor.parked_completed],
            "totals": np.array([cursor.step, cursor.dropped, cursor.dropped_matches], np.int64),
            "negated": partials.negated,
        }

    def renumber(self, keys: Int32s) -> None:
        """Renumbers keys: key keys[i] becomes key i. Nothing is open for other keys."""
        parked = self.partials.parked
        self.partials = self.partials._replace(parked=parked._replace(keys=parked.keys[keys], due=parked.due[keys]))

    def fork(self, source: Int32s, target: Int32s) -> None:
        """Copies everything open for key source[i] to key target[i], which has nothing open. Afterwards the two are
        independent.
        """
        self.make_keys(int(target.max(initial=-1)) + 1)
        live, completed = parked_of(self.partials, source)
        self._make_room_to_fork(live, completed)
        nodes = copy_nodes(self.partials, self.cursor, source) if self.tables.settings[0]["longest"] else None
        copy_parked(self.partials, self.cursor, source, target, nodes)

    def drop(self, keys: Int32s) -> None:
        """Drops everything that is open for these keys, and emits nothing."""
        forget_parked(self.partials, self.cursor, keys)

    def make_keys(self, keys: int) -> None:
        """Makes room for keys with numbers below `keys`."""
        partials = self.partials
        if len(partials.parked.keys) < keys:
            parked = partials.parked
            parked = parked._replace(keys=grown(parked.keys, 2 * keys), due=grown(parked.due, 2 * keys, FOREVER))
            self.partials = partials._replace(parked=parked)

    def restore(self, state: Mapping[str, npt.NDArray[Any]], held: Batch | None) -> None:
        """Restores the arrays of `state`, with the events that were held.

        Raises:
            SnapshotError: the arrays do not fit the pattern.
        """
        events = 0 if held is None else len(held)
        state = checked_state(self.tables, state, events)
        rows, slots, nodes, keys, completed = (state[name] for name in ("rows", "slots", "nodes", "keys", "completed"))
        count = len(rows)
        fresh = new_partial_matches(self.tables, max(1024, 2 * (count + 1)))
        fresh.rows[1 : count + 1], fresh.slots[1 : count + 1] = rows, slots
        capacity = len(fresh.free)
        fresh.free[: capacity - 1 - count] = np.arange(capacity - 1, count, -1)
        live = grown(np.arange(1, count + 1), max(1024, 2 * count))
        due = np.where(keys["live_end"] > keys["live"], keys["deadline"], FOREVER)
        parked = Parked(keys.copy(), due, live, grown(completed, max(1024, 2 * len(completed))))
        self.partials = fresh._replace(nodes=grown(nodes, max(len(fresh.nodes), 2 * len(nodes))), parked=parked)
        self.cursor = cursor = new_cursor(self.tables, self.partials)
        cursor.free, cursor.nodes, cursor.event = capacity - 1 - count, len(nodes), events
        cursor.parked = cursor.parked_live = count
        cursor.parked_completed = len(completed)
        cursor.step, cursor.dropped, cursor.dropped_matches = state["totals"]
        self.partials.negated[:] = state["negated"]

    def _failure(self) -> Exception:
        failure, event = int(self.cursor.failure), int(self.cursor.event)
        if failure in _SKIP_FAILURES:
            return SkipError(_SKIP_FAILURES[failure])
        if failure in _LIMITS:
            return PassedLimit(self._oldest(failure), _LIMITS[failure])
        return ConditionFailed(event, int(self.cursor.failed_script), FAILURES[failure])

    def _oldest(self, failure: int) -> int:
        """The first event of the oldest match or partial match over the limit. It is an event of the key even if only a
        deadline passed.
        """
        partials = self.partials
        if failure == TOO_MANY_MATCHES:
            return int(partials.completed["start"][0])
        return int(partials.rows["start"][partials.links["next"][START_ROW]])

    def _take_output(self) -> Emitted:
        """Returns what was emitted. Well-filled arrays are returned themselves and replaced by new ones."""
        matches, events = int(self.cursor.matches), int(self.cursor.match_events)
        self.cursor.matches = self.cursor.match_events = 0
        output = self.output
        times = output.end[:matches], output.detected_at[:matches]
        taken = Emitted(*times, output.outcome[:matches], output.event[:events], output.stage[:events])
        if 4 * events < len(output.event):
            return Emitted(*(array.copy() for array in vars(taken).values()))
        self.output = new_output(len(output.end), len(output.event))
        return taken

    def _grow_output(self) -> None:
        """Makes room for the next match. Arrays that are too short for it are doubled."""
        output, cursor = self.output, self.cursor
        matches = len(output.end) * (2 if cursor.matches == len(output.end) else 1)
        most = int(cursor.match_events) + int(self.partials.completed["length"][0])
        events = len(output.event) if most <= len(output.event) else 2 * most
        self.output = Output(
            grown(output.end, matches),
            grown(output.detected_at, matches),
            grown(output.outcome, matches),
            grown(output.event, events),
            grown(output.stage, events),
        )

    def _make_room(self, visits: Visits) -> None:
        cursor, partials = self.cursor, self.partials
        is_full = len(partials.nodes) < int(cursor.nodes + cursor.needed)
        collect(partials, cursor)
        if cursor.loaded:
            self._make_room_to_park(int(cursor.live), int(cursor.completed))
        else:
            self._make_room_to_load(visits)
            return
        most, matches = int(cursor.needed), int(cursor.needed_matches)
        if cursor.free < most:
            self._grow_rows(max(most, len(partials.rows)))  # twice as many: the cost of growing is amortized
        # Leaves at least half free, which amortizes the cost of collecting.
        if len(partials.nodes) < max(2 * (cursor.nodes + most), _NODES if is_full else 0):
            room = max(4 * (int(cursor.nodes) + most), 2 * len(partials.nodes))
            self.partials = self.partials._replace(nodes=grown(partials.nodes, room))
        if len(partials.completed) - cursor.completed < matches:
            room = 2 * int(cursor.completed + matches)
            self.partials = self.partials._replace(completed=grown(partials.completed, room))

    def _make_room_to_fork(self, live: int, completed: int) -> None:
        """Makes room for copies of `live` partial matches and `completed` waiting matches. Also makes room for copies
        of all nodes, if nodes are copied.
        """
        cursor, parked = self.cursor, self.partials.parked
        room = len(parked.live) - cursor.parked_live, len(parked.completed) - cursor.parked_completed
        copied = int(cursor.nodes) if self.tables.settings[0]["longest"] else 0
        if room[0] < live or room[1] < completed or len(self.partials.nodes) < cursor.nodes + copied:
            collect(self.partials, cursor)
            self._make_room_to_park(live, completed)
            if copied and len(self.partials.nodes) < 4 * cursor.nodes:
                nodes = grown(self.partials.nodes, 4 * int(cursor.nodes))
                self.partials = self.partials._replace(nodes=nodes)
        if cursor.free < live:
            self._grow_rows(max(live, len(self.partials.rows)))

    def _make_room_to_park(self, live: int, completed: int) -> None:
        """Makes room to park so many more partial matches and waiting matches. At least half is then free, so the cost
        of collecting is amortized.
        """
        cursor, parked = self.cursor, self.partials.parked
        live, completed = live + int(cursor.parked_live), completed + int(cursor.parked_completed)
        if len(parked.live) < 2 * live:
            parked = parked._replace(live=grown(parked.live, 4 * live))
        if len(parked.completed) < 2 * completed:
            parked = parked._replace(completed=grown(parked.completed, 4 * completed))
        self.partials = self.partials._replace(parked=parked)

    def _make_room_to_load(self, visits: Visits) -> None:
        """Makes room for all keys of the visits, and for the waiting matches of the next key."""
        self.make_keys(int(visits.key.max()) + 1)
        partials = self.partials
        entry = partials.parked.keys[visits.key[self.cursor.visit]]
        completed = int(entry["completed_end"] - entry["completed"])
        if len(partials.completed) < completed:
            self.partials = partials._replace(completed=grown(partials.completed, 2 * completed))

    def _grow_rows(self, more: int) -> None:
        before = len(self.partials.rows)
        capacity = before + more
        free = grown(self.partials.free, capacity)
        free[self.cursor.free : self.cursor.free + more] = np.arange(before, capacity)
        self.cursor.free += more
        links = grown(self.partials.links, capacity)
        slots, rows = grown(self.partials.slots, capacity), grown(self.partials.rows, capacity)
        lookup = self._grown_index(capacity)
        self.partials = self.partials._replace(rows=rows, slots=slots, links=links, free=free, lookup=lookup)

    def _grown_index(self, capacity: int) -> Index:
        """Room in the index for more rows; what is in it remains."""
        index = self.partials.lookup
        if self.tables.settings["index_least"][0] == NONE:
            return index
        larger = new_index(self.tables, capacity)
        larger.places[: len(index.places)], larger.deadlines[: len(index.deadlines)] = index.places, index.deadlines
        larger.roots[: len(index.roots)] = index.roots
        return larger
