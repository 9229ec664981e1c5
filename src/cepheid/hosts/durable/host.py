"""A durable host: inputs, deployed patterns, and a store in which every step is one transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import SchemaError
from cepheid.events.batch import python_values
from cepheid.hosts.durable.deployed import Deployed, EventTable
from cepheid.hosts.durable.positions import is_stored_already, joined
from cepheid.hosts.durable.state import Deployment, Input, MatchesOf, Position
from cepheid.hosts.durable.store import OUTBOX, HostStore, Transaction
from cepheid.hosts.durable.tables import found_rows, found_tables, open_table, retracted
from cepheid.hosts.durable.tiers import events_of_matches, tier_table
from cepheid.hosts.in_process.prepare import TimedEvents, instants
from cepheid.hosts.in_process.tables import fitted
from cepheid.matchers.watermark import Reached


class Fed(NamedTuple):
    """What a feed has done."""

    skipped: bool
    """Whether the position says that these events were stored before: then nothing has changed."""
    rows: Mapping[str, pa.Table]
    """The new rows of each pattern that found something, by its name."""


class DurableHost:
    """Runs deployed patterns, and stores each step whole before it returns.

    The store is the truth: after an error in the middle of a step, the host reads it again.
    """

    def __init__(self, store: HostStore) -> None:
        self._store = store
        self._inputs: dict[str, Input] = {}
        self._deployments: list[Deployment] = []
        self._running: list[Deployed] = []
        self._sent = 0
        self._read()

    # Inputs and patterns

    @property
    def inputs(self) -> Mapping[str, Input]:
        return self._inputs

    @property
    def deployments(self) -> Sequence[Deployment]:
        """All deployments in the order of their numbers, retired ones too."""
        return self._deployments

    def add_input(self, given: Input) -> None:
        """Adds the input. If it is there already, with the same arguments, nothing changes.

        Raises:
            SchemaError: there is an input of this name with other arguments.
        """
        known = self._inputs.get(given.name)
        if known is None:
            with self._store.transaction() as transaction:
                transaction.save_input(given)
            self._inputs[given.name] = given
        elif faults := _differences(known, given):
            raise SchemaError(f"input {given.name!r} is there already, with {'; '.join(faults)}")

    def deploy(self, deployment: Deployment) -> Deployment:
        """Deploys the pattern. It takes the events that are fed from now on.

        Raises:
            PatternError, SchemaError: the pattern does not fit its input; nothing has changed.
        """
        deployment = replace(deployment, number=1 + max((one.number for one in self._deployments), default=0))
        deployed = Deployed(deployment, self._table_of(deployment.input))
        deployed.start_at(self._reached(deployment.input))
        with self._changing() as transaction:
            transaction.save_deployment(deployment)
            if (open_ := open_table(deployed)) is not None:
                transaction.create(open_)
            for table in found_tables(deployed).values():
                transaction.create(table)
            self._deployments.append(deployment)
            self._running.append(deployed)
        return deployment

    # Events and time

    def feed(self, events: pa.Table, source: str, position: Position | None = None) -> Fed:
        """Processes events of an input, and stores what follows from them in one transaction.

        Raises:
            SchemaError: there is no such input, or the events have other columns.
            EventError: the position overlaps what is stored, or events cannot be ordered.
            ConditionError, LimitExceeded, SkipError: as `detect`. Nothing has changed, as for the errors above.
        """
        known = self._input(source)
        table = fitted(events, known.columns)
        if position is not None and is_stored_already(known, position, table.num_rows):
            return Fed(skipped=True, rows={})
        timed = TimedEvents(table, (instants(table.column(known.time), known.time, known.time_zone),))
        after = replace(known, events=known.events + table.num_rows, position=joined(known.position, position))
        if (latest := pc.max(timed.times[0].cast(pa.int64())).as_py()) is not None:
            after = _followed(after, latest)
        return Fed(skipped=False, rows=self._step(after, timed))

    def advance_time(self, until: Mapping[str, int]) -> Fed:
        """Advances the time of inputs, each to its time (microseconds): events up to it are late from now on."""
        found: dict[str, list[pa.Table]] = {}
        for source, time in until.items():
            known = self._input(source)
            after = replace(known, reached=max(known.reached, Reached(time)))
            for name, rows in self._step(after, None).items():
                found.setdefault(name, []).append(rows)
        return Fed(skipped=False, rows={name: pa.concat_tables(rows) for name, rows in found.items()})

    def _step(self, after: Input, events: TimedEvents | None) -> dict[str, pa.Table]:
        before = self._inputs[after.name]
        found: dict[str, list[pa.Table]] = {}
        with self._changing() as transaction:
            transaction.save_input(after)
            reached_before = {deployed: self._reached(deployed.deployment.input) for deployed in self._running}
            self._inputs[after.name] = after
            outbox = _Outbox(self._sent)
            for deployed in self._running:
                given = deployed.deployment.input
                mine = self._events_for(deployed, before.name, events, found)
                if mine is None and not self._concerns(given, before.name):
                    continue
                rows = deployed.step(mine, reached_before[deployed], self._reached(given))
                if rows is None:
                    continue
                deployed.save(transaction.shard(deployed.deployment.number))
                self._write(transaction, deployed, rows)
                if rows.num_rows:
                    found.setdefault(deployed.deployment.name, []).append(rows)
                    outbox.add(deployed.deployment, rows)
            if outbox.rows:
                transaction.send(outbox.table)
            self._sent = outbox.number
        return {name: pa.concat_tables(rows) for name, rows in found.items()}

    def _write(self, transaction: Transaction, deployed: Deployed, rows: pa.Table) -> None:
        """Writes the rows found, and the open partial matches that have changed."""
        deployment, tables = deployed.deployment, found_tables(deployed)
        for table, mine in found_rows(deployment, tables, rows):
            transaction.insert(table, mine)
        if gone := retracted(rows):
            transaction.delete(tables["match"], gone)
        open_, changes = open_table(deployed), deployed.open_changes()
        if open_ is not None and changes is not None:
            transaction.replace_open(open_, changes.keys, deployment.version, changes.rows)
            transaction.delete_expired(open_, deployment.version, self._reached(deployment.input).time)

    def _events_for(
        self, deployed: Deployed, source: str, events: TimedEvents | None, found: Mapping[str, Sequence[pa.Table]]
    ) -> TimedEvents | None:
        """The events of this step for a deployment; None if there are none."""
        given = deployed.deployment.input
        if isinstance(given, str):
            return events if given == source else None
        raw = events if given.raw == source else None
        matches = [(name, rows) for name in given.patterns for rows in found.get(name, ())]
        return events_of_matches(self._table_of(given), raw, matches)

    def _concerns(self, given: str | MatchesOf, source: str) -> bool:
        """Whether the time of what a deployment reads depends on the input `source`."""
        return source in self._sources_of(given)

    def _sources_of(self, given: str | MatchesOf) -> set[str]:
        """The inputs that a deployment depends on."""
        if isinstance(given, str):
            return {given}
        raw = {given.raw} if given.raw is not None else set()
        upstream = (one.input for one in self._deployments if one.name in given.patterns)
        return raw.union(*(self._sources_of(one) for one in upstream))

    def _reached(self, given: str | MatchesOf) -> Reached:
        """How far time has advanced in what a deployment reads: the least over its inputs. A match may still be found
        at an instant that is not over, so a tier is before it.
        """
        reached = min(self._inputs[name].reached for name in self._sources_of(given))
        if isinstance(given, str) or reached.over:
            return reached
        return Reached(reached.time - 1)

    def _table_of(self, given: str | MatchesOf) -> EventTable:
        if isinstance(given, str):
            known = self._input(given)
            return EventTable(known.columns, known.time, known.sequence, known.time_zone, known.nulls)
        upstream = [deployed for deployed in self._running if deployed.deployment.name in given.patterns]
        return tier_table(given, upstream, [self._inputs[name] for name in sorted(self._sources_of(given))])

    def _input(self, name: str) -> Input:
        if name not in self._inputs:
            known = ", ".join(self._inputs) or "none yet"
            raise SchemaError(f"there is no input {name!r}. The host has: {known}")
        return self._inputs[name]

    # Reading

    def query(self, sql: str) -> pa.Table:
        """The result of a query over the host's tables."""
        return self._store.query(sql)

    def close(self) -> None:
        self._store.close()

    # State

    @contextmanager
    def _changing(self) -> Iterator[Transaction]:
        """A transaction. If it fails, this object becomes what the store has."""
        try:
            with self._store.transaction() as transaction:
                yield transaction
        except BaseException:
            self._read()
            raise

    def _read(self) -> None:
        """Reads the whole state from the store."""
        inputs, self._deployments, self._sent = self._store.load()
        self._inputs = {one.name: one for one in inputs}
        self._running = []
        for deployment in self._deployments:
            if deployment.status == "retired":
                continue
            deployed = Deployed(deployment, self._table_of(deployment.input))
            shard = self._store.shard(deployment.number)
            deployed.recover(shard, shard.head())
            self._running.append(deployed)


class _Outbox:
    """The rows that a step adds to the outbox."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.rows: list[dict[str, Any]] = []

    def add(self, deployment: Deployment, rows: pa.Table) -> None:
        columns = {name: python_values(rows.column(name)) for name in rows.schema.names}
        for i in range(rows.num_rows):
            self.number += 1
            row = {name: values[i] for name, values in columns.items() if values[i] is not None}
            about = {"pattern": deployment.name, "version": deployment.version}
            known = {"kind": row["kind"], "match_id": row["match_id"]}
            self.rows.append({"number": self.number, **about, **known, "content": json.dumps(row, default=_text)})

    @property
    def table(self) -> pa.Table:
        return pa.Table.from_pylist(self.rows, OUTBOX)


def _text(value: Any) -> str:
    return str(value.isoformat() if hasattr(value, "isoformat") else value)


def _followed(given: Input, latest: int) -> Input:
    """The input after an event at `latest` (microseconds)."""
    latest = max(given.latest, latest)
    reached = Reached(latest, over=False) if given.lateness == 0 else Reached(latest - given.lateness - 1)
    return replace(given, latest=latest, reached=max(given.reached, reached))


def _differences(known: Input, given: Input) -> list[str]:
    """What differs in the arguments of two inputs, as texts."""
    names = ("columns", "time", "sequence", "lateness", "time_zone", "nulls")
    changed = [name for name in names if getattr(known, name) != getattr(given, name)]
    return [f"{name} {getattr(known, name)!r}, not {getattr(given, name)!r}" for name in changed]
