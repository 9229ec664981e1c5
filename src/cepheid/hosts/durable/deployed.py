"""A deployed pattern that runs: from events and time to rows and the next state."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import PatternError, SchemaError
from cepheid.events.time import TIME_TYPE, arrow_zone
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.durable.messages import EVENTS, messages_of
from cepheid.hosts.durable.state import Deployment
from cepheid.hosts.durable.step.events import Reading, StepEvents
from cepheid.hosts.durable.step.screen import comparisons_of, only_comparisons
from cepheid.hosts.durable.step.wakeups import Wakeups
from cepheid.hosts.durable.store import RowTable, ShardWriter
from cepheid.hosts.durable.tables import found_tables, open_table
from cepheid.hosts.in_process.detect import finished_rows, plans_in_process, with_measures
from cepheid.hosts.in_process.prepare import TimedEvents, is_there, lifted, with_sequence
from cepheid.hosts.shards.store import Head, ShardState
from cepheid.knowledge.question import with_answers
from cepheid.matchers.open_changes import OpenChanges
from cepheid.matchers.watermark import Reached
from cepheid.output.common import INSERTION, RETRACTION
from cepheid.output.events import unnested
from cepheid.output.ids import Ids
from cepheid.output.times import given_rows
from cepheid.plan.plan_set import PatternPlan, relevant_to_any
from cepheid.requests.request import Nulls
from cepheid.requests.request_of import request_of

MOST_OPEN_ROWS = 1000
"""For each key at most so many open partial matches are stored as rows: a set may stand for more than fit anywhere."""

_NOT_COUNTED = 0
"""In place of the number of open partial matches in a head: counting them may take longer than a step, and the host
says it when asked.
"""

_BEFORE_KEY = ("id", "series", "key_id", "version")
_AFTER_KEY = ("status", "stage", "started", "wakeup")


_NO_TEXTS = pa.array([], pa.string())


class EventTable(NamedTuple):
    """How the events of an input are read."""

    columns: pa.Schema
    time: str
    sequence: tuple[str, ...]
    time_zone: str
    nulls: Nulls


def in_sequence(events: pa.Table, sequence: Sequence[str], time_zone: str) -> pa.Table:
    """The events with a column for each expression of the sequence; raises as `with_sequence`."""
    if is_there(events.schema, sequence):  # as mostly
        return events
    return with_sequence(events, sequence, DuckDbEngine(time_zone=time_zone))


class Found(NamedTuple):
    """The rows of a step, and for each the instant of its detection: `detected_at` may be a local time."""

    rows: pa.Table
    detected: pa.ChunkedArray

    def filter(self, mask: pa.Array | pa.ChunkedArray) -> Found:
        return Found(self.rows.filter(mask), self.detected.filter(mask))


class Deployed(ABC):
    """A deployed pattern that runs. `step` changes only this object; `save` writes what has changed.

    What follows from the pattern and its events is here. Where its matcher is, in this process or in another one, is
    said by the classes that derive from this one.
    """

    def __init__(self, deployment: Deployment, table: EventTable, ids: Ids) -> None:
        """`ids` are those of the store.

        Raises:
            PatternError, SchemaError: the pattern does not fit the events; the message has all problems.
        """
        self.deployment = deployment
        self.table = table
        """How its events are read."""
        self._ids = ids
        self._engine = DuckDbEngine(time_zone=table.time_zone)
        request = request_of(
            deployment.pattern,
            time=table.time,
            key=deployment.key,
            sequence=table.sequence,
            columns=deployment.columns,
            measures=without_keys(deployment.measures, deployment.key),
            outputs=deployment.outputs,
            rows_per=deployment.rows_per,
            limits=deployment.limits,
            time_zone=table.time_zone,
        )
        family = request.family
        if deployment.promoted is not None and not family.lists_open:
            raise PatternError(f"promote: {family.noun} has no open partial matches that can be listed")
        asked = request.only._replace(pattern=family.endless(request.only.pattern), promoted=deployment.promoted)
        taken = [*_taken_names(deployment, lists_open=family.lists_open), *_taken_columns(deployment, table.columns)]
        with _with_faults(taken):
            plans = plans_in_process(table.columns, replace(request, patterns=(asked,)), self._engine)
        self.plan: PatternPlan = plans.only
        self.problems = (*family.warnings(self.plan), *family.growth(self.plan, "start"))
        """What works, but perhaps not as intended, and what is retained for ever."""
        self._runner = family.runner(self.plan, "start")
        self._made_for = family.compatibility(self._runner, table.time_zone)
        relevant = relevant_to_any(family.compile(plans).relevant_to)
        self._relevant = None if "late" in deployment.outputs else relevant
        known = with_answers(self.plan.schema.columns, self.plan.questions)
        fails = self._engine.may_fail([*self.plan.bits, *self.plan.values], known)
        self.comparisons = None if self._relevant is None or fails else comparisons_of(self.plan, self._relevant)
        """For each condition, its comparisons. An event must pass those of one to matter. None: any may."""
        self._conditions = only_comparisons(self.plan)
        """The conditions, if they are so simple that no query is needed, which would take a millisecond."""
        self._reading = Reading(self.plan, table.time_zone, table.nulls)
        self.used_columns: Sequence[str] = self._reading.used
        """The columns of the events that it reads."""
        nothing = table.columns.empty_table().select(self.used_columns), (pa.chunked_array([], TIME_TYPE),)
        self._columns = lifted(TimedEvents(*nothing), self.plan, self._engine).data.schema
        self._nothing = self._finished(self._runner.schema.empty_table())
        stored = self._runner.stored_open_schema
        self.open_schema = None if stored is None else self._open_rows(stored.empty_table(), _NO_TEXTS).schema
        self.correlated: tuple[str, ...] = ()
        """When it is deployed: the promoted columns that are correlations of its pattern."""
        self.wakeups = Wakeups(plans.only.window if family.lists_open else None)
        """When the stored rows of its open partial matches may expire."""

    # What its matcher does

    @abstractmethod
    def recover(self, stored: ShardState, head: Head | None) -> None:
        """Continues from what is stored."""

    @abstractmethod
    def recovered(self) -> None:
        """Waits until `recover` is done: patterns may recover while others do."""

    @abstractmethod
    def start_at(self, reached: Reached) -> None:
        """Events before this time are late."""

    def drain(self) -> None:
        """From now on starts nothing, and goes on with what is open. What is stored stays as it is. The family of the
        pattern must say that it can.
        """
        after = 0 if self.head is None else self.head.entries
        self.deployment = replace(self.deployment, status="draining", drained_after=after)

    @abstractmethod
    def relist(self) -> None:
        """Makes all open partial matches count as changed."""

    @property
    @abstractmethod
    def is_idle(self) -> bool:
        """Whether nothing is open and no event waits."""

    @property
    @abstractmethod
    def counts(self) -> Mapping[str, int]: ...

    @property
    @abstractmethod
    def no_match(self) -> Mapping[str, int]:
        """The number of partial matches that each negation has ended, by its name; empty if they are not counted."""

    @abstractmethod
    def is_due(self, reached: Reached) -> bool:
        """Whether there is something to do once time has reached this, even without events."""

    @abstractmethod
    def begin(self, events: StepEvents | None, before: Reached, after: Reached) -> None:
        """Begins the step of these arguments, if that is possible while others are in progress. `step` ends it."""

    @abstractmethod
    def step(self, events: StepEvents | None, before: Reached, after: Reached) -> Found | None:
        """Processes events that come when time has reached `before`, then advances time to `after`. Returns the rows
        that this makes certain, in the order of `in_order`; None if there was nothing to do.

        Raises:
            ConditionError, EventError, LimitExceeded, SkipError: the object cannot be used afterwards.
        """

    @property
    @abstractmethod
    def head(self) -> Head | None:
        """The head of the stored state; None before the first `save`."""

    @abstractmethod
    def save(self, store: ShardWriter) -> None:
        """Writes the state as it is now. Called after each `step` that had something to do."""

    @property
    @abstractmethod
    def lists_with(self) -> object:
        """Equal for patterns whose open partial matches `open_changes` lists at once."""

    @abstractmethod
    def open_changes(self, deployed: Sequence[Deployed]) -> OpenChanges:
        """The open partial matches of the keys that each of these has visited since the last call, as rows of its
        `open_schema`. They have the same `lists_with` as this one.
        """

    @abstractmethod
    def end(self) -> None:
        """Gives up the matcher: the pattern does not run any more."""

    # What follows from the pattern

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows of `step`."""
        return self._nothing.rows.schema

    @property
    def message_schema(self) -> pa.Schema:
        """The columns that each row of the outbox has of the rows found."""
        return messages_of(self._nothing.rows).rows.schema if self.deployment.rows_per == "event" else self.schema

    def _finished(self, rows: pa.Table) -> Found:
        rows = unnested(rows)
        return Found(finished_rows(self.plan, rows, self._engine), rows.column("detected_at"))

    def shown(self, instant: int) -> int:
        """An instant in microseconds as the tables of the pattern have it: the local time, if the events have that."""
        type_ = self.schema.field("detected_at").type
        if type_.tz is not None:
            return instant
        at = pa.array([instant], pa.int64()).cast(pa.timestamp("us", arrow_zone(self.table.time_zone)))
        shown: int = pc.local_timestamp(at).cast(pa.int64())[0].as_py()
        return shown

    @cached_property
    def open_table(self) -> RowTable | None:
        """The table of open partial matches; None if the pattern has none that can be listed."""
        return None if self.open_schema is None else open_table(self.deployment, self.open_schema, self.correlated)

    @cached_property
    def found_tables(self) -> Mapping[str, RowTable]:
        """The tables for what is found, by the kind of row."""
        return found_tables(self.deployment, self.schema)

    @property
    def tables(self) -> list[RowTable]:
        """All tables of the pattern."""
        return [*([] if self.open_table is None else [self.open_table]), *self.found_tables.values()]

    def _open_rows(self, rows: pa.Table, versions: pa.Array) -> pa.Table:
        given = with_measures(given_rows(self.plan, rows, self._engine.time_zone), self.plan.promoted, self._engine)
        for name, texts in (("version", versions), ("status", pa.array(["waiting"] * rows.num_rows, pa.string()))):
            given = given.append_column(name, texts)
        promoted = [measure.name for measure in self.plan.promoted]
        return given.select([*_BEFORE_KEY, *self.deployment.key, *_AFTER_KEY, *promoted, "stages"])


def in_order(rows: pa.Table) -> pa.Table:
    """The rows in the order of `detected_at`, then of `match_id`. Rows in real time stay as they are, as a retraction
    follows its insertion.
    """
    if pc.any(pc.is_in(rows.column("kind"), value_set=pa.array([INSERTION, RETRACTION]))).as_py():
        return rows
    return rows.take(pc.sort_indices(rows, sort_keys=[("detected_at", "ascending"), ("match_id", "ascending")]))


def _taken_names(deployment: Deployment, *, lists_open: bool) -> list[str]:
    """Faults in names that the tables have for other columns. Databases do not distinguish cases."""
    open_columns = {*_BEFORE_KEY, *_AFTER_KEY, "stages"} if lists_open else {"version"}
    faults = [
        f"key: the tables of a pattern have a column {name.lower()!r} of their own. Rename the column of the events"
        for name in deployment.key
        if name.lower() in open_columns
    ]
    return faults + [
        f"measure {name!r} has the name of another column of the table of matches. Choose another name"
        for name in deployment.measures or ()
        if name.lower() == "version"
    ]


def _taken_columns(deployment: Deployment, columns: pa.Schema) -> Iterator[str]:
    """Faults in names of event columns, where each event has a row."""
    if deployment.rows_per == "match":
        return
    chosen = columns.names if deployment.columns is None else deployment.columns
    names = [*dict.fromkeys((*deployment.key, *chosen, *(deployment.measures or ())))]
    first: dict[str, str] = {"version": "version"}
    for name in names:
        other = first.setdefault(name.lower(), name)
        if name in chosen and name not in deployment.key and (other != name or name == "version"):
            what = "a column that the tables have themselves" if other == "version" else f"column {other!r}"
            yield f"columns: databases do not distinguish {name!r} from {what}. Rename it, or choose columns=[…]"
    if EVENTS in deployment.key:
        yield f"key: messages to subscribers have a column {EVENTS!r} of their own. Rename the column of the events"


@contextmanager
def _with_faults(faults: Sequence[str]) -> Iterator[None]:
    """Raises SchemaError if there are faults, together with those that the block finds."""
    try:
        yield
    except (PatternError, SchemaError) as error:
        if faults:
            raise SchemaError("\n".join([*faults, str(error)])) from error
        raise
    if faults:
        raise SchemaError("\n".join(faults))


def without_keys(measures: Mapping[str, str] | None, key: Sequence[str]) -> dict[str, str] | None:
    """The measures without those that only repeat a column of the key, which each row has anyway."""
    if measures is None:
        return None
    return {name: text for name, text in measures.items() if name not in key or not _is_column(text, name)}


def _is_column(text: str, name: str) -> bool:
    """Whether the SQL text is just the column of this name of one stage."""
    return re.fullmatch(rf"(`[^`]+`|\w+)\.(`{re.escape(name)}`|{re.escape(name)})", text.strip()) is not None
