"""What a durable host has: the content of its store in memory, and the matchers of the patterns that run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from threading import RLock
from time import perf_counter

import pyarrow as pa

from cepheid.errors import SchemaError, SnapshotError, StoreError, in_pattern
from cepheid.families import known_family_of
from cepheid.hosts.durable.deployed import Deployed, EventTable, in_sequence
from cepheid.hosts.durable.state import BEFORE_ALL, Deployment, Input, MatchesOf
from cepheid.hosts.durable.step.screen import Screen
from cepheid.hosts.durable.store import HostStore, OpenPart, RowTable, Transaction
from cepheid.hosts.durable.tiers import sources_of, tier_table, upstream_first
from cepheid.hosts.durable.workers.places import Places
from cepheid.matchers.watermark import Reached
from cepheid.output.ids import Ids


class Current:
    """The inputs and deployments as they are now. A step changes them in a transaction; the store is the truth, and
    after an error in the middle of a step it is read again.
    """

    def __init__(self, store: HostStore, places: Places) -> None:
        """`places` is where the deployed patterns run.

        Raises:
            StoreError: the store cannot be read; it is closed.
        """
        self.store = store
        self.places = places
        self.inputs: dict[str, Input] = {}
        self.deployments: list[Deployment] = []
        """In the order of their numbers, retired ones too."""
        self.running: list[Deployed] = []
        """The deployments that run or drain, each after those whose matches it reads."""
        self.screens: dict[str, Screen] = {}
        """By input; made anew when the running deployments have changed."""
        self.sent = 0
        """The number of the last row in the outbox."""
        self.ids = Ids.SIPHASH
        self.commits = 0
        self.commit_seconds = 0.0
        self._is_whole = True
        """Whether this is what the store has."""
        self.lock = RLock()
        """Held by what changes this object: a query of a store that lists when asked reads it, too."""
        try:
            self.read()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the workers, and gives up the store."""
        self.places.close()
        self.store.close()

    @contextmanager
    def changing(self) -> Iterator[Transaction]:
        """A transaction. If it fails, this object becomes what the store has."""
        with self.lock:
            try:
                with self.store.transaction() as transaction:
                    yield transaction
                    started = perf_counter()
                self.commits += 1
                self.commit_seconds += perf_counter() - started
            except (StoreError, SnapshotError):
                self._is_whole = False  # the connection may be gone, so it is made anew when it is needed
                raise
            except BaseException:
                self.read()
                raise

    def ensure(self) -> None:
        """Reads the state anew after the store has failed, or a worker has ended.

        Raises:
            StoreError: the store still fails.
        """
        with self.lock:
            if not self._is_whole:
                self.store.reopen()
                self.read()
            elif not self.places.are_whole:
                self.read()

    def read(self) -> None:
        """Reads the whole state from the store."""
        inputs, self.deployments, self.sent, self.ids = self.store.load()
        self._is_whole = False
        self.places.renew()
        self.inputs = {one.name: one for one in inputs}
        self.running, self.screens = [], {}
        for deployment in self.deployments:
            if deployment.status == "retired":
                continue
            deployed = self.made(deployment)
            shard = self.store.shard(deployment.number)
            deployed.recover(shard, shard.head())
            self.running.append(deployed)
        for deployed in self.running:
            deployed.recovered()
            if self.store.lists_when_asked:
                deployed.relist()  # the store has no rows of it yet, or not all that have changed
        self.running = upstream_first(self.running)
        self._is_whole = True

    # What deployments read

    def sources_of(self, given: str | MatchesOf) -> set[str]:
        """The inputs that a deployment depends on."""
        return sources_of(given, self.deployments)

    def reached_by(self, given: str | MatchesOf) -> Reached:
        """How far time has advanced in what a deployment reads: the least over its inputs. A match may still be found
        at an instant that is not over, so a tier is before it.
        """
        reached = min(self.inputs[name].reached for name in self.sources_of(given))
        if isinstance(given, str) or reached.over:
            return reached
        return Reached(reached.time - 1)

    def table_of(self, given: str | MatchesOf, number: int | None = None) -> EventTable:
        """How the events of a deployment are read. With its number, it was deployed before: a tier keeps the columns
        that the matches of the patterns had then.
        """
        if isinstance(given, str):
            known = self.input(given)
            columns = in_sequence(known.columns.empty_table(), known.sequence, known.time_zone).schema
            return EventTable(columns, known.time, known.sequence, known.time_zone, known.nulls)
        if given.raw is not None:
            self.input(given.raw)
        if number is None:
            upstream = [one for one in self.running if one.deployment.name in given.patterns and is_running(one)]
        else:
            upstream = [one for name in given.patterns if (one := self.newest(name, number)) is not None]
        sources = [self.inputs[name] for name in sorted(self.sources_of(given))]
        return tier_table(given, upstream, sources, {one.name for one in self.deployments})

    def newest(self, name: str, before: int) -> Deployed | None:
        """The newest version of the pattern that was deployed before the deployment of this number, even if it has
        been retired since.
        """
        versions = [one for one in self.deployments if one.name == name and one.number < before]
        if not versions:
            return None
        running = [one for one in self.running if one.deployment == versions[-1]]
        return running[0] if running else self.made(versions[-1])

    def made(self, deployment: Deployment) -> Deployed:
        """A deployment that was made before. It does not run yet."""
        return self.places.deployed(deployment, self.table_of(deployment.input, deployment.number), self.ids)

    def new(self, deployment: Deployment) -> Deployed:
        """A new deployment, with the correlations of its pattern among the promoted columns. It does not run yet."""
        table = self.table_of(deployment.input)
        deployed = self.places.deployed(deployment, table, self.ids)
        if not (more := known_family_of(deployment.pattern).correlations(deployed.plan)):
            return deployed
        promoted = {**(deployment.promoted or {}), **more}
        deployed = self.places.deployed(replace(deployment, promoted=promoted), table, self.ids)
        deployed.correlated = tuple(more)
        return deployed

    def input(self, name: str) -> Input:
        if name not in self.inputs:
            known = ", ".join(self.inputs) or "none yet"
            raise SchemaError(f"there is no input {name!r}. The host has: {known}")
        return self.inputs[name]

    def time_zone_of(self, name: str, version: str) -> str:
        """The zone of the local times that a version of a pattern has, if its events have no zone."""
        (given,) = (one.input for one in self.deployments if (one.name, one.version) == (name, version))
        return self.inputs[min(self.sources_of(given))].time_zone

    # Queries

    def reader(self, *, lists_open: bool) -> Callable[[str], pa.Table]:
        """Gives the result of one query, as things are now."""
        made = self.store.reader if lists_open else self.store.own_reader
        if not self.store.lists_when_asked:
            return made()
        with self.lock:
            self.ensure()
            try:
                self._list_open(self.running if lists_open else ())
                return made()
            except BaseException:
                self._is_whole = False  # what was not listed counts as listed, so all is read anew
                raise

    def list_changed(self, deployed: Sequence[Deployed]) -> None:
        """Writes the rows of their open partial matches that have changed, unless the store lists when asked."""
        if not self.store.lists_when_asked:
            self._list_open(deployed)

    def _list_open(self, deployed: Sequence[Deployed]) -> None:
        with self.store.listing() as to:
            for some in _listed_together(deployed):
                with in_pattern(some[0].deployment.name):  # only those by themselves compute what may fail
                    changes = some[0].open_changes(some)
                each = zip(some, changes.keys, changes.counts.tolist(), strict=True)
                parts = [OpenPart(_open_table(one), one.deployment.version, keys, count) for one, keys, count in each]
                to.replace_open(changes.rows, parts)
                times = iter(changes.rows.column("wakeup").cast(pa.int64()).to_pylist())
                for one, part in zip(some, parts, strict=True):
                    one.wakeups.add(islice(times, part.rows))
                    reached = self.reached_by(one.deployment.input)
                    if reached != BEFORE_ALL and one.wakeups.expire(reached.time):
                        to.delete_expired(part.table, part.version, reached.time)


def _listed_together(deployed: Sequence[Deployed]) -> Iterator[list[Deployed]]:
    """Those that list open partial matches, divided into such whose rows are made at once."""
    found: dict[object, list[Deployed]] = {}
    for one in deployed:
        if one.open_table is not None:
            found.setdefault(one.lists_with, []).append(one)
    yield from found.values()


def _open_table(one: Deployed) -> RowTable:
    assert one.open_table is not None
    return one.open_table


def is_running(one: Deployed) -> bool:
    """Whether it neither drains nor has been retired."""
    return one.deployment.status == "running"
