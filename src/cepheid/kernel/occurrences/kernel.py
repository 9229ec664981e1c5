"""Runs the kernel of the event algebra and owns its arrays: grows them when the kernel asks for room, and returns what
is found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from cepheid.compile.arrays import Ints, Records
from cepheid.compile.occurrences.compiled import CompiledTrees, Trees, compile_trees, made_with, tree_limits
from cepheid.compile.occurrences.tables import NONE, Regime
from cepheid.errors import LimitExceeded
from cepheid.kernel.arrays import FOREVER, Events, Flags, Int32s, Visits, grown
from cepheid.kernel.failures import JointConditionFailed
from cepheid.kernel.jit import compiling_alone
from cepheid.kernel.knowledge.layout import Knowing
from cepheid.kernel.occurrences.answers import with_room
from cepheid.kernel.occurrences.knowing import visit_knowing
from cepheid.kernel.occurrences.layout import (
    ENTRY,
    FOUND,
    MADE,
    UNANSWERED,
    OccurrenceStatus,
    new_answers,
    new_forest,
    new_keys,
    new_lists,
    new_tree_cursor,
    new_variables,
)
from cepheid.kernel.occurrences.lists import compact
from cepheid.kernel.occurrences.nodes import collect, mark_events, place_events
from cepheid.kernel.occurrences.results import (
    EmittedOccurrences,
    Reader,
    chosen_rows,
    concatenated,
    emitted_from,
    emitted_of,
    sizes_of,
)
from cepheid.kernel.occurrences.step import forget_keys, visit_keys
from cepheid.kernel.scripts.reasons import FAILURES
from cepheid.kernel.stopping import stop_if_asked
from cepheid.lang.occurrences.pattern import Policy
from cepheid.plan.limits import Limits
from cepheid.plan.occurrences.constants import Kind
from cepheid.plan.occurrences.plan import Operator

_ROOM = 1 << 14
_QUESTIONS = 1 << 6


class Answering(NamedTuple):
    """Who answers the questions of semantic filters."""

    knowing: Knowing
    """For their programs."""
    answered: Callable[[Ints, int], Ints]
    """(q, 2 + v) the other questions, rows of Answers.questions, and the instant → (q,) the times of their answers."""


@cache
def warm_up() -> None:
    """Loads the kernel, and compiles it if it is not in the disk cache. One process compiles at a time, as in
    `kernel.stages.warm_up`.
    """
    trees = Trees((Operator(Kind.LEAF),), (0,), Regime.ALL, 1, (), None)
    (compiled,) = compile_trees([trees], Limits())
    nothing, words = np.zeros((0, 0), np.int64), np.zeros(0, np.int64)
    events = Events(words, words.copy(), nothing, np.zeros((0, 0), np.bool_))
    visits = Visits(np.zeros(0, np.int32), words.copy(), words.copy(), np.zeros(0, np.bool_))
    with compiling_alone(__name__):
        kernel = OccurrenceKernel(compiled, [Policy.UNRESTRICTED], Limits())
        kernel.run(events, visits)
        kernel.mark(np.zeros(0, np.int32))
        kernel.place(np.zeros(0, np.int32), 0)
        forget_keys(kernel.tables, kernel.forest, np.zeros(0, np.int32))


_LESS = "Bound the pattern with within(…), take the policy 'recent', or raise the limit"


class OccurrenceKernel:
    """Runs the kernel over the working set. `policies` has the policy of each root."""

    def __init__(self, trees: CompiledTrees, policies: Sequence[Policy], limits: Limits) -> None:
        self._trees, self.tables = trees.trees, trees.tables
        self._policies = policies
        self._limits = limits
        self.timers = (trees.tables.operators["memory"][trees.tables.delayed]).tolist()
        """The numbers, within a key, of the lists that hold timers."""
        self.lists_of_key = int(trees.tables.settings["lists"][0])
        temporal, bound = (made_with(trees.trees.operators, kind) for kind in (Kind.DELAYED, Kind.BOUND))
        self._temporal = [temporal[root] for root in trees.trees.roots]
        self._plain = [not (temporal[root] or bound[root]) for root in trees.trees.roots]
        """Whether occurrences of a root consist of their events alone."""
        self.cursor = new_tree_cursor()
        self.forest = new_forest(trees.tables, _ROOM)
        self._answers = new_answers(trees.tables, _QUESTIONS)
        self._variables = new_variables(trees.tables, trees.trees.variables, len(trees.trees.values))
        self.dropped_matches = 0

    def run(self, events: Events, visits: Visits, answering: Answering | None = None) -> list[EmittedOccurrences]:
        """Makes the visits and returns what becomes certain, for each root.

        Raises:
            JointConditionFailed, LimitExceeded: the kernel cannot be used afterwards.
        """
        self.make_keys(int(visits.key.max(initial=-1)) + 1)
        cursor, found = self.cursor, []
        cursor.visit = cursor.questions = cursor.considered = 0
        self._answers.slots.fill(NONE)
        while True:
            stop_if_asked()
            given = self.tables, events, self.forest, self._variables, self._answers, cursor, visits
            status = visit_keys(*given) if answering is None else visit_knowing(*given, answering.knowing)
            match OccurrenceStatus(status):
                case OccurrenceStatus.ASKED:
                    assert answering is not None
                    times = self._answers.times[: int(cursor.questions)]
                    asked = np.flatnonzero(times == UNANSWERED)
                    times[asked] = answering.answered(self._answers.questions[asked], int(cursor.now))
                case OccurrenceStatus.MORE_QUESTIONS:
                    self._answers = with_room(self._answers)
                case OccurrenceStatus.DONE:
                    found.append(self._take_found(events))
                    cursor.instant = 0
                    return [concatenated(parts) for parts in zip(*found, strict=True)]
                case OccurrenceStatus.MORE_NODES:
                    found.append(self._take_found(events))
                    self._make_room_for_nodes()
                case OccurrenceStatus.MORE_ENTRIES:
                    self.make_entries(int(cursor.needed))
                case OccurrenceStatus.MORE_MADE:
                    made = np.zeros(2 * len(self.forest.made), MADE)
                    made[: cursor.made] = self.forest.made[: cursor.made]
                    self.forest = self.forest._replace(made=made)
                case OccurrenceStatus.MORE_MEMBERS:
                    self._make_room_for_members(int(cursor.needed))
                case OccurrenceStatus.MORE_FOUND:
                    found.append(self._take_found(events))
                    if cursor.needed > len(self.forest.found):
                        self.forest = self.forest._replace(found=np.zeros(2 * int(cursor.needed), FOUND))
                case OccurrenceStatus.TOO_MANY:
                    most = self._limits.most_partial_matches
                    raise LimitExceeded(
                        f"a key keeps more than {most:,} occurrences open (max_partial_matches). {_LESS}"
                    )
                case OccurrenceStatus.FAILED:
                    raise self._failure()

    def _failure(self) -> JointConditionFailed:
        text = self._trees.operators[self.cursor.failed_row].text
        bound = {number: pair for number, pair in enumerate(self._variables.outermost.T.tolist()) if pair[0] >= 0}
        return JointConditionFailed(f"the condition ({text})", FAILURES[int(self.cursor.failure)], bound)

    def limit(self, limits: Limits) -> None:
        """Applies these limits from now on. No other kernel shares the settings of these tables."""
        self._limits = limits
        for name, value in tree_limits(limits).items():
            self.tables.settings[name] = value

    @property
    def variables(self) -> int:
        return self._trees.variables

    @property
    def evaluated(self) -> int:
        """The number of evaluations of operators so far. An operator is evaluated once per instant at which it has
        something to do.
        """
        return int(self.cursor.evaluated)

    # What is open

    @property
    def remembered(self) -> int:
        """The number of occurrences and timers that operators remember, for all keys."""
        return int(self.forest.keys["remembered"].sum())

    @property
    def open_keys(self) -> Int32s:
        """The numbers of the keys for which something is open, ascending."""
        keys = self.forest.keys
        return np.flatnonzero((keys["due"] < FOREVER) | (keys["remembered"] > 0)).astype(np.int32)

    def is_open(self, keys: Int32s) -> Flags:
        chosen = self.forest.keys[keys]
        is_open: Flags = (chosen["due"] < FOREVER) | (chosen["remembered"] > 0)
        return is_open

    def due(self, time: int) -> Int32s:
        """The numbers of the keys that have an instant up to `time`, ascending."""
        due = self.forest.keys["due"]
        return np.flatnonzero((due <= time) & (due < FOREVER)).astype(np.int32)

    @property
    def next_due(self) -> int:
        return int(self.forest.keys["due"].min(initial=FOREVER))

    # Memory

    def mark(self, held: Int32s) -> None:
        """Sets `held` to 1 for the events that are still needed. It has one entry per event."""
        self._collect()
        mark_events(self.forest, self.cursor, self._lists, held)

    def place(self, places: Int32s, count: int) -> None:
        """Renames events, when the working set shrinks to `count` events: the event at i is at places[i] from now on.
        All events that `mark` found remain.
        """
        place_events(self.forest, self.cursor, self._lists, places)
        self.cursor.event = count

    def renumber(self, before: Int32s) -> None:
        """Renumbers keys: key before[i] becomes key i. Other keys have nothing open."""
        width = self.lists_of_key
        lists = self.forest.lists.reshape(-1, width)[before].reshape(-1)
        self.forest = self.forest._replace(keys=self.forest.keys[before], lists=lists)
        self.make_keys(1)

    @property
    def _lists(self) -> int:
        return len(self.forest.lists)

    def make_keys(self, keys: int) -> None:
        """Makes room for keys with numbers below `keys`."""
        before = len(self.forest.keys)
        if keys > before:
            after = max(keys, 2 * before)
            larger = np.concatenate([self.forest.keys, new_keys(after - before)])
            lists = np.concatenate([self.forest.lists, new_lists((after - before) * self.lists_of_key)])
            self.forest = self.forest._replace(keys=larger, lists=lists)

    def _collect(self) -> None:
        collect(self.forest, self.cursor, self._lists, np.zeros(int(self.cursor.nodes) + 1, np.int64))

    def _make_room_for_nodes(self) -> None:
        self._collect()
        if 2 * self.cursor.nodes > len(self.forest.nodes):
            self.forest = self.forest._replace(nodes=grown(self.forest.nodes, 2 * len(self.forest.nodes)))

    def make_entries(self, more: int) -> None:
        """Makes room for `more` further entries in the lists."""
        lists = self.forest.lists
        stored = int(lists["count"].sum())
        room = len(self.forest.entries)
        if 8 * (stored + more) > room:
            room = 16 * (stored + more)
        into = np.zeros(room, ENTRY)
        compact(self.forest, self.cursor, self._lists, into)
        self.forest = self.forest._replace(entries=into)

    def _make_room_for_members(self, room: int) -> None:
        if room > len(self.forest.members):
            members, order = np.zeros(2 * room, np.int64), np.zeros(2 * room, np.int64)
            self.forest = self.forest._replace(members=members, order=order)

    # What is found

    def _take_found(self, events: Events) -> list[EmittedOccurrences]:
        """Returns what is found, for each root, and clears it."""
        count = int(self.cursor.found)
        self.cursor.found = 0
        found = self.forest.found[:count].copy()
        self._make_room_for_members(2 * int(sizes_of(self.forest, found).max(initial=0)) + 2)
        reader = Reader(self.forest, events)
        if self._trees.regime is Regime.ALL:
            found = found[chosen_rows(found, self._policies, self._plain, reader)]
        found = self._within_limit(found)
        emitted = []
        for root in range(len(self._policies)):
            own = found if len(self._policies) == 1 else found[found["root"] == root]
            if self._temporal[root]:
                derivations = [reader.derivation(node) for node in own["node"].tolist()]
                emitted.append(emitted_of(derivations, self._trees.variables))
            else:
                emitted.append(emitted_from(self.forest, events, own, self._trees.variables))
        return emitted

    def _within_limit(self, found: Records) -> Records:
        most = self._limits.max_matches_per_event
        if len(found) <= most:
            return found
        borders = np.flatnonzero((np.diff(found["instant"]) != 0) | (np.diff(found["root"]) != 0)) + 1
        if np.diff(borders, prepend=0, append=len(found)).max() <= most:
            return found
        groups = np.split(np.arange(len(found)), borders)
        if self._limits.on_limit == "raise":
            raise LimitExceeded(f"one instant completes more than {most:,} matches (max_matches_per_event). {_LESS}")
        kept = [np.sort(rows[np.argsort(found["start"][rows], kind="stable")[-most:]]) for rows in groups]
        rows = np.concatenate(kept)
        self.dropped_matches += len(found) - len(rows)
        return found[rows]
