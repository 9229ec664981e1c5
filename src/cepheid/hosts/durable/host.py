"""A durable host: inputs, deployed patterns, and a store in which every step is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import PatternError, SchemaError, WorkerFailed, did_you_mean
from cepheid.events.time import TIME_TYPE
from cepheid.families import why_not_drained
from cepheid.hosts.durable.current import Current, is_running
from cepheid.hosts.durable.deployed import Deployed, Found, in_sequence
from cepheid.hosts.durable.outbox import Outbox
from cepheid.hosts.durable.positions import is_stored_already, joined
from cepheid.hosts.durable.retention import Retained, Retention
from cepheid.hosts.durable.state import BEFORE_ALL, Deployment, Input, Position
from cepheid.hosts.durable.step.events import StepEvents
from cepheid.hosts.durable.step.screen import Screen
from cepheid.hosts.durable.store import HostStore, Transaction
from cepheid.hosts.durable.stores.database import quoted
from cepheid.hosts.durable.tables import KINDS, found_rows, retracted
from cepheid.hosts.durable.tiers import (
    cycle_faults,
    events_of_matches,
    reader_faults,
    upstream_first,
)
from cepheid.hosts.durable.workers.places import OwnProcess, Places
from cepheid.hosts.in_process.detect import warn_of_repeated_hours
from cepheid.hosts.in_process.event_times.instants import instants
from cepheid.hosts.in_process.prepare import TimedEvents
from cepheid.hosts.in_process.tables import fitted
from cepheid.hosts.shards.arrow_stream import to_stream
from cepheid.lang.duration import format_duration
from cepheid.matchers.watermark import Reached
from cepheid.output.common import MATCH
from cepheid.output.times import repeated_hours
from cepheid.requests.arrival import NUMBER_OF_ARRIVAL, arrival_time, with_arrival

Old: TypeAlias = Literal["drain", "drop"]
"""What becomes of what is open of a version that ends."""


class Fed(NamedTuple):
    """What a feed has done."""

    skipped: bool
    """Whether the position says that these events were stored before: then nothing has changed."""
    rows: Mapping[str, pa.Table]
    """The new rows of each pattern that found something, by its name."""


class DurableHost:
    """Runs deployed patterns, and stores each step whole before it returns."""

    def __init__(self, store: HostStore, retention: Retention | None = None, places: Places | None = None) -> None:
        """`places` is where the deployed patterns run: by default in this process.

        Raises:
            StoreError: the store cannot be read; it is closed.
            WorkerFailed: no worker can be started; the store is closed.
        """
        self._now = Current(store, places or OwnProcess())
        self._retained = None if retention is None else Retained(retention)
        self._warned: set[str] = set()
        """The inputs with a warning about an hour that clocks show twice."""
        self._ambiguous: dict[str, tuple[pa.Table, str]] = {}
        """By input that has no warning yet: rows of this step with such local times, and their zone."""
        self.first_undelivered: Callable[[], int] = lambda: self._now.sent + 1
        """The number of the first row in the outbox that is still to be delivered: it and later ones are kept."""

    # Inputs and patterns

    @property
    def inputs(self) -> Mapping[str, Input]:
        return self._now.inputs

    @property
    def deployments(self) -> Sequence[Deployment]:
        """All deployments in the order of their numbers, retired ones too."""
        return self._now.deployments

    @property
    def running(self) -> Sequence[Deployed]:
        """The deployments that run or drain."""
        return self._now.running

    def ensure(self) -> None:
        """Reads the state anew after the store has failed, or a worker has ended.

        Raises:
            StoreError: the store still fails.
        """
        self._now.ensure()

    @property
    def commits(self) -> int:
        """The number of transactions since the host was opened."""
        return self._now.commits

    @property
    def commit_seconds(self) -> float:
        """The time for committing, without the matching before it."""
        return self._now.commit_seconds

    def time_zone_of(self, name: str, version: str) -> str:
        """The zone of the local times that a version of a pattern has, if its events have no zone."""
        return self._now.time_zone_of(name, version)

    @property
    def sent(self) -> int:
        """The number of the last row in the outbox.

        Raises:
            StoreError: the last step failed, and the store still fails.
        """
        self._now.ensure()
        return self._now.sent

    def add_input(self, given: Input) -> None:
        """Adds the input. If it is there already, `nulls` and `keep` may change, and nothing else.

        Raises:
            SchemaError: there is an input of this name with other arguments.
        """
        self._now.ensure()
        known = self._now.inputs.get(given.name)
        if known is not None:
            if faults := _differences(known, given):
                what = f"input {given.name!r} is there already, with {'; '.join(faults)}"
                raise SchemaError(f"{what}. Only nulls and keep may change: give this one another name")
            if (given := replace(known, nulls=given.nulls, keep=given.keep)) == known:
                return
        with self._now.changing() as transaction:
            transaction.save_input(given)
        if known is None:
            self._now.inputs[given.name] = given
        else:
            with self._now.lock:
                self._now.read()  # the patterns read it in another way

    def deploy(self, deployment: Deployment, *, since: int | None = None, old: Old | None = None) -> Deployment:
        """Deploys the pattern. It takes the events that are fed from now on; before them, with `since` (microseconds),
        the kept events from that time on. If other versions of the pattern run or drain, `old` says what becomes of
        them.

        Raises:
            PatternError, SchemaError: the pattern does not fit its input, its version or what is kept, or a version
                cannot be drained; nothing has changed.
            ConditionError, EventError, LimitExceeded, SkipError: the pattern fails on kept events, or one that reads
                its matches on these; nothing has changed.
        """
        self._now.ensure()
        deployment = replace(deployment, number=1 + max((one.number for one in self._now.deployments), default=0))
        if faults := [*cycle_faults(deployment, self._now.running)]:
            raise SchemaError("\n".join(faults))
        deployed = self._now.new(deployment)
        position = self._now.inputs[deployment.input].position if isinstance(deployment.input, str) else None
        deployed.deployment = deployment = replace(deployed.deployment, problems=deployed.problems, position=position)
        former = self._former(deployed, since, old)
        events = None if since is None else self._kept(deployment, since)
        known = set() if since is None else self._ids_found(deployed)
        with self._now.changing() as transaction:
            transaction.save_deployment(deployment)
            for table in deployed.tables:
                transaction.create(table)
            for one in former:
                self._end(transaction, one, old or "drain")
            self._now.deployments.append(deployment)
            self._now.running, self._now.screens = upstream_first([*self._now.running, deployed]), {}
            reached, outbox = self._now.reached_by(deployment.input), Outbox(self._now.sent)
            found = deployed.step(StepEvents(events), BEFORE_ALL, reached) if events is not None else None
            deployed.start_at(reached)
            if found is not None:
                new = [one not in known for one in found.rows.column("match_id").to_pylist()]
                found = found.filter(pa.array(new, pa.bool_()))
                self._write(transaction, deployed, found, outbox)
                readers = self._to_readers(transaction, {deployment.name: [found]}, outbox)
                self._now.list_changed([deployed, *readers])
            self._now.sent = outbox.sent_to(transaction)
        self._warn_of_repeated_hours()
        return deployment

    def retire(self, name: str, how: Old) -> None:
        """Ends the pattern. Drained, it starts nothing more and goes on until nothing of it is open; dropped, what is
        open of it vanishes, also of versions that drain.

        Raises:
            SchemaError: no version of the pattern runs, or drains and can be dropped.
            PatternError: patterns of this kind cannot be drained.
        """
        self._now.ensure()
        mine = self._versions(name)
        if not mine or (how == "drain" and not any(map(is_running, mine))):
            if mine:
                raise SchemaError(f"pattern {name!r} drains already: drop it to end it now")
            known = [one.deployment.name for one in self._now.running if is_running(one)]
            raise SchemaError(f"no pattern {name!r} runs. {did_you_mean(name, known, if_none='None does')}")
        if how == "drain":
            _check_drains(mine)
        with self._now.changing() as transaction:
            for one in mine:
                self._end(transaction, one, how)

    def _versions(self, name: str) -> list[Deployed]:
        """The versions of the pattern that run or drain."""
        return [one for one in self._now.running if one.deployment.name == name]

    def _former(self, deployed: Deployed, since: int | None, old: Old | None) -> list[Deployed]:
        """The versions of the pattern that run or drain now."""
        deployment = deployed.deployment
        former = self._versions(deployment.name)
        faults, name = [], deployment.name
        versions = [one.version for one in self._now.deployments if one.name == name]
        if deployment.version in versions:
            faults.append(
                f"pattern {name!r} was deployed with version {deployment.version!r} before: give it another one"
            )
        faults += _other_rows(deployment, self._now.deployments)
        if old is None and (now := [one.deployment.version for one in former if is_running(one)]):
            faults.append(
                f"version {now[0]!r} of pattern {name!r} runs. Say what becomes of what is open of it: old='drain' or "
                "old='drop'"
            )
        if former and since is not None and old != "drop":
            faults.append("since= before the switch would find again what the old version finds: use old='drop'")
        if versions:
            faults += reader_faults(deployed, self._now.newest(name, deployment.number), self._now.running)
        if faults:
            raise SchemaError("\n".join(faults))
        if old == "drain":
            _check_drains(former)
        return former

    def _ids_found(self, deployed: Deployed) -> set[str]:
        """The ids of what earlier versions of the pattern have found. They were sent, and are not sent again."""
        earlier = [one for one in self._now.deployments if one.name == deployed.deployment.name]
        kinds = {KINDS[output] for one in earlier for output in one.outputs}
        tables = [table for kind, table in deployed.found_tables.items() if kind in kinds]
        each = (self.read(f"SELECT match_id FROM {quoted(table.name)}").column(0).to_pylist() for table in tables)
        return {match_id for ids in each for match_id in ids}

    def _kept(self, deployment: Deployment, since: int) -> TimedEvents:
        """The kept events of the deployment's input from `since` on."""
        if not isinstance(deployment.input, str):
            raise SchemaError("since: the input is matches of other patterns, which are not kept as events")
        known = self._now.input(deployment.input)
        if not known.keep:
            raise SchemaError(f"since: input {known.name!r} keeps no events. Declare it with keep=…")
        if since < known.latest - known.keep:
            raise SchemaError(f"since: input {known.name!r} keeps its events for less than that")
        feeds = [pa.ipc.open_stream(feed).read_all() for feed in self._now.store.kept(known.name)]
        events = pa.concat_tables([known.event_columns.empty_table(), *feeds])
        events = in_sequence(events, known.sequence, known.time_zone)
        times = instants(events.column(known.time), known.time, known.time_zone)
        timed = TimedEvents(events, (times,))
        return timed.filter(pc.greater_equal(times, pa.scalar(since, pa.int64()).cast(TIME_TYPE)))

    def _end(self, transaction: Transaction, running: Deployed, how: Old) -> None:
        """Drains or drops what runs. What drains already goes on."""
        if how == "drain" and running.deployment.status == "draining":
            return
        at = self._now.deployments.index(running.deployment)
        drains = how == "drain" and not running.is_idle
        if drains:
            running.drain()
        ended = running.deployment if drains else replace(running.deployment, status="retired")
        self._now.deployments[at] = ended
        transaction.save_deployment(ended)
        self._now.screens = {}
        if drains:
            return
        self._now.running.remove(running)
        running.end()
        if running.head is not None:
            transaction.shard(ended.number).clear(running.head)
        if running.open_table is not None:
            transaction.clear(running.open_table, ended.version)

    # Events and time

    def feed(self, events: pa.Table, source: str, position: Position | None = None, at: int | None = None) -> Fed:
        """Processes events of an input, and stores what follows from them in one transaction. `at` is the time of their
        arrival (microseconds), if that is their time; None: now.

        Raises:
            SchemaError: there is no such input, or the events have other columns.
            EventError: the position overlaps what is stored, or events cannot be ordered, or cannot arrive at `at`.
            ConditionError, LimitExceeded, SkipError: as `detect`. Nothing has changed, as for the errors above.
        """
        self._now.ensure()
        known = self._now.input(source)
        table = fitted(events, known.columns, f"input {source!r}")
        if position is not None and is_stored_already(known, position, table.num_rows):
            return Fed(skipped=True, rows={})
        if known.arrives:
            arrived, in_own = arrival_time(at, known.least_arrival), len(known.sequence) > 1
            table = with_arrival(table, arrived, known.events, in_sequence=in_own)
        elif at is not None:
            raise SchemaError(f"at: the events of input {source!r} have times of their own, in {known.time!r}")
        table = in_sequence(table, known.sequence, known.time_zone)
        timed = TimedEvents(table, (instants(table.column(known.time), known.time, known.time_zone),))
        after = replace(known, events=known.events + table.num_rows, position=joined(known.position, position))
        if (latest := pc.max(timed.times[0].cast(pa.int64())).as_py()) is not None:
            after = _followed(after, latest)
        return Fed(skipped=False, rows=self._step([after], timed))

    def advance_time(self, until: Mapping[str, int]) -> Fed:
        """Advances the time of inputs, each to its time (microseconds): events up to it are late from now on."""
        self._now.ensure()
        given = [(self._now.input(name), Reached(time)) for name, time in until.items()]
        return Fed(
            skipped=False, rows=self._step([replace(one, reached=max(one.reached, time)) for one, time in given], None)
        )

    def _step(self, changed: Sequence[Input], events: TimedEvents | None) -> dict[str, pa.Table]:
        """One transaction: the inputs become those in `changed`, and all patterns that depend on them take the events,
        which are of the only one, and the time. If a worker ends meanwhile, it is started again from the store, and all
        is done once more.
        """
        try:
            return self._stepped(changed, events)
        except WorkerFailed:
            self._now.ensure()
            return self._stepped(changed, events)

    def _stepped(self, changed: Sequence[Input], events: TimedEvents | None) -> dict[str, pa.Table]:
        found: dict[str, list[Found]] = {}
        names = {one.name for one in changed}
        sources = {one.deployment.input: self._now.sources_of(one.deployment.input) for one in self._now.running}
        before = {given: self._now.reached_by(given) for given, of in sources.items() if not names.isdisjoint(of)}
        concerned = set() if events is None else self._concerned(changed[0].name, events)
        given_events = None if events is None else StepEvents(events)
        with self._now.changing() as transaction:
            for after in changed:
                transaction.save_input(after)
                if after.keep and events is not None and len(events):
                    transaction.keep(
                        after.name,
                        after.events,
                        after.latest,
                        to_stream(events.events.select(after.event_columns.names)),
                    )
                    transaction.forget(after.name, after.latest - after.keep)
                self._now.inputs[after.name] = after
            outbox, written = Outbox(self._now.sent), list[Deployed]()
            now = {given: self._now.reached_by(given) for given in before}
            stepping = [one for one in self._now.running if one.deployment.input in before]
            stepping = [
                one
                for one in stepping
                if one.deployment.status == "draining"
                or one.deployment.input not in names
                or one in concerned
                or one.is_due(now[one.deployment.input])
            ]
            for running in stepping:
                if isinstance(given := running.deployment.input, str):
                    running.begin(given_events if given in names else None, before[given], now[given])
            for running in stepping:
                given, drains = running.deployment.input, running.deployment.status == "draining"
                reached = now[given]
                mine = self._events_for(running, changed[0].name, given_events, found)
                if (new := running.step(mine, before[given], reached)) is not None:
                    self._write(transaction, running, new, outbox)
                    written.append(running)
                    found.setdefault(running.deployment.name, []).append(new)
                if drains and running.is_idle:
                    self._end(transaction, running, "drop")
            still = set(self._now.running)
            self._now.list_changed([one for one in written if one in still])
            self._now.sent = outbox.sent_to(transaction)
            self._cut(transaction)
        self._warn_of_repeated_hours()
        return {name: _joined(each) for name, each in found.items() if any(len(one.rows) for one in each)}

    def _to_readers(self, transaction: Transaction, found: dict[str, list[Found]], outbox: Outbox) -> list[Deployed]:
        """Gives matches that kept events have made to those who read them; they are late where time is past them.
        Returns those that have written something.
        """
        written = []
        for running in self._now.running:
            if (mine := self._events_for(running, "", None, found)) is not None:
                reached = self._now.reached_by(running.deployment.input)
                if (new := running.step(mine, reached, reached)) is not None:
                    self._write(transaction, running, new, outbox)
                    written.append(running)
                    found.setdefault(running.deployment.name, []).append(new)
        return written

    def _write(self, transaction: Transaction, running: Deployed, found: Found, outbox: Outbox) -> None:
        """Writes the state of a pattern and the rows found."""
        running.save(transaction.shard(running.deployment.number))
        if found.rows.num_rows:
            self._note_repeated_hours(running, found.rows)
            self._write_found(transaction, running, found.rows)
            outbox.add(running.deployment, found)

    def _note_repeated_hours(self, running: Deployed, rows: pa.Table) -> None:
        """Notes rows with local times that may mean either of two instants; one such warning for an input is enough.
        Tiers have their times from these rows.
        """
        source, zone = running.deployment.input, running.table.time_zone
        if isinstance(source, str) and source not in self._warned and repeated_hours(rows, zone):
            self._ambiguous[source] = (rows, zone)

    def _warn_of_repeated_hours(self) -> None:
        """Warns once for each input, after what it has found was stored: a warning may be raised as an error."""
        ambiguous, self._ambiguous = self._ambiguous, {}
        self._warned.update(ambiguous)
        for source, (rows, zone) in ambiguous.items():
            warn_of_repeated_hours(rows, zone, where=f"input {source!r}: ")

    def _write_found(self, transaction: Transaction, running: Deployed, rows: pa.Table) -> None:
        tables = running.found_tables
        for table, mine in found_rows(running.deployment, tables, rows):
            transaction.insert(table, mine)
            if self._retained is not None:
                self._retained.cut_added(transaction, table, len(mine))
        if gone := retracted(rows):
            transaction.delete(tables[MATCH], gone)

    def _cut(self, transaction: Transaction) -> None:
        """Removes what is not kept any longer."""
        if self._retained is None:
            return
        for running in self._now.running:
            reached = self._now.reached_by(running.deployment.input).time
            if (oldest := self._retained.oldest(running.deployment.number, reached)) is not None:
                for table in running.found_tables.values():
                    transaction.remove_older(table, running.shown(oldest))
        latest = max((one.reached.time for one in self._now.inputs.values()), default=BEFORE_ALL.time)
        self._retained.cut_outbox(transaction, self._now.sent, self.first_undelivered(), latest)

    def _concerned(self, source: str, events: TimedEvents) -> set[Deployed]:
        """The deployments with this input that the events may concern."""
        if not len(events):
            return set()
        mine = [one for one in self._now.running if one.deployment.input == source]
        if source not in self._now.screens:
            self._now.screens[source] = Screen([one.comparisons for one in mine])
        numbers = self._now.screens[source].concerned(events.events)
        # Events without a key or a time are refused, or dropped and counted, by the pattern.
        unusable = {name for name in events.events.schema.names if events.events.column(name).null_count}
        timeless = any(times.null_count for times in events.times)
        return {
            one
            for number, one in enumerate(mine)
            if number in numbers or timeless or not unusable.isdisjoint(one.deployment.key)
        }

    def _events_for(
        self, deployed: Deployed, source: str, events: StepEvents | None, found: Mapping[str, Sequence[Found]]
    ) -> StepEvents | None:
        """The events of this step for a deployment; None if there are none."""
        given = deployed.deployment.input
        if isinstance(given, str):
            return events if given == source else None
        raw = events.events if events is not None and given.raw == source else None
        matches = [(name, rows) for name in given.patterns for rows in found.get(name, ())]
        read = events_of_matches(deployed.table, raw, matches)
        return None if read is None else StepEvents(read)

    # Reading

    def query(self, sql: str) -> pa.Table:
        """The result of a user's query. This and `read`, and only they, may be called by any thread."""
        return self._now.reader(lists_open=True)(sql)

    def read(self, sql: str) -> pa.Table:
        """The result of a query of the host itself, which does not concern open partial matches."""
        return self._now.reader(lists_open=False)(sql)

    @contextmanager
    def changing(self) -> Iterator[Transaction]:
        """A transaction for what belongs to no pattern."""
        self._now.ensure()
        with self._now.changing() as transaction:
            yield transaction

    def backup(self, path: Path) -> None:
        """Writes all that is stored to a new file or folder."""
        with self._now.lock:
            self._now.ensure()
            self._now.store.backup(path)

    def close(self) -> None:
        self._now.close()


def _check_drains(ending: Sequence[Deployed]) -> None:
    """
    Raises:
        PatternError: patterns of this kind cannot be drained.
    """
    for one in ending:
        if is_running(one) and (reason := why_not_drained(one.deployment.pattern)):
            raise PatternError(reason)


def _other_rows(deployment: Deployment, deployments: Sequence[Deployment]) -> Iterator[str]:
    """A fault if the tables of the pattern have other rows, from another version."""
    for one in deployments:
        if one.name == deployment.name and one.rows_per != deployment.rows_per:
            yield (
                f"rows_per: the tables of pattern {one.name!r} have a row for each {one.rows_per}, from version "
                f"{one.version!r}: give rows_per={one.rows_per!r}, or give the pattern another name"
            )
            return


def _joined(found: Sequence[Found]) -> pa.Table:
    """The rows of all versions of a pattern. A column that a version does not have is NULL."""
    return pa.concat_tables([one.rows for one in found], promote_options="permissive")


def _followed(given: Input, latest: int) -> Input:
    """The input after an event at `latest` (microseconds)."""
    latest = max(given.latest, latest)
    reached = Reached(latest, over=False) if given.lateness == 0 else Reached(latest - given.lateness - 1)
    return replace(given, latest=latest, reached=max(given.reached, reached))


def _differences(known: Input, given: Input) -> list[str]:
    """What differs in the arguments of two inputs, as texts."""
    both = zip(_arguments(known).items(), _arguments(given).values(), strict=True)
    return [f"{name} {was}, not {now}" for (name, was), now in both if was != now]


def _arguments(of: Input) -> dict[str, str]:
    """The arguments with which an input was declared, as texts; those that may not change."""
    return {
        "columns": ", ".join(f"{column.name!r} {column.type}" for column in of.columns),
        "time": "of arrival" if of.arrives else repr(of.time),
        "sequence": repr(tuple(name for name in of.sequence if name != NUMBER_OF_ARRIVAL)),
        "lateness": repr(format_duration(timedelta(microseconds=of.lateness)) or "0 seconds"),
        "time_zone": repr(of.time_zone),
    }
