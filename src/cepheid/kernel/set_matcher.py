"""The kernel of sets with its memory: makes room when it asks for it, and hands out what was emitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.compile.tables import Ints, Tables
from cepheid.kernel.compiled import Emitted, PassedLimit
from cepheid.kernel.layout import FOREVER, NO_TIME, Events, Int32s, Visits, grown
from cepheid.kernel.set_layout import NO_SET, SetOutput, new_graph, new_set_cursor, new_set_output, new_sets
from cepheid.kernel.set_nodes import collect, count_open, rename_events
from cepheid.kernel.set_step import Status, nodes_needed, run
from cepheid.kernel.state import check_sets


class SetMatcher:
    """Finds the matches of a pattern that `compile.form` finds fit for sets."""

    def __init__(self, tables: Tables, *, capacity: int = 8192) -> None:
        self.tables = tables
        self.window = int(tables.settings["window"][0])
        self.sets = new_sets(tables, capacity)
        self.graph = new_graph(tables, capacity, capacity)
        self.output = new_set_output(capacity, capacity)
        self.cursor = new_set_cursor()
        self.events = 0
        """Events of the working set."""

    def run(self, events: Events, visits: Visits) -> Emitted:
        """Makes the visits; the events are those held, then the new ones.

        Raises:
            PassedLimit: an event completes too many matches; the matcher is of no use afterwards.
        """
        self._make_keys(int(visits.key.max(initial=-1)) + 1)
        self.cursor.visit, self.events = 0, len(events.time)
        while True:
            status = run(self.tables, events.time, events.mask, visits, self.sets, self.graph, self.output, self.cursor)
            match status:
                case Status.DONE:
                    return self._take_output()
                case Status.OUTPUT_FULL:
                    self._grow_output()
                case Status.NODES_FULL:
                    self._make_nodes()
                case Status.TOO_MANY_MATCHES:
                    raise PassedLimit(int(self.cursor.event) - 1, "max_matches_per_event")
                case Status.VERTICES_FULL:
                    self._grow_vertices()
                case _:
                    self._grow_edges()

    def hold(self) -> Int32s:
        """The positions of the events that open partial matches hold, ascending. They are renamed 0, 1, … and are the
        start of the next working set.
        """
        collect(self.sets, self.cursor, self.window)
        held: Int32s = rename_events(self.sets, self.cursor, self.events)
        self.events = len(held)
        self.cursor.event = len(held)
        return held

    @property
    def open_partial_matches(self) -> Ints:
        """(keys,) how many partial matches each key has, by its number; keys behind the last have none."""
        return count_open(self.sets, self.cursor, self.window)[0]

    @property
    def deadlines(self) -> Ints:
        """(keys,) the earliest deadline of each key's partial matches, FOREVER where there is none."""
        _, starts = count_open(self.sets, self.cursor, self.window)
        if self.window < 0:
            return np.full(len(starts), FOREVER, np.int64)
        return np.where(starts > FOREVER - self.window, FOREVER, starts + self.window)

    @property
    def dropped(self) -> tuple[int, int]:
        """No partial matches and no matches: where they are to be dropped they are kept one by one."""
        return 0, 0

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """All that is open, as arrays; right behind `hold`, so that there is no rubbish."""
        keys = int(np.flatnonzero(self.open_partial_matches).max(initial=-1)) + 1
        sets = self.sets
        return {"heads": sets.heads[:keys], "now": sets.now[:keys], "nodes": sets.nodes[: self.cursor.nodes]}

    def renumber(self, keys: Int32s) -> None:
        """The key of number keys[i] is number i from now on; of the others nothing is open."""
        self.sets = self.sets._replace(heads=self.sets.heads[keys], now=self.sets.now[keys])

    def restore(self, state: Mapping[str, npt.NDArray[Any]], held: int) -> None:
        """Continues from what `state` gave, with `held` events held.

        Raises:
            SnapshotError: it does not fit the pattern.
        """
        check_sets(self.tables, state, held)
        nodes = state["nodes"]
        fresh = new_sets(self.tables, max(len(self.sets.nodes), 2 * len(nodes)))
        fresh.nodes[: len(nodes)] = nodes
        self.sets = fresh._replace(heads=state["heads"].copy(), now=state["now"].copy())
        self.cursor = new_set_cursor()
        self.cursor.nodes, self.cursor.event = len(nodes), held

    def _make_keys(self, keys: int) -> None:
        before = len(self.sets.heads)
        if keys > before:
            more = max(keys, 2 * before)
            heads, now = grown(self.sets.heads, more), grown(self.sets.now, more)
            heads[before:], now[before:] = NO_SET, NO_TIME
            self.sets = self.sets._replace(heads=heads, now=now)

    def _make_nodes(self) -> None:
        """Three quarters of the nodes are free afterwards, or more, so that the next time is far off."""
        collect(self.sets, self.cursor, self.window)
        most = 4 * (int(self.cursor.nodes) + nodes_needed(len(self.tables.edges))) + self.sets.heads.size
        if len(self.sets.nodes) < most:
            nodes, vertex = grown(self.sets.nodes, 2 * most), grown(self.sets.vertex, 2 * most)
            self.sets = self.sets._replace(nodes=nodes, vertex=vertex)

    def _grow_vertices(self) -> None:
        graph = self.graph
        larger = new_graph(self.tables, 2 * len(graph.steps), 0)
        self.graph = larger._replace(moving=graph.moving, roots=graph.roots, before=graph.before, after=graph.after)

    def _grow_edges(self) -> None:
        """Each edge of the graph is on some match: there are at least as many matches as edges, less the vertices."""
        graph, most = self.graph, int(self.tables.settings["most_matches"][0])
        if len(graph.before) - len(graph.vertices) > most:
            raise PassedLimit(int(self.cursor.event) - 1, "max_matches_per_event")
        larger = new_graph(self.tables, 0, 2 * len(graph.before))
        self.graph = graph._replace(before=larger.before, after=larger.after)

    def _grow_output(self) -> None:
        """Makes room for what is written at once, and doubles what is too small for it."""
        output, cursor = self.output, self.cursor
        step = self.graph.steps[int(cursor.depth) - 1]
        most = int(step["after_end"] - step["after"]) + 1  # as most_written has it
        matches, events = int(cursor.matches) + most, int(cursor.match_events) + most * (int(cursor.length) + 1)
        more_matches, more_events = _room_for(matches, output.end), _room_for(events, output.taken)
        self.output = SetOutput(
            grown(output.end, more_matches), grown(output.detected_at, more_matches), grown(output.taken, more_events)
        )

    def _take_output(self) -> Emitted:
        """Hands out the arrays themselves if they are well filled, and makes new ones of their size."""
        output, matches, events = self.output, int(self.cursor.matches), int(self.cursor.match_events)
        self.cursor.matches = self.cursor.match_events = 0
        end, detected_at, taken = output.end[:matches], output.detected_at[:matches], output.taken[:events]
        if 4 * events < len(output.taken):
            end, detected_at, taken = end.copy(), detected_at.copy(), taken.copy()
        else:
            self.output = new_set_output(len(output.end), len(output.taken))
        pairs = taken.view(np.int32)
        none = np.zeros(matches, np.bool_)
        return Emitted(end, detected_at, timeout=none, event=pairs[::2], stage=pairs[1::2])


def _room_for(count: int, array: npt.NDArray[Any]) -> int:
    return len(array) if count <= len(array) else 2 * count
