"""The subscriptions of a host, and the deliveries to them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Event

import pyarrow as pa

from cepheid.errors import PatternError, SchemaError, StoreError
from cepheid.hosts.durable.host import DurableHost
from cepheid.hosts.durable.routing.condition import joined_columns
from cepheid.hosts.durable.routing.line import Line, Progress
from cepheid.hosts.durable.routing.outlet import Outlet
from cepheid.hosts.durable.routing.running import Given, InputOf, MakeSender, Running, sender_of
from cepheid.hosts.durable.routing.stored import (
    Changed,
    check_name,
    dead_numbers,
    mark_for_sending,
    remove,
    save,
    stored_subscriptions,
    to_send_again,
)
from cepheid.hosts.durable.routing.subscription import Status, Subscription, differences
from cepheid.hosts.durable.routing.table import TableWriter
from cepheid.hosts.durable.routing.targets import target_of

_BETWEEN = 0.25
"""Seconds between two transactions that store what was delivered, while the host has other things to do."""
_INLINE = 0.25
"""Seconds for which the host's thread writes tables at a time."""
_AGAIN = 1.0
"""Seconds until a table is written again after that has failed."""
_PATIENCE = 2.0
"""Seconds for which the host waits for attempts to end, when it stops deliveries."""
_HANGS = "the attempt during which this delivery was stopped has not ended"


class Routing:
    """Delivers what a host finds. All methods are called by the thread of the host; each subscriber has a thread of its
    own beside it, so that one that hangs stops nobody. Tables in the store are written by the host's thread itself.
    """

    def __init__(self, host: DurableHost, make_sender: MakeSender) -> None:
        self._host = host
        self._make_sender = make_sender
        self._subscriptions = stored_subscriptions(host)
        self._given: dict[str, Given] = {}
        self._running: dict[str, Running] = {}
        self._ending: dict[str, Running] = {}
        """Deliveries that were stopped. As long as one is here, no other one of its name is started."""
        self._tables: dict[str, TableWriter] = {}
        self._seen: tuple[int, ...] = ()
        """The numbers of the deployments whose columns the subscriptions have."""
        self._waiting: set[str] = set()
        self._progressed = Event()
        self._stored_at = 0.0
        self._looks_for_resent = True

    @property
    def subscriptions(self) -> Mapping[str, Subscription]:
        return self._subscriptions

    @property
    def delivered_up_to(self) -> int:
        """The number of the last row that all subscriptions have handled. Later rows must stay in the outbox."""
        return min((one.delivered for one in self._subscriptions.values()), default=self._host.sent)

    def add(self, given: Subscription, function: Given | None) -> None:
        """Adds a subscription. If it is there already, with the same arguments, only the function is another one.

        Raises:
            SchemaError: there is one of this name with other arguments.
        """
        known = self._subscriptions.get(given.name)
        if known is not None and (faults := differences(known, given)):
            raise SchemaError(
                f"subscription {given.name!r} is there already, with {'; '.join(faults)}. Unsubscribe it first"
            )
        if known is None:
            self._save([Changed(given)])
        if function is not None:
            self._given[given.name] = function
        if function is not None or given.name in self._waiting:
            self._stop(given.name)

    def remove(self, name: str) -> None:
        """Removes a subscription and its dead letters.

        Raises:
            SchemaError: no subscription has this name.
        """
        check_name(name, self._subscriptions)
        self._stop(name)
        remove(self._host, name)
        del self._subscriptions[name]
        self._given.pop(name, None)
        if name in self._ending:
            self._ending[name].is_wanted = False

    def resend(self, name: str, numbers: tuple[int, ...] | None) -> int:
        """Marks dead letters of the subscription, by default all, to be sent again. Returns how many.

        Raises:
            SchemaError: there is no such subscription, or it has no dead letters of these numbers.
        """
        check_name(name, self._subscriptions)
        self._store()
        dead = dead_numbers(self._host, name)
        wanted = dead if numbers is None else [*numbers]
        if missing := [number for number in wanted if number not in dead]:
            known = ", ".join(map(str, dead)) or "none"
            raise SchemaError(f"subscription {name!r} has no dead letter {missing[0]}. It has: {known}")
        mark_for_sending(self._host, name, wanted)
        self._looks_for_resent = True
        return len(wanted)

    def deliver(self, wait: float) -> bool:
        """Delivers for at most `wait` seconds, or until everything that was found is delivered or given up; returns
        whether it is.

        Raises:
            StoreError: what was delivered cannot be stored; it will be delivered again, or stored by a later call.
        """
        until = time.monotonic() + wait
        while True:
            self._progressed.clear()
            self._start()
            is_done = self._deliver_once()
            now = time.monotonic()
            if is_done or now >= until:
                if wait or now - self._stored_at >= _BETWEEN:
                    self._store()
                return is_done
            if now - self._stored_at >= _BETWEEN:
                self._store()
            self._progressed.wait(min(until - now, _BETWEEN))

    def _deliver_once(self) -> bool:
        """Delivers what the host's thread delivers, and wakes the other threads. Returns whether nothing is left."""
        sent, until = self._host.sent, time.monotonic() + _INLINE
        is_done = self._ending.keys().isdisjoint(self._subscriptions)
        for writer in self._tables.values():
            if writer.due <= time.monotonic():
                self._write_table(writer, sent, until)
            is_done = is_done and writer.is_done(sent)
        for running in self._running.values():
            is_done = running.reach(sent, lambda: time.monotonic() > until) and is_done
        return is_done

    def _write_table(self, writer: TableWriter, sent: int, until: float) -> None:
        while True:
            try:
                change = writer.step(sent)
            except StoreError as error:
                writer.failed(str(error), time.monotonic() + _AGAIN)
                self._save([Changed(writer.given)])  # if that fails, too, it is not only the table
                return
            if change is not None:
                self._subscriptions[change.subscription.name] = change.subscription
            if writer.is_done(sent) or time.monotonic() > until:
                return

    def progress(self, name: str) -> int:
        """The number of the last row of the outbox that was handled, whether or not that is stored."""
        if name in self._running:
            return self._running[name].line.progress.through
        return self._tables[name].given.delivered if name in self._tables else self._subscriptions[name].delivered

    def close(self) -> None:
        """Ends all deliveries, and stores what they have done. An attempt that hangs is left alone: when it ends, its
        target is closed. The next host sends its letter again.
        """
        self._end([*self._running])
        with suppress(StoreError):  # then it is delivered again
            self._store()

    # Starting and storing

    def _start(self) -> None:
        """Starts what is not running, and takes dead letters that are to be sent again."""
        self._join_columns()
        for name, given in [*self._subscriptions.items()]:
            if name in self._ending:
                if self._hangs(name):
                    self._note(given, "failing", _HANGS)
            elif name not in self._running and name not in self._tables and name not in self._waiting:
                self._start_one(given)
        if self._looks_for_resent:
            for name, letters in to_send_again(self._host).items():
                if name in self._running:
                    self._running[name].line.send_again(letters)
                elif name in self._tables:
                    self._tables[name].send_again(letters)
            self._looks_for_resent = False

    def _start_one(self, given: Subscription) -> None:
        """Starts a delivery; if that is not possible, the subscription waits, and has the problem."""
        started = replace(given, problem=None) if given.status == "waiting" else given
        try:
            target, outlet = target_of(given.to), Outlet(self._host.read, given)
            if target.kind == "table":
                writer = TableWriter(self._host, started, outlet, target.place)
                writer.make()
                self._tables[given.name] = writer
                return
            own = self._given.get(given.name)
            sender = sender_of(given, target, own, self._make_sender)
        except (SchemaError, PatternError, StoreError) as error:
            self._wait(given, str(error))
            return
        line, has_thread = Line(started, outlet, sender), not isinstance(own, InputOf)
        self._running[given.name] = Running(line, given.name, self._progressed, has_thread=has_thread)

    def _stop(self, name: str) -> None:
        """Ends a delivery, and stores what it has done. The next one goes on from there."""
        self._waiting.discard(name)
        self._looks_for_resent = True
        if name in self._running:
            self._end([name])
        self._store()
        self._tables.pop(name, None)

    def _end(self, names: Sequence[str]) -> None:
        """Ends deliveries, and waits for the attempts that are being made; but not for long, as one may hang."""
        ending = {name: self._running.pop(name) for name in names}
        self._ending |= ending
        for running in ending.values():
            running.stop()
        until = time.monotonic() + _PATIENCE
        for running in ending.values():
            running.join(until - time.monotonic())

    def _hangs(self, name: str) -> bool:
        return name in self._ending and not self._ending[name].has_ended

    def _wait(self, given: Subscription, problem: str) -> None:
        self._waiting.add(given.name)
        self._note(given, "waiting", problem)

    def _note(self, given: Subscription, status: Status, problem: str) -> None:
        after = replace(given, status=status, problem=problem)
        if after != given:
            self._save([Changed(after)])

    def _store(self) -> None:
        """Stores what was delivered and given up since the last call."""
        self._stored_at = time.monotonic()
        stale = [one.given for one in self._tables.values() if one.given != self._subscriptions[one.given.name]]
        self._save([Changed(given) for given in stale])
        ended = [name for name, one in self._ending.items() if one.has_ended]
        moved = {**self._running, **self._ending}
        self._store_progress({name: one.line for name, one in moved.items() if one.is_wanted})
        for name in ended:
            del self._ending[name]
            self._looks_for_resent = True

    def _store_progress(self, lines: Mapping[str, Line]) -> None:
        done: list[tuple[Line, Progress, Changed]] = []
        for name, line in lines.items():
            progress, before = line.progress, self._subscriptions[name]
            status: Status = "failing" if progress.is_failing else "active"
            after = replace(before, delivered=progress.through, status=status, problem=progress.problem)
            if self._hangs(name):
                after = replace(after, status="failing", problem=_HANGS)
            if after != before or progress.dead or progress.sent_again:
                done.append((line, progress, Changed(after, progress.dead, progress.sent_again)))
        self._save([change for _, _, change in done])
        for line, progress, _ in done:
            line.stored(progress)

    def _save(self, changes: list[Changed]) -> None:
        if changes:
            with self._host.changing() as transaction:
                save(transaction, changes)
            self._subscriptions |= {change.subscription.name: change.subscription for change in changes}

    def _join_columns(self) -> None:
        """Gives the subscriptions the columns of patterns that were deployed since."""
        seen = tuple(one.deployment.number for one in self._host.running)
        if seen == self._seen:
            return
        for name, given in [*self._subscriptions.items()]:
            schemas = [one.message_schema for one in self._host.running if given.covers(one.deployment.name)]
            columns, faults = joined_columns([given.columns, *schemas])
            if faults:
                self._stop(name)
                self._wait(self._subscriptions[name], "; ".join(faults))
            elif not columns.equals(given.columns):
                self._widen(name, columns)
        self._seen = seen

    def _widen(self, name: str, columns: pa.Schema) -> None:
        """Gives the subscription these columns. If its condition does not fit them, it waits."""
        if name in self._tables:
            self._stop(name)
        after = replace(self._subscriptions[name], columns=columns)
        self._save([Changed(after)])
        if name in self._running:
            try:
                self._running[name].line.read_by(Outlet(self._host.read, after))
            except PatternError as error:
                self._stop(name)
                self._wait(self._subscriptions[name], str(error))
