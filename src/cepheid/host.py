"""open_host: a host whose state survives crashes, for services."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self
from weakref import WeakSet

from cepheid.detect import arrow_table
from cepheid.errors import SchemaError, StoreError
from cepheid.events.time import microseconds
from cepheid.hosts.durable.arguments import (
    check_one_pattern,
    check_position,
    checked_columns,
    checked_old,
    checked_source,
    columns_faults,
)
from cepheid.hosts.durable.figures import HostFigures, figures_of
from cepheid.hosts.durable.host import DurableHost, Fed, Old
from cepheid.hosts.durable.open_store import open_store, restore
from cepheid.hosts.durable.retention import Retention
from cepheid.hosts.durable.routing.arguments import checked_subscription
from cepheid.hosts.durable.routing.reach import Reach
from cepheid.hosts.durable.routing.routing import Routing
from cepheid.hosts.durable.routing.running import Given, InputOf
from cepheid.hosts.durable.routing.subscription import Letter
from cepheid.hosts.durable.state import Deployment, Input, MatchesOf, Position
from cepheid.hosts.durable.tables import slug_of
from cepheid.hosts.durable.workers.places import places_for
from cepheid.lang.arguments import brief
from cepheid.lang.documents import AnyPattern
from cepheid.lang.duration import parse_duration
from cepheid.lang.known_arguments import known_arguments, known_calls
from cepheid.plan.lifted import OutputName, RowsPer
from cepheid.plan.limits import Limits
from cepheid.requests.arguments import (
    checked_lateness,
    checked_limits,
    checked_memory,
    checked_name,
    checked_names,
    checked_nulls,
    checked_outputs,
    checked_rows_per,
    checked_workers,
    checked_zone,
    cores,
    time_of,
)
from cepheid.requests.arrival import ARRIVAL, ARRIVED, NUMBER_OF_ARRIVAL, Arrival, advanced_time, check_names
from cepheid.requests.request import Nulls, instant_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Host", "InputOf", "Letter", "MatchesOf", "open_host", "restore_host"]


@known_arguments()
def open_host(
    url: str,
    *,
    retain: timedelta | str | None = None,
    retain_rows: int | None = None,
    workers: int | Literal["auto"] = 1,
    worker_memory: int | str | None = None,
    allow: Iterable[str] | None = (),
    kafka_options: Mapping[str, str] | None = None,
) -> Host:
    """Opens the store at `url`, or makes it, and continues where it stopped.

    Args:
        url: file:///var/lib/alerts (a folder), sqlite:///alerts.db, duckdb:///alerts.duckdb or postgresql:///alerts.
            For SQLite and DuckDB, the path comes after three slashes: sqlite:///alerts.db is in the current folder, and
            sqlite:////var/alerts.db is /var/alerts.db. The folder of file:// is always absolute.
        retain: For how long, in event time, matches, timeouts and late events are kept in their tables, and rows in the
            outbox; None: for ever.
        retain_rows: How many of them each table keeps, and how many rows the outbox keeps; None: all. Rows of the
            outbox that a subscription has not delivered are always kept.
        workers: How many processes run the deployed patterns, each pattern in one of them. 1: this process alone;
            "auto": one for each core. This process feeds them, and does all that concerns the store.
        worker_memory: The memory that each of several workers may use for its patterns, as in "2 GB" or a number of
            bytes. A feed that needs more fails with LimitExceeded and changes nothing. None: as much as there is.
        allow: What subscriptions may reach: functions as "module:function", the origins of web hooks as
            "https://hooks.example.com", Kafka's servers as "kafka://host:port", other hosts by the URLs of their
            stores; and networks, as "10.0.0.0/8", if web hooks may be at addresses that are not public. None: accept
            all subscriptions, and deliver none of these.
        kafka_options: Options of Kafka's client for topics as targets, such as {"security.protocol": "SSL"}.

    Rows that are no longer to be kept are removed in groups, when they are a tenth of what is kept.

    Raises:
        SchemaError: an argument is wrong.
        StoreError: the store cannot be opened, is another program's, or another host is writing to it.
        SnapshotError: its state is damaged.
        WorkerFailed: no worker process can be started.
    """
    faults: list[str] = []
    retention = _checked_retention(retain, retain_rows, faults)
    asked = checked_workers(workers, faults)
    memory = None if worker_memory is None else checked_memory(worker_memory, faults)
    if memory is not None and asked == 1:
        faults.append("worker_memory: it bounds several workers, as with workers=2; leave it out")
    if faults:
        raise SchemaError("\n".join(faults))
    reach = Reach(allow, kafka_options or {}, open_host, own=url)
    host = DurableHost(open_store(url), retention, places_for(cores() if asked == "auto" else asked, memory))
    try:
        return Host(host, reach)
    except BaseException:
        host.close()
        raise


def _text(given: object) -> str:
    """The text; an empty one in place of anything else."""
    return given if isinstance(given, str) else ""


def _columns_of(schema: object) -> pa.Schema:
    """The columns of a schema or a table.

    Raises:
        SchemaError: it is something else.
    """
    import pyarrow as pa

    if isinstance(schema, str):
        raise SchemaError(f"schema: a pyarrow schema, or a table with its columns, is expected, got {brief(schema)}")
    return schema if isinstance(schema, pa.Schema) else arrow_table(schema).schema


def _checked_retention(age: timedelta | str | None, rows: int | None, faults: list[str]) -> Retention | None:
    """The arguments `retain` and `retain_rows`; None if everything is kept."""
    length = None if age is None else checked_lateness(age, faults, "retain")
    if rows is not None and (type(rows) is not int or rows < 1):
        faults.append(f"retain_rows is a whole number from 1, got {rows!r}")
    if length is None and rows is None:
        return None
    return Retention(None if length is None else length // timedelta(microseconds=1), rows)


@known_arguments()
def restore_host(backup: str | Path, url: str) -> None:
    """Makes a store at `url` from what `Host.backup` has written on a store of the same kind.

    Raises:
        StoreError: there is a store at the URL already, or the backup is none, or is damaged.
    """
    restore(Path(backup), url)


_OPEN: WeakSet[Host] = WeakSet()
"""The hosts to be closed when the program ends."""


@atexit.register
def _close_all(process: int = os.getpid()) -> None:
    """Closes what the program has left open: threads of subscriptions would run while Python takes itself down, and
    DuckDB then prints pages about its own objects. A forked process leaves the hosts to the first one.
    """
    if os.getpid() == process:
        for host in [*_OPEN]:
            with suppress(StoreError):
                host.close()


@known_calls
class Host:
    """Finds deployed patterns in the events that are fed, and stores all of its state with each call: what a call has
    returned from survives a crash, and an interrupted call has done nothing.
    """

    def __init__(self, host: DurableHost, reach: Reach) -> None:
        """Use `open_host`."""
        self._durable = host
        self._reach = reach
        self._routing = Routing(host, reach.sender)
        host.first_undelivered = lambda: self._routing.delivered_up_to + 1
        self._is_closed = False
        _OPEN.add(self)

    @property
    def _host(self) -> DurableHost:
        """
        Raises:
            StoreError: it is closed.
        """
        if self._is_closed:
            raise StoreError("this host is closed: open_host opens its store again")
        return self._durable

    @property
    def inputs(self) -> Mapping[str, Input]:
        """The inputs by name; the `position` of each says where to read on in its source."""
        return self._host.inputs

    def input(
        self,
        name: str,
        schema: object,
        *,
        time: str | Arrival,
        sequence: str | Sequence[str] | None = None,
        lateness: timedelta | str = "0 seconds",
        time_zone: str = "UTC",
        nulls: Nulls = "error",
        keep: timedelta | str = "0 seconds",
    ) -> None:
        """Declares a source of events. A repeated call may change `nulls` and `keep`, and nothing else.

        Args:
            schema: The events' columns: a pyarrow schema, or any table that `feed` takes, whose rows are ignored.
            time: The column of event times, or `cepheid.ARRIVAL`: the time of an event is that of its arrival, which
                `feed` gives or the clock of the host's machine, and which the host stores with the event.
            lateness: How far an event may be before the latest one; an earlier one is late. With "0 seconds" and a
                `sequence`, events come in order, and each is matched when it comes. Then an event of another feed is
                late, too, if it has the time and sequence of one before it of the same key.
            keep: For how long events are kept, so that `deploy` can take them with `since`.

        The other arguments are as in `detect`.

        Raises:
            SchemaError: an argument is wrong, or there is an input of this name with other arguments.
        """
        faults: list[str] = []
        allowed = checked_lateness(lateness, faults) or timedelta(0)
        arrives, ordered_by = time is ARRIVAL, () if sequence is None else checked_names("sequence", sequence, faults)
        given = Input(
            name=_text(name),
            columns=_columns_of(schema),
            time=ARRIVED if arrives else checked_name("time", time, faults),
            sequence=(*[NUMBER_OF_ARRIVAL] * arrives, *ordered_by),
            lateness=allowed // timedelta(microseconds=1),
            time_zone=checked_zone(time_zone, faults) or "UTC",
            nulls=checked_nulls(nulls, faults),
            keep=(checked_lateness(keep, faults, "keep") or timedelta(0)) // timedelta(microseconds=1),
        )
        if not given.name:
            faults.append(f"name: an input needs a name, got {brief(name)}")
        if arrives:
            check_names(given.columns.names)
            faults += ["lateness: with time=ARRIVAL no event is late; leave it out"] * bool(allowed)
        faults += columns_faults(given.event_columns, given.time, given.sequence, given.time_zone)
        if faults:
            raise SchemaError("\n".join(faults))
        self._host.add_input(given)

    def deploy(
        self,
        pattern: AnyPattern,
        *,
        input: str | MatchesOf,  # noqa: A002 - the word for it
        key: str | Sequence[str] | None = None,
        columns: str | Sequence[str] | None = None,
        measures: Mapping[str, str] | None = None,
        promote: Mapping[str, str] | None = None,
        outputs: OutputName | Sequence[OutputName] = "matches",
        rows_per: RowsPer = "match",
        limits: Limits | None = None,
        since: datetime | str | None = None,
        old: Old | None = None,
    ) -> Deployment:
        """Deploys a pattern: it takes the events that are fed from now on.

        Args:
            input: The name of an input; or `MatchesOf`, for the matches of deployed patterns.
            promote: Column → SQL over the events taken so far, as in {"state": "login.State"}: further columns of the
                table of open partial matches. Attributes that conditions equate (`x = a.x`) are added, as `a_x`.
            rows_per: "event": the tables have a row for each event of each match, with (match_id, position) as the key.
                Subscribers get one message for each match, with its events in a list. It is the same for all versions.
            since: Kept events from this time on are taken first.
            old: What becomes of what is open of earlier versions: "drain" lets it go on, but starts nothing more;
                "drop" forgets it. Needed where another version runs.

        The other arguments are as in `detect`.

        Raises:
            PatternError, SchemaError: the pattern does not fit the events, or has conditions in Python, which cannot be
                stored; the message has all problems, and nothing has changed.
        """
        check_one_pattern(pattern)
        faults: list[str] = []
        names, asked, promoted = checked_columns(key, measures, promote, faults)
        deployment = Deployment(
            number=0,
            pattern=pattern,
            version=pattern.version or "1",
            input=checked_source(input, faults),
            key=names,
            columns=None if columns is None else checked_names("columns", columns, faults),
            measures=asked,
            promoted=promoted,
            outputs=checked_outputs(outputs, faults),
            rows_per=checked_rows_per(rows_per, faults),
            limits=Limits() if limits is None else checked_limits(limits, faults),
            slug=slug_of(pattern.name),
        )
        former = checked_old("old", old, faults)
        if faults:
            raise SchemaError("\n".join(faults))
        from_ = None if since is None else self._instant("since", since, input)
        return self._host.deploy(deployment, since=from_, old=former)

    def retire(self, name: str, *, how: Old) -> None:
        """Ends a pattern. With "drain" it starts nothing more, and goes on until nothing of it is open; with "drop"
        what is open of it is forgotten, also of versions that drain. Its tables stay.

        Raises:
            SchemaError: no version of the pattern runs, or drains and can be dropped.
        """
        faults: list[str] = []
        checked_old("how", how, faults)
        if faults:
            raise SchemaError("\n".join(faults))
        self._host.retire(name, how)

    def feed(
        self,
        events: object,
        *,
        input: str,  # noqa: A002
        position: Position | None = None,
        at: datetime | str | None = None,
    ) -> Fed:
        """Processes events and stores what follows from them, in one transaction.

        Args:
            events: Any table that `detect` takes in process.
            position: Where to read on in the source after these events: a number that counts events (each adds at
                least one), a number for each partition, or a name after which to read on, such as that of a file, in
                the order of names. If the host has stored the events already, nothing happens, and the result says so.
            at: The time of their arrival, for an input with `time=cepheid.ARRIVAL`; without it, now.

        Raises:
            SchemaError: the events have other columns than the input, or the position is of a wrong type.
            EventError: some of the events are stored already, or cannot be ordered.
            ConditionError, LimitExceeded, SkipError: as `detect`.
            StoreError: the transaction failed.
            WorkerFailed: a worker process has ended twice: a worker that ends is started again from the store once.

        After any error the host is as before the call.
        """
        check_position(position)
        arrived = None if at is None else self._instant("at", at, input)
        return self._host.feed(arrow_table(events), input, position, arrived)

    def advance_time(self, time: datetime | str | None = None, *, input: str | None = None) -> Fed:  # noqa: A002
        """Advances the time of an input, or of all inputs: events up to `time` are late from now on, and deadlines up
        to it expire. An earlier time than before has no effect. A time without a zone is read in the zone of the input.
        Without `time`, that of inputs with times of arrival advances to now.

        Raises:
            EventError: `time` is earlier than the time reached, of an input with times of arrival. Nothing has changed.
        """
        names = [*self._host.inputs] if input is None else [input]
        known = [self._host.inputs.get(name) for name in names]
        arriving = {one.name: one.least_arrival for one in known if one is not None and one.arrives}
        if time is None:
            if not arriving:
                raise SchemaError("time: say to which time; only an input with time=cepheid.ARRIVAL has a clock")
            return self._host.advance_time({name: advanced_time(None, least) for name, least in arriving.items()})
        until = {name: self._instant("time", time, name) for name in names}
        until |= {name: advanced_time(until[name], least) for name, least in arriving.items()}
        return self._host.advance_time(until)

    def _instant(self, argument: str, given: datetime | str, source: object) -> int:
        """Microseconds. A time without a zone is read in the zone of the input."""
        known = self._host.inputs.get(source) if isinstance(source, str) else None
        zone = "UTC" if known is None else known.time_zone
        return microseconds(instant_of(time_of(argument, given), zone, argument=argument))

    # Routing

    @property
    def subscriptions(self) -> pa.Table:
        """The subscriptions as rows: name, pattern, condition, target, delivered (the number in the outbox up to which
        it was delivered), status and problem. It is the table `subscriptions` of the store.
        """
        columns = "name, pattern, condition, target, delivered, status, problem"
        return self._host.read(f"SELECT {columns} FROM subscriptions ORDER BY name")  # noqa: S608 - a constant

    def subscribe(
        self,
        name: str,
        *,
        to: Given | str,
        pattern: str | Sequence[str] = "*",
        where: str | None = None,
        after: int | None = None,
        secret: str | None = None,
        timeout: timedelta | str = "10 seconds",
        attempts: int = 8,
        pause: timedelta | str = "1 second",
    ) -> None:
        """Sends what patterns find to a subscriber, in the order of the outbox. `deliver` does the sending. A repeated
        call with the same arguments does nothing, except that it gives the function again.

        Args:
            to: A function, which is called with each `Letter`; "module:function"; "https://host/path";
                "kafka://host:port/topic"; "table://name", a table in the same store; the store of another host with its
                input, as in "sqlite:///other.db#alerts", or `InputOf` if this program has that host open.
            pattern: The names of patterns; "*" for all, also those that are deployed later.
            where: A condition in SQL over the columns of the rows found: the keys, the measures, kind, match_start and
                so on. A column that a pattern does not have is NULL.
            after: The number in the outbox after which to begin. Default: what is found from now on.
            secret: "env:NAME", the environment variable with the key that signs what is sent to an HTTP endpoint.
            timeout: For one attempt.
            attempts: After so many a message becomes a dead letter.
            pause: Before the second attempt; each further pause is twice as long, up to a minute.

        Raises:
            PatternError, SchemaError: an argument is wrong, the host may not reach the target, or there is a
                subscription of this name with other arguments; the message has all problems.
        """
        given: dict[str, Any] = {
            "name": name,
            "to": to,
            "pattern": pattern,
            "where": where,
            "after": after,
            "secret": secret,
        }
        given |= {"timeout": timeout, "attempts": attempts, "pause": pause}
        self._routing.add(*checked_subscription(self._host, given, self._reach.refusal))

    def unsubscribe(self, name: str) -> None:
        """Ends a subscription, and forgets its dead letters.

        Raises:
            SchemaError: no subscription has this name.
        """
        self._routing.remove(name)

    def deliver(self, wait: timedelta | str = "30 seconds") -> bool:
        """Sends what was found to the subscribers; returns whether everything was delivered or has become a dead letter
        within the time `wait`. Subscriptions that are `waiting` do not count. What was not delivered goes on in threads
        until the host is closed, and is noted by the next call; so a program that feeds all the time calls
        `deliver("0 seconds")` after each feed.

        Raises:
            StoreError: the store fails; what could not be noted is delivered again.
        """
        return self._routing.deliver(parse_duration(wait, or_zero=True).total_seconds())

    @property
    def dead_letters(self) -> pa.Table:
        """The messages that were given up, as rows of the table `dead_letters` of the store."""
        return self._host.read("SELECT * FROM dead_letters ORDER BY subscription, number")

    def resend(self, name: str, numbers: Sequence[int] | None = None) -> int:
        """Lets `deliver` send dead letters of the subscription again, by default all; they are marked as out of order.
        Returns how many there are.

        Raises:
            SchemaError: there is no such subscription, or it has no dead letters of these numbers.
        """
        return self._routing.resend(name, None if numbers is None else tuple(numbers))

    @property
    def delivered_up_to(self) -> int:
        """The number up to which all subscribers have had the outbox; rows after it must stay in it."""
        return self._routing.delivered_up_to

    # Reading

    def sql(self, query: str) -> pa.Table:
        """The result of a query over the host's tables, as an Arrow table of at most 512 MiB. The query can change
        nothing.

        Raises:
            StoreError: the database refuses it, it takes more than a minute, or its result is larger.
        """
        return self._host.query(query)

    def backup(self, path: str | Path) -> None:
        """Writes all that is stored to a new file, from which `restore_host` makes a store. Feeds wait meanwhile.

        For SQLite and DuckDB the file is a database like that of the host, for PostgreSQL it is one of pg_dump; for
        files it is a folder.

        Raises:
            StoreError: there is something at the path already, or it cannot be written.
        """
        self._host.backup(Path(path))

    def figures(self) -> HostFigures:
        """Counts, watermarks and times of this host, for monitoring.

        Raises:
            StoreError: the outbox cannot be read.
        """
        return figures_of(self._host, self._routing)

    def close(self) -> None:
        """Ends all deliveries, and gives up the store. Everything else is stored already. Later calls are refused."""
        self._is_closed = True
        try:
            self._routing.close()
        finally:
            self._durable.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
