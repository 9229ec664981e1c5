"""A host that another process runs."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from cepheid.errors import LimitExceeded, StoreError
from cepheid.hosts.durable.documents import deployment_from_json, input_from_json
from cepheid.hosts.durable.host import Fed, Old
from cepheid.hosts.durable.remote.frames import (
    CHUNK,
    MOST_REQUEST,
    ProtocolError,
    receive,
    receive_json,
    send,
)
from cepheid.hosts.durable.remote.messages import failure_from_json, request_to_json
from cepheid.hosts.durable.remote.place import check_owner, socket_of
from cepheid.hosts.durable.state import Deployment, Input, MatchesOf, Position
from cepheid.lang.documents import AnyPattern
from cepheid.plan.lifted import OutputName, RowsPer
from cepheid.plan.limits import Limits
from cepheid.requests.request import Nulls


def connect(url: str) -> RemoteHost | None:
    """The host that another process runs on the store at `url`; None if none runs.

    Raises:
        StoreError: one runs, and this user may not talk to it; or another user has made something in its place.
    """
    path = socket_of(url)
    try:
        check_owner(path.parent)
        return RemoteHost(_connected(path))
    except (FileNotFoundError, ConnectionRefusedError):  # the latter: a host was killed, and left its socket
        return None
    except OSError as error:
        raise StoreError(f"the host's socket {path} cannot be used: {error.strerror}") from error


def _connected(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(path))
    except BaseException:
        connection.close()
        raise
    return connection


class RemoteHost:
    """The methods are as those of `Host`, and raise the same errors; LimitExceeded if a request is too large."""

    def __init__(self, connection: socket.socket) -> None:
        """Use `connect`."""
        self._connection = connection

    def input(
        self,
        name: str,
        schema: pa.Schema,
        *,
        time: str,
        sequence: str | Sequence[str] | None = None,
        lateness: timedelta | str = "0 seconds",
        time_zone: str = "UTC",
        nulls: Nulls = "error",
        keep: timedelta | str = "0 seconds",
    ) -> None:
        given = {"name": name, "schema": schema, "time": time, "sequence": sequence, "lateness": lateness}
        self._ask("input", {**given, "time_zone": time_zone, "nulls": nulls, "keep": keep})

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
        given: dict[str, Any] = {
            "pattern": pattern,
            "input": input,
            "key": key,
            "columns": columns,
            "measures": measures,
        }
        given |= {"promote": promote, "outputs": outputs, "rows_per": rows_per, "limits": limits}
        given |= {"since": since, "old": old}
        return deployment_from_json(self._ask("deploy", given))

    def retire(self, name: str, *, how: Old) -> None:
        self._ask("retire", {"name": name, "how": how})

    def advance_time(self, time: datetime | str, *, input: str | None = None) -> None:  # noqa: A002
        self._ask("advance_time", {"time": time, "input": input})

    def subscribe(
        self,
        name: str,
        *,
        to: str,
        pattern: str | Sequence[str] = "*",
        where: str | None = None,
        after: int | None = None,
        secret: str | None = None,
        timeout: timedelta | str = "10 seconds",
        attempts: int = 8,
        pause: timedelta | str = "1 second",
    ) -> None:
        given: dict[str, Any] = {"name": name, "to": to, "pattern": pattern, "where": where, "after": after}
        given |= {"secret": secret, "timeout": timeout, "attempts": attempts, "pause": pause}
        self._ask("subscribe", given)

    def unsubscribe(self, name: str) -> None:
        self._ask("unsubscribe", {"name": name})

    def resend(self, name: str, numbers: Sequence[int] | None = None) -> int:
        return int(self._ask("resend", {"name": name, "numbers": numbers})["letters"])

    @property
    def inputs(self) -> dict[str, Input]:
        inputs = [input_from_json(one) for one in self._ask("inputs", {})["inputs"]]
        return {one.name: one for one in inputs}

    def feed(self, events: pa.Table, *, input: str, position: Position | None = None) -> Fed:  # noqa: A002
        """The result does not have the rows found."""
        given = self._ask("feed", {"events": events, "input": input, "position": position})
        return Fed(skipped=bool(given["skipped"]), rows={})

    def sql(self, query: str) -> pa.Table:
        self._ask("sql", {"query": query})
        with _understood():
            return pa.ipc.open_stream(pa.py_buffer(b"".join(self._chunks()))).read_all()

    def backup(self, path: str | Path) -> None:
        self._ask("backup", {"path": str(Path(path).absolute())})

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _chunks(self) -> Iterator[bytes]:
        while chunk := receive(self._connection, CHUNK):
            yield chunk

    def _ask(self, request: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        message = json.dumps(request_to_json(request, arguments)).encode()
        if len(message) > MOST_REQUEST:
            instead = "Feed fewer events at once" if request == "feed" else "Ask for less at once"
            raise LimitExceeded(
                f"{request}: a request to the host that runs has at most {MOST_REQUEST:,} bytes, and this one "
                f"{len(message):,}. {instead}"
            )
        with _understood():
            send(self._connection, message)
            answer = receive_json(self._connection, MOST_REQUEST)
        if answer is None:
            raise StoreError("the host has ended before it answered: ask again, to see whether the change was made")
        if not answer["ok"]:
            raise failure_from_json(answer)
        result: dict[str, Any] = answer["result"]
        return result


@contextmanager
def _understood() -> Iterator[None]:
    """A connection that breaks is an error of the store."""
    try:
        yield
    except (OSError, ProtocolError, pa.ArrowInvalid) as error:
        raise StoreError(f"the connection to the host broke: {error}. Ask again") from error
