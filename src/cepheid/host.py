"""open_host: a host whose state survives crashes, for services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Self

from cepheid.detect import arrow_table
from cepheid.errors import SchemaError
from cepheid.events.time import microseconds
from cepheid.hosts.durable.figures import HostFigures, figures_of
from cepheid.hosts.durable.host import DurableHost, Fed, Old
from cepheid.hosts.durable.open_store import open_store, restore
from cepheid.hosts.durable.state import Deployment, Input, MatchesOf, Position
from cepheid.hosts.durable.tables import slug_of
from cepheid.lang.documents import AnyPattern
from cepheid.plan.lifted import OutputName
from cepheid.plan.limits import Limits
from cepheid.requests.arguments import (
    checked_lateness,
    checked_name,
    checked_names,
    checked_nulls,
    checked_outputs,
    checked_zone,
    time_of,
)
from cepheid.requests.request import Nulls, instant_of

if TYPE_CHECKING:
    import pyarrow as pa


def open_host(url: str) -> Host:
    """Opens the store at `url`, or makes it, and continues where it stopped.

    Args:
        url: file:///var/lib/alerts (a folder), sqlite:///alerts.db, duckdb:///alerts.duckdb or postgresql:///alerts.
            For SQLite and DuckDB, the path comes after three slashes: sqlite:///alerts.db is in the current folder, and
            sqlite:////var/alerts.db is /var/alerts.db. The folder of file:// is always absolute.

    Raises:
        StoreError: the store cannot be opened, is another program's, or another host is writing to it.
        SnapshotError: its state is damaged.
    """
    return Host(DurableHost(open_store(url)))


def restore_host(backup: str | Path, url: str) -> None:
    """Makes a store at `url` from what `Host.backup` has written on a store of the same kind.

    Raises:
        StoreError: there is a store at the URL already, or the backup is none, or is damaged.
    """
    restore(Path(backup), url)


class Host:
    """Finds deployed patterns in the events that are fed, and stores all of its state with each call: what a call has
    returned from survives a crash, and an interrupted call has done nothing.
    """

    def __init__(self, host: DurableHost) -> None:
        """Use `open_host`."""
        self._host = host

    @property
    def inputs(self) -> Mapping[str, Input]:
        """The inputs by name; the `position` of each says where to read on in its source."""
        return self._host.inputs

    def input(
        self,
        name: str,
        schema: object,
        *,
        time: str,
        sequence: str | Sequence[str] | None = None,
        lateness: timedelta | str = "0 seconds",
        time_zone: str = "UTC",
        nulls: Nulls = "error",
        keep: timedelta | str = "0 seconds",
    ) -> None:
        """Declares a source of events. A repeated call with the same arguments does nothing.

        Args:
            schema: The events' columns: a pyarrow schema, or any table that `feed` takes, whose rows are ignored.
            lateness: How far an event may be before the latest one; an earlier one is late. With "0 seconds" and a
                `sequence`, events come in order, and each is matched when it comes.
            keep: For how long events are kept, so that `deploy` can take them with `since`.

        The other arguments are as in `detect`.

        Raises:
            SchemaError: an argument is wrong, or there is an input of this name with other arguments.
        """
        import pyarrow as pa

        faults: list[str] = []
        allowed = checked_lateness(lateness, faults) or timedelta(0)
        given = Input(
            name=checked_name("name", name, faults),
            columns=schema if isinstance(schema, pa.Schema) else arrow_table(schema).schema,
            time=checked_name("time", time, faults),
            sequence=() if sequence is None else checked_names("sequence", sequence, faults),
            lateness=allowed // timedelta(microseconds=1),
            time_zone=checked_zone(time_zone, faults) or "UTC",
            nulls=checked_nulls(nulls, faults),
            keep=(checked_lateness(keep, faults, "keep") or timedelta(0)) // timedelta(microseconds=1),
        )
        missing = [column for column in (given.time, *given.sequence) if column not in given.columns.names]
        faults += [f"the events have no column {column!r}" for column in missing]
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
        limits: Limits | None = None,
        since: datetime | str | None = None,
        old: Old | None = None,
    ) -> Deployment:
        """Deploys a pattern: it takes the events that are fed from now on.

        Args:
            input: The name of an input; or `MatchesOf`, for the matches of deployed patterns.
            promote: Column → SQL over the events taken so far, as in {"state": "login.State"}: further columns of the
                table of open partial matches.
            since: Kept events from this time on are taken first.
            old: What becomes of what is open of the version that runs: "drain" lets it go on, but starts nothing more;
                "drop" forgets it. Needed where another version runs.

        The other arguments are as in `detect`.

        Raises:
            PatternError, SchemaError: the pattern does not fit the events, or has conditions in Python, which cannot be
                stored; the message has all problems, and nothing has changed.
        """
        faults: list[str] = []
        deployment = Deployment(
            number=0,
            pattern=pattern,
            version=pattern.version or "1",
            input=input,
            key=() if key is None else checked_names("key", key, faults),
            columns=None if columns is None else checked_names("columns", columns, faults),
            measures=measures,
            promoted=promote,
            outputs=checked_outputs(outputs, faults),
            limits=limits or Limits(),
            slug=slug_of(pattern.name),
        )
        if faults:
            raise SchemaError("\n".join(faults))
        from_ = None if since is None else self._instant("since", since, input)
        return self._host.deploy(deployment, since=from_, old=old)

    def retire(self, name: str, *, how: Old) -> None:
        """Ends the running version of a pattern. With "drain" it starts nothing more, and goes on until nothing of it
        is open; with "drop" what is open of it is forgotten. Its tables stay.

        Raises:
            SchemaError: no pattern of this name runs.
        """
        self._host.retire(name, how)

    def feed(self, events: object, *, input: str, position: Position | None = None) -> Fed:  # noqa: A002
        """Processes events and stores what follows from them, in one transaction.

        Args:
            events: Any table that `detect` takes in process.
            position: Where to read on in the source after these events: a number, a number for each partition, or a
                name after which to read on, such as that of a file, in the order of names. If the host has stored the
                events already, nothing happens, and the result says so.

        Raises:
            EventError: some of the events are stored already, or cannot be ordered.
            ConditionError, LimitExceeded, SkipError: as `detect`.
            StoreError: the transaction failed. After any error the host is as before the call.
        """
        return self._host.feed(arrow_table(events), input, position)

    def advance_time(self, time: datetime | str, *, input: str | None = None) -> Fed:  # noqa: A002
        """Advances the time of an input, or of all inputs: events up to `time` are late from now on, and deadlines up
        to it expire. An earlier time than before has no effect. A time without a zone is read in that of the input.
        """
        names = [*self._host.inputs] if input is None else [input]
        return self._host.advance_time({name: self._instant("time", time, name) for name in names})

    def _instant(self, argument: str, given: datetime | str, source: object) -> int:
        """Microseconds. A time without a zone is read in that of the input."""
        known = self._host.inputs.get(source) if isinstance(source, str) else None
        zone = "UTC" if known is None else known.time_zone
        return microseconds(instant_of(time_of(argument, given), zone, argument=argument))

    def sql(self, query: str) -> pa.Table:
        """The result of a query over the host's tables, as an Arrow table. The query can change nothing.

        Raises:
            StoreError: the database refuses it.
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
        return figures_of(self._host)

    def close(self) -> None:
        """Gives up the store. Everything is stored already."""
        self._host.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
