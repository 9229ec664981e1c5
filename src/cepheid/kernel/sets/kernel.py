"""Runs the kernel of sets and owns its arrays: grows them when the kernel asks for room, and returns the matches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.compile.stages.tables import Tables
from cepheid.events.batch import Batch
from cepheid.kernel.arrays import FOREVER, NO_TIME, Events, Flags, Int32s, Visits, grown
from cepheid.kernel.failures import PassedLimit
from cepheid.kernel.sets.layout import NO_SET, SetOutput, new_graph, new_set_cursor, new_set_output, new_sets
from cepheid.kernel.sets.nodes import collect, count_open, count_paths, limit_of, owners, recount, rename_events
from cepheid.kernel.sets.open_sets import open_in_sets
from cepheid.kernel.sets.step import Status, nodes_needed, run
from cepheid.kernel.stages.emitted import NOTHING, Emitted
from cepheid.kernel.stages.layout import MATCHED
from cepheid.kernel.stages.node_kernel import NodeKernel
from cepheid.kernel.stages.state import check_sets
from cepheid.kernel.stopping import stop_if_asked

MOST_NODES = 10_000_000
"""The limit on a key's nodes if the number of partial matches has no limit."""


class SetKernel(NodeKernel):
    """Finds the matches of a pattern for which `compile.stages.representation` chooses sets."""

    drops_deadlines_silently = True

    def __init__(self, tables: Tables, *, capacity: int = 8192) -> None:
        self.tables = tables
        self.window = int(tables.settings["window"][0])
        self.sets = new_sets(tables, capacity)
        self.graph = new_graph(tables, capacity, capacity)
        self.output = new_set_output(capacity, capacity)
        self.cursor = new_set_cursor(self.tables)

    def run(self, events: Events, visits: Visits) -> Emitted:
        """Makes the visits. The events are the held ones, then the new ones.

        Raises:
            PassedLimit: a key has too many partial matches, or an event completes too many matches; the kernel cannot
                be used afterwards.
        """
        self.make_keys(int(visits.key.max(initial=-1)) + 1)
        self.cursor["visit"] = 0
        while True:
            stop_if_asked()
            status = run(self.tables, events.time, events.mask, visits, self.sets, self.graph, self.output, self.cursor)
            match status:
                case Status.DONE:
                    return self._take_output()
                case Status.OUTPUT_FULL:
                    self._grow_output()
                case Status.NODES_FULL:
                    self._make_nodes(int(visits.key[self.cursor.visit]))
                case Status.TOO_MANY_MATCHES:
                    raise PassedLimit(int(self.cursor.event) - 1, "max_matches_per_event")
                case Status.MANY_OPEN:
                    self._check_open(int(visits.key[self.cursor.visit]), events)
                case Status.VERTICES_FULL:
                    self._grow_vertices()
                case _:
                    self._grow_edges()

    def hold(self) -> Int32s:
        """The positions of the events that open partial matches hold, ascending. From now on these events are at 0, 1,
        … and begin the next working set.
        """
        collect(self.sets, self.cursor, self.window)
        held: Int32s = rename_events(self.sets, self.cursor, int(self.cursor.event))
        self.cursor.event = len(held)
        return held

    def open_partial_matches(self, now: int) -> int:
        """The number of open partial matches of all keys once time has reached `now`. Of each key at most MANY_OPEN are
        counted.
        """
        return int(count_open(self.sets, self.cursor, self.window, now).sum())

    @property
    def withheld(self) -> int:
        """Always 0: if a match may wait, partial matches are stored one by one, not in sets."""
        return 0

    def listed(self, _events: Events, now: int, most: int) -> Emitted:
        """For each key the `most` open partial matches that started last, in order of their start, once time has
        reached `now`. detected_at is the deadline, NO_TIME if there is none.
        """
        return open_in_sets(self.sets, self.window, now, most)

    @contextmanager
    def only(self, keys: Int32s) -> Iterator[None]:
        """In the block the kernel has only these keys, numbered 0, 1, …; they must be open. They may be counted and
        listed.
        """
        sets = self.sets
        try:
            self.renumber(keys)
            yield
        finally:
            self.sets = sets

    def is_open(self, keys: Int32s) -> Flags:
        """(k,) whether each of the keys has open partial matches."""
        flags: Flags = (self.sets.heads[keys] != NO_SET).any(axis=1)
        return flags

    @property
    def open_keys(self) -> Int32s:
        """The numbers of all keys that have open partial matches, ascending."""
        return np.flatnonzero((self.sets.heads != NO_SET).any(axis=1)).astype(np.int32)

    def due(self, time: int) -> Int32s:
        """The numbers of the keys whose open partial matches all end by `time`, ascending. Those that end sooner change
        nothing that is emitted.
        """
        return np.flatnonzero(self.sets.due <= time).astype(np.int32)

    @property
    def next_due(self) -> int:
        """The earliest time for which `due` has a key; FOREVER if there is none."""
        return int(self.sets.due.min(initial=FOREVER))

    @property
    def dropped(self) -> tuple[int, int]:
        """Always 0 and 0: if limits may drop partial matches or matches, partial matches are stored one by one, not in
        sets.
        """
        return 0, 0

    @property
    def negated(self) -> None:
        """None: partial matches that an event ends are not counted in sets, as a set may stand for any number."""

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The open partial matches as arrays. Call it right after `hold`, so that all nodes are reachable."""
        keys, sets = int(self.open_keys.max(initial=-1)) + 1, self.sets
        return {"heads": sets.heads[:keys], "now": sets.now[:keys], "nodes": sets.nodes[: self.cursor.nodes]}

    def renumber(self, keys: Int32s) -> None:
        """Renumbers keys: key keys[i] becomes key i. Nothing is open for other keys."""
        sets = self.sets
        self.sets = sets._replace(heads=sets.heads[keys], now=sets.now[keys], due=sets.due[keys])

    def restore(self, state: Mapping[str, npt.NDArray[Any]], held: Batch | None) -> None:
        """Restores the arrays of `state`, with the events that were held.

        Raises:
            SnapshotError: the arrays do not fit the pattern.
        """
        count = 0 if held is None else len(held)
        check_sets(self.tables, state, count)
        nodes = state["nodes"]
        fresh = new_sets(self.tables, max(len(self.sets.nodes), 2 * len(nodes)))
        fresh.nodes[: len(nodes)] = nodes
        heads = state["heads"].copy()
        latest = np.where(heads == NO_SET, NO_TIME, np.append(nodes["start"], 0)[heads]).max(axis=1, initial=NO_TIME)
        ends = (latest != NO_TIME) & (latest <= FOREVER - self.window) & (self.window >= 0)
        due = np.where(ends, latest + self.window, FOREVER)
        self.sets = fresh._replace(heads=heads, now=state["now"].copy(), due=due)
        self.cursor = new_set_cursor(self.tables)
        self.cursor.nodes, self.cursor.event = len(nodes), count
        if self.cursor.limited:
            count_paths(self.sets, len(nodes))

    def fork(self, source: Int32s, target: Int32s) -> None:
        """Copies the open partial matches of key source[i] to key target[i], which has none. Afterwards the two are
        independent. Sets never change, so both share them.
        """
        self.make_keys(int(target.max(initial=-1)) + 1)
        sets = self.sets
        if self.cursor.limited:  # counts from a key's own time may be too low at an earlier time
            count_paths(sets, int(self.cursor.nodes))
        for array in (sets.heads, sets.now, sets.due):
            array[target] = array[source]

    def drop(self, keys: Int32s) -> None:
        """Drops the open partial matches of these keys, and emits nothing."""
        self.sets.heads[keys], self.sets.now[keys], self.sets.due[keys] = NO_SET, NO_TIME, FOREVER

    def make_keys(self, keys: int) -> None:
        """Makes room for keys with numbers below `keys`."""
        before = len(self.sets.heads)
        if keys > before:
            more = max(keys, 2 * before)
            sets = self.sets
            heads, now = grown(sets.heads, more, NO_SET), grown(sets.now, more, NO_TIME)
            self.sets = sets._replace(heads=heads, now=now, due=grown(sets.due, more, FOREVER))

    def _check_open(self, key: int, events: Events) -> None:
        """Raises PassedLimit if the key has too many partial matches after the event before the cursor."""
        limit = limit_of(self.window, int(events.time[int(self.cursor.event) - 1]))
        count, first = recount(self.sets, self.cursor, key, limit)
        if count > self.tables.settings["most_in_sets"][0]:
            raise PassedLimit(first, "max_partial_matches")

    def _make_nodes(self, key: int) -> None:
        """Makes room so that at least half of the nodes are free, and the next call is far off. If the number of
        partial matches has no limit, limits the number of the key's nodes.
        """
        collect(self.sets, self.cursor, self.window)
        if not self.cursor.limited and self.cursor.nodes > MOST_NODES:
            owner = owners(self.sets, self.cursor, self.window, NO_TIME)
            if np.count_nonzero(owner == key) > MOST_NODES:
                raise PassedLimit(int(self.cursor.event), "max_partial_matches")
        most = 2 * (int(self.cursor.nodes) + nodes_needed(len(self.tables.edges))) + self.sets.heads.size
        sets = self.sets
        if len(sets.nodes) < most:
            paths = grown(sets.paths, 2 * most) if self.cursor.limited else sets.paths
            self.sets = sets._replace(
                nodes=grown(sets.nodes, 2 * most), paths=paths, vertex=grown(sets.vertex, 2 * most)
            )

    def _grow_vertices(self) -> None:
        graph = self.graph
        larger = new_graph(self.tables, 2 * len(graph.steps), 0)
        self.graph = larger._replace(moving=graph.moving, roots=graph.roots, before=graph.before, after=graph.after)

    def _grow_edges(self) -> None:
        """Doubles the room for edges. Each edge of the graph is part of some match, so there are at least as many
        matches as edges, less the vertices.
        """
        graph, most = self.graph, int(self.tables.settings["most_matches"][0])
        if len(graph.before) - len(graph.vertices) > most:
            raise PassedLimit(int(self.cursor.event) - 1, "max_matches_per_event")
        larger = new_graph(self.tables, 0, 2 * len(graph.before))
        self.graph = graph._replace(before=larger.before, after=larger.after)

    def _grow_output(self) -> None:
        """Makes room for the matches that are written at once. Arrays that are too short for them are doubled."""
        output, cursor = self.output, self.cursor
        step = self.graph.steps[int(cursor.depth) - 1]
        most = int(step["after_end"] - step["after"]) + 1  # as most_written has it
        matches, events = int(cursor.matches) + most, int(cursor.match_events) + most * (int(cursor.length) + 1)
        more_matches, more_events = _room_for(matches, output.end), _room_for(events, output.taken)
        self.output = SetOutput(
            grown(output.end, more_matches), grown(output.detected_at, more_matches), grown(output.taken, more_events)
        )

    def _take_output(self) -> Emitted:
        """Returns what was emitted. Well-filled arrays are returned themselves and replaced by new ones."""
        matches = int(self.cursor["matches"])  # much faster than as an attribute
        if not matches:  # as in most steps
            return NOTHING
        output, events = self.output, int(self.cursor.match_events)
        self.cursor.matches = self.cursor.match_events = 0
        end, detected_at, taken = output.end[:matches], output.detected_at[:matches], output.taken[:events]
        if 4 * events < len(output.taken):
            end, detected_at, taken = end.copy(), detected_at.copy(), taken.copy()
        else:
            self.output = new_set_output(len(output.end), len(output.taken))
        pairs = taken.view(np.int32)
        outcome = np.full(matches, MATCHED, np.int32)
        return Emitted(end, detected_at, outcome, event=pairs[::2], stage=pairs[1::2])


def _room_for(count: int, array: npt.NDArray[Any]) -> int:
    return len(array) if count <= len(array) else 2 * count
