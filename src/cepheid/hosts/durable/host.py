"""A durable host: inputs, deployed patterns, and a store in which every step is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import RLock
from time import perf_counter
from typing import Literal, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import SchemaError, StoreError
from cepheid.events.time import TIME_TYPE
from cepheid.hosts.durable.deployed import Deployed, EventTable
from cepheid.hosts.durable.outbox import Outbox
from cepheid.hosts.durable.positions import is_stored_already, joined
from cepheid.hosts.durable.retention import Retained, Retention
from cepheid.hosts.durable.screen import Screen
from cepheid.hosts.durable.state import BEFORE_ALL, Deployment, Input, MatchesOf, Position
from cepheid.hosts.durable.store import HostStore, Transaction
from cepheid.hosts.durable.tables import found_rows, found_tables, open_table, retracted, tables_of
from cepheid.hosts.durable.tiers import events_of_matches, tier_table
from cepheid.hosts.in_process.prepare import TimedEvents, instants
from cepheid.hosts.in_process.tables import fitted
from cepheid.hosts.shards.arrow_stream import to_stream
from cepheid.matchers.watermark import Reached
from cepheid.output.common import MATCH
from cepheid.output.ids import Ids

Old: TypeAlias = Literal["drain", "drop"]
"""What becomes of what is open of a version that ends."""


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

    def __init__(self, store: HostStore, retention: Retention | None = None) -> None:
        self._store = store
        self._retained = None if retention is None else Retained(retention)
        self.first_undelivered: Callable[[], int] = lambda: self._sent + 1
        """The number of the first row in the outbox that is still to be delivered: it and later ones are kept."""
        self._inputs: dict[str, Input] = {}
        self._deployments: list[Deployment] = []
        self._running: list[Deployed] = []
        self._screens: dict[str, Screen] = {}
        """By input; made anew when the running deployments have changed."""
        self._sent, self._ids = 0, Ids.SIPHASH
        self._is_current = True
        self._lock = RLock()
        """Held by what changes this object: a query of a store that lists when asked reads it, too."""
        self.commits = 0
        self.commit_seconds = 0.0
        try:
            self._read()
        except BaseException:
            store.close()
            raise

    # Inputs and patterns

    @property
    def inputs(self) -> Mapping[str, Input]:
        return self._inputs

    @property
    def deployments(self) -> Sequence[Deployment]:
        """All deployments in the order of their numbers, retired ones too."""
        return self._deployments

    @property
    def running(self) -> Sequence[Deployed]:
        """The deployments that run or drain."""
        return self._running

    @property
    def sent(self) -> int:
        """The number of the last row in the outbox.

        Raises:
            StoreError: the last step failed, and the store still fails.
        """
        self._ensure_current()
        return self._sent

    def add_input(self, given: Input) -> None:
        """Adds the input. If it is there already, with the same arguments, nothing changes.

        Raises:
            SchemaError: there is an input of this name with other arguments.
        """
        self._ensure_current()
        known = self._inputs.get(given.name)
        if known is None:
            with self._changing() as transaction:
                transaction.save_input(given)
            self._inputs[given.name] = given
        elif faults := _differences(known, given):
            raise SchemaError(f"input {given.name!r} is there already, with {'; '.join(faults)}")

    def deploy(self, deployment: Deployment, *, since: int | None = None, old: Old | None = None) -> Deployment:
        """Deploys the pattern. It takes the events that are fed from now on; before them, with `since` (microseconds),
        the kept events from that time on. If another version of the pattern runs, `old` says what becomes of it.

        Raises:
            PatternError, SchemaError: the pattern does not fit its input, its version or what is kept; nothing has
                changed.
        """
        self._ensure_current()
        deployment = replace(deployment, number=1 + max((one.number for one in self._deployments), default=0))
        deployed = Deployed(deployment, self._table_of(deployment.input), self._ids)
        position = self._inputs[deployment.input].position if isinstance(deployment.input, str) else None
        deployed.deployment = deployment = replace(deployment, problems=deployed.problems, position=position)
        former = self._former(deployment, since, old)
        events = None if since is None else self._kept(deployment, since)
        with self._changing() as transaction:
            transaction.save_deployment(deployment)
            for table in tables_of(deployed):
                transaction.create(table)
            if former is not None and old is not None:
                self._end(transaction, former, old)
            self._deployments.append(deployment)
            self._running.append(deployed)
            self._screens = {}
            reached, outbox = self._reached(deployment.input), Outbox(self._sent)
            rows = deployed.step(events, BEFORE_ALL, reached) if events is not None else None
            deployed.start_at(reached)
            if rows is not None:
                self._write(transaction, deployed, rows, outbox)
            self._sent = outbox.sent_to(transaction)
        return deployment

    def retire(self, name: str, how: Old) -> None:
        """Ends the running version of the pattern: drained, it starts nothing more and goes on until nothing of it is
        open; dropped, what is open of it vanishes.

        Raises:
            SchemaError: no pattern of this name runs.
        """
        self._ensure_current()
        running = next((one for one in self._running if _is_running(one, name)), None)
        if running is None:
            known = ", ".join(one.deployment.name for one in self._running) or "none"
            raise SchemaError(f"no pattern {name!r} runs. These do: {known}")
        with self._changing() as transaction:
            self._end(transaction, running, how)

    def _former(self, deployment: Deployment, since: int | None, old: Old | None) -> Deployed | None:
        """The version of the pattern that runs now."""
        former = next((one for one in self._running if _is_running(one, deployment.name)), None)
        faults, name = [], deployment.name
        versions = [one.version for one in self._deployments if one.name == name]
        if deployment.version in versions:
            faults.append(
                f"pattern {name!r} was deployed with version {deployment.version!r} before: give it another one"
            )
        if former is not None and old is None:
            faults.append(
                f"version {former.deployment.version!r} of pattern {name!r} runs. Say what becomes of what is open of "
                "it: old='drain' or old='drop'"
            )
        if former is not None and since is not None and old == "drain":
            faults.append("since= before the switch would find again what the old version finds: use old='drop'")
        if faults:
            raise SchemaError("\n".join(faults))
        return former

    def _kept(self, deployment: Deployment, since: int) -> TimedEvents:
        """The kept events of the deployment's input from `since` on."""
        if not isinstance(deployment.input, str):
            raise SchemaError("since: the input is matches of other patterns, which are not kept as events")
        known = self._input(deployment.input)
        if not known.keep:
            raise SchemaError(f"since: input {known.name!r} keeps no events. Declare it with keep=…")
        if since < known.latest - known.keep:
            raise SchemaError(f"since: input {known.name!r} keeps its events for less than that")
        feeds = [pa.ipc.open_stream(feed).read_all() for feed in self._store.kept(known.name)]
        events = pa.concat_tables([known.columns.empty_table(), *feeds])
        times = instants(events.column(known.time), known.time, known.time_zone)
        timed = TimedEvents(events, (times,))
        return timed.filter(pc.greater_equal(times, pa.scalar(since, pa.int64()).cast(TIME_TYPE)))

    def _end(self, transaction: Transaction, running: Deployed, how: Old) -> None:
        """Drains or drops what runs."""
        drains = how == "drain" and not running.is_idle
        ended = replace(running.deployment, status="draining" if drains else "retired")
        at = self._running.index(running)
        self._deployments[self._deployments.index(running.deployment)] = ended
        transaction.save_deployment(ended)
        self._screens = {}
        if drains:
            self._running[at] = self._listed_anew(running.draining(ended))
            # A log that was written before must not be replayed by a matcher that starts nothing.
            self._running[at].save(transaction.shard(ended.number))
            return
        del self._running[at]
        if running.head is not None:
            transaction.shard(ended.number).clear(running.head)
        if (open_ := open_table(running)) is not None:
            transaction.clear(open_, ended.version)

    # Events and time

    def feed(self, events: pa.Table, source: str, position: Position | None = None) -> Fed:
        """Processes events of an input, and stores what follows from them in one transaction.

        Raises:
            SchemaError: there is no such input, or the events have other columns.
            EventError: the position overlaps what is stored, or events cannot be ordered.
            ConditionError, LimitExceeded, SkipError: as `detect`. Nothing has changed, as for the errors above.
        """
        self._ensure_current()
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
        self._ensure_current()
        found: dict[str, list[pa.Table]] = {}
        for source, time in until.items():
            known = self._input(source)
            after = replace(known, reached=max(known.reached, Reached(time)))
            for name, rows in self._step(after, None).items():
                found.setdefault(name, []).append(rows)
        return Fed(skipped=False, rows={name: pa.concat_tables(rows) for name, rows in found.items()})

    def _step(self, after: Input, events: TimedEvents | None) -> dict[str, pa.Table]:
        """One transaction: the input becomes `after`, and all patterns that depend on it take its events and time."""
        found: dict[str, list[pa.Table]] = {}
        before = {one: self._reached(one.deployment.input) for one in self._running}
        concerned = self._concerned(after.name, events)
        with self._changing() as transaction:
            transaction.save_input(after)
            if after.keep and events is not None:
                transaction.keep(after.name, after.events, after.latest, to_stream(events.events))
                transaction.forget(after.name, after.latest - after.keep)
            self._inputs[after.name] = after
            outbox = Outbox(self._sent)
            for running in [*self._running]:
                given = running.deployment.input
                if given == after.name and running not in concerned and not running.is_due(self._reached(given)):
                    continue
                if after.name not in self._sources_of(given):
                    continue
                mine = self._events_for(running, after.name, events, found)
                rows = running.step(mine, before[running], self._reached(given))
                if rows is not None:
                    self._write(transaction, running, rows, outbox)
                    found.setdefault(running.deployment.name, []).append(rows)
                if running.deployment.status == "draining" and running.is_idle:
                    self._end(transaction, running, "drop")
            self._sent = outbox.sent_to(transaction)
            if self._retained is not None:
                self._retained.cut_outbox(transaction, self._sent, self.first_undelivered())
        return {name: pa.concat_tables(rows) for name, rows in found.items() if any(map(len, rows))}

    def _write(self, transaction: Transaction, running: Deployed, rows: pa.Table, outbox: Outbox) -> None:
        """Writes the state of a pattern, the rows found, and the open partial matches that have changed."""
        running.save(transaction.shard(running.deployment.number))
        if rows.num_rows:
            self._write_found(transaction, running, rows)
            outbox.add(running.deployment, rows)
        if not self._store.lists_when_asked:
            self._list_open(running)

    def _write_found(self, transaction: Transaction, running: Deployed, rows: pa.Table) -> None:
        deployment, tables = running.deployment, found_tables(running)
        for table, mine in found_rows(deployment, tables, rows):
            transaction.insert(table, mine)
            if self._retained is not None:
                self._retained.cut(transaction, table, len(mine), self._reached(deployment.input).time)
        if gone := retracted(rows):
            transaction.delete(tables[MATCH], gone)

    def _list_open(self, *deployed: Deployed) -> None:
        """Writes the rows of the open partial matches that have changed."""
        with self._store.listing() as to:
            for running in deployed:
                open_, changes, version = open_table(running), running.open_changes(), running.deployment.version
                if open_ is not None and changes is not None:
                    to.replace_open(open_, changes.keys, version, changes.rows)
                    to.delete_expired(open_, version, self._reached(running.deployment.input).time)

    def _concerned(self, source: str, events: TimedEvents | None) -> set[Deployed]:
        """The deployments with this input that the events may concern, and those that drain."""
        mine = [one for one in self._running if one.deployment.input == source]
        draining = {one for one in mine if one.deployment.status == "draining"}
        if events is None or not len(events):
            return draining
        if source not in self._screens:
            self._screens[source] = Screen([one.comparisons for one in mine])
        numbers = self._screens[source].concerned(events.events)
        # Events without a key or a time are refused, or dropped and counted, by the pattern.
        unusable = {name for name in events.events.schema.names if events.events.column(name).null_count}
        timeless = any(times.null_count for times in events.times)
        return draining | {
            one
            for number, one in enumerate(mine)
            if number in numbers or timeless or not unusable.isdisjoint(one.deployment.key)
        }

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
        if given.raw is not None:
            self._input(given.raw)
        upstream = [deployed for deployed in self._running if deployed.deployment.name in given.patterns]
        return tier_table(given, upstream, [self._inputs[name] for name in sorted(self._sources_of(given))])

    def _input(self, name: str) -> Input:
        if name not in self._inputs:
            known = ", ".join(self._inputs) or "none yet"
            raise SchemaError(f"there is no input {name!r}. The host has: {known}")
        return self._inputs[name]

    # Reading

    def query(self, sql: str) -> pa.Table:
        """The result of a query over the host's tables. This and `read`, and only they, may be called by any thread."""
        return self._reader(lists_open=True)(sql)

    def read(self, sql: str) -> pa.Table:
        """The result of a query that does not concern open partial matches. It may be called by any thread, too."""
        return self._reader(lists_open=False)(sql)

    def _reader(self, *, lists_open: bool) -> Callable[[str], pa.Table]:
        """Gives the result of one query, as things are now."""
        if not self._store.lists_when_asked:
            return self._store.reader()
        with self._lock:
            self._ensure_current()
            try:
                self._list_open(*(self._running if lists_open else ()))
                return self._store.reader()
            except StoreError:
                self._is_current = False  # what was not listed counts as listed, so all is read anew
                raise

    def backup(self, path: Path) -> None:
        """Writes all that is stored to a new file or folder."""
        with self._lock:
            self._ensure_current()
            self._store.backup(path)

    def close(self) -> None:
        self._store.close()

    # State

    @contextmanager
    def changing(self) -> Iterator[Transaction]:
        """A transaction for what belongs to no pattern."""
        self._ensure_current()
        with self._changing() as transaction:
            yield transaction

    @contextmanager
    def _changing(self) -> Iterator[Transaction]:
        """A transaction. If it fails, this object becomes what the store has."""
        with self._lock:
            try:
                with self._store.transaction() as transaction:
                    yield transaction
                    started = perf_counter()
                self.commits += 1
                self.commit_seconds += perf_counter() - started
            except StoreError:
                self._is_current = False  # the connection may be gone, so it is made anew when it is needed
                raise
            except BaseException:
                self._read()
                raise

    def _ensure_current(self) -> None:
        """Reads the state anew after the store has failed.

        Raises:
            StoreError: the store still fails.
        """
        with self._lock:
            if not self._is_current:
                self._store.reopen()
                self._read()

    def _read(self) -> None:
        """Reads the whole state from the store."""
        inputs, self._deployments, self._sent, self._ids = self._store.load()
        self._is_current = False
        self._inputs = {one.name: one for one in inputs}
        self._running, self._screens = [], {}
        for deployment in self._deployments:
            if deployment.status == "retired":
                continue
            deployed = Deployed(deployment, self._table_of(deployment.input), self._ids)
            shard = self._store.shard(deployment.number)
            deployed.recover(shard, shard.head())
            self._running.append(self._listed_anew(deployed))
        self._is_current = True

    def _listed_anew(self, deployed: Deployed) -> Deployed:
        """The same; a store that lists when asked has no rows of it yet, or not all that have changed."""
        if self._store.lists_when_asked:
            deployed.relist()
        return deployed


def _is_running(one: Deployed, name: str) -> bool:
    return one.deployment.name == name and one.deployment.status == "running"


def _followed(given: Input, latest: int) -> Input:
    """The input after an event at `latest` (microseconds)."""
    latest = max(given.latest, latest)
    reached = Reached(latest, over=False) if given.lateness == 0 else Reached(latest - given.lateness - 1)
    return replace(given, latest=latest, reached=max(given.reached, reached))


def _differences(known: Input, given: Input) -> list[str]:
    """What differs in the arguments of two inputs, as texts."""
    names = ("columns", "time", "sequence", "lateness", "time_zone", "nulls", "keep")
    changed = [name for name in names if getattr(known, name) != getattr(given, name)]
    return [f"{name} {getattr(known, name)!r}, not {getattr(given, name)!r}" for name in changed]
