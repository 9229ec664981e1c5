"""A host that answers on a socket, and whom it answers."""

from __future__ import annotations

import os
import re
import resource
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.durable.test_stores import events, prepared

from cepheid.errors import LimitExceeded, SchemaError, StoreError
from cepheid.host import Host
from cepheid.hosts.durable.remote.client import RemoteHost, connect
from cepheid.hosts.durable.remote.frames import MOST_REQUEST, receive_json, send_json
from cepheid.hosts.durable.remote.place import check_owner, socket_of
from cepheid.hosts.durable.remote.server import HostServer

T = TypeVar("T")


class Served:
    """A host that runs in this thread, while others ask it."""

    def __init__(self, url: str, host: Host, server: HostServer) -> None:
        self.url, self.host, self.server = url, host, server

    def asked(self, ask: Callable[[RemoteHost], T]) -> T:
        """The answer that a client gets."""
        with ThreadPoolExecutor(1) as threads, self._client() as client:
            answer = threads.submit(ask, client)
            while not answer.done():
                self.server.perform_changes(0.01)
            return answer.result()

    def _client(self) -> RemoteHost:
        client = connect(self.url)
        assert client is not None
        return client


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    url = f"sqlite:///{tmp_path}/alerts.db"
    with prepared(url) as host:
        host.feed(events("a", "b"), input="events")
        server = HostServer(socket_of(url), host)
        try:
            yield Served(url, host, server)
        finally:
            server.close()


def test_who_may_ask(served: Served) -> None:
    """Only the user who runs the host may open its socket."""
    path = socket_of(served.url)
    assert [one.stat().st_mode & 0o777 for one in (path, path.parent)] == [0o600, 0o700]
    assert served.asked(lambda host: host.sql("SELECT count(*) AS n FROM outbox")).to_pylist() == [{"n": 1}]


def test_folder_of_another_user(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks a host whose socket is in another user's folder, and none listens there; but root may ask all."""
    folder = socket_of(served.url).parent
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    for refused in (lambda: connect(served.url), lambda: HostServer(socket_of(served.url), served.host)):
        with pytest.raises(StoreError, match=f"^{folder} is for the host's socket, and is another user's"):
            refused()
    monkeypatch.setattr(os, "getuid", lambda: 0)
    check_owner(folder)


def test_backup(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client's relative path is one in its own folder; a request with a relative path is refused, and what is at a
    path stays.
    """
    monkeypatch.chdir(tmp_path)
    served.asked(lambda host: host.backup("copy"))
    size = (tmp_path / "copy").stat().st_size
    with pytest.raises(StoreError, match="is there already"):
        served.asked(lambda host: host.backup("copy"))
    assert (tmp_path / "copy").stat().st_size == size
    answer = _raw(served, {"version": 1, "request": "backup", "path": "other"})
    assert answer == {
        "ok": False,
        "error": "StoreError",
        "message": "backup: an absolute path is expected, as the host may be in another folder; got 'other'",
    }
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        ({"version": 2, "request": "sql"}, "version 2 of the protocol, and the host speaks version 1"),
        ({"version": 1, "request": "shutdown"}, "there is no request 'shutdown'; known: sql, input,"),
        ({"version": 1, "request": "retire", "nam": "x"}, "retire has no argument nam; known: name, how"),
        ({"version": 1, "request": "retire", "name": "x"}, "retire: missing a required argument: 'how'"),
        ({"version": 1, "request": "retire", "name": "x", "how": "drop"}, "no pattern 'x' runs. Known here: pairs"),
        ({"version": 1, "request": "backup"}, "backup: missing a required argument: 'path'"),
    ],
)
def test_wrong_requests(served: Served, request_: dict[str, Any], problem: str) -> None:
    """A wrong request is answered with what is wrong, and the host goes on."""
    assert problem in _raw(served, request_)["message"]
    with pytest.raises(SchemaError, match="how: 'keep' is not one of"):
        served.asked(lambda host: host.retire("pairs", how="keep"))  # type: ignore[arg-type] # it is wrong


def test_what_is_no_request(served: Served) -> None:
    """A client that sends something else, or too much, loses its connection, and nobody else does."""
    for content in (b"\0\0\0\2[]", b"\0\0\0\5hello", (MOST_REQUEST + 1).to_bytes(4, "big"), b"\0\0\0\5he"):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(socket_of(served.url)))
            client.sendall(content)
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""
    assert served.asked(lambda host: host.sql("SELECT 1 AS n")).num_rows == 1


def test_request_that_is_too_large(served: Served) -> None:
    """A feed that is too large for one request is refused before it is sent, with what to do; the connection stays."""

    def ask(host: RemoteHost) -> None:
        large = events("a", os.urandom(MOST_REQUEST).hex(), after=2)  # nothing makes it smaller
        message = (
            r"^feed: a request to the host that runs has at most 16,777,216 bytes, and this one \d\d,\d{3},\d{3}\. Feed"
        )
        with pytest.raises(LimitExceeded, match=message):
            host.feed(large, input="events", position=4)
        host.feed(large.slice(0, 1), input="events", position=3)
        with pytest.raises(LimitExceeded, match=r"^retire: .* Ask for less at once"):
            host.retire("x" * MOST_REQUEST, how="drop")

    served.asked(ask)
    assert served.host.inputs["events"].position == 3


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        ({"request": "sql"}, "sql: missing a required argument: 'query'"),
        ({"request": "input", "name": "x", "time": "at", "schema": "AAAA"}, "input: schema cannot be read: "),
        ({"request": "feed", "input": ["e"], "events": ""}, "feed: input cannot be read: TypeError("),
        ({"request": "resend", "name": None}, "resend: name cannot be read: TypeError("),
        ({"request": "feed", "input": "events", "events": 7}, "feed: events cannot be read: TypeError("),
        ({"request": "deploy", "pattern": {"wat": 1}, "input": "events"}, "a pattern has no key 'wat'"),
        ({"request": "deploy", "input": {}, "pattern": {}}, "deploy: input cannot be read: KeyError('patterns')"),
    ],
)
def test_arguments_that_cannot_be_read(served: Served, request_: dict[str, Any], problem: str) -> None:
    """A request whose arguments are missing or not of their form is a SchemaError, or the error that has the cause."""
    answer = _raw(served, {"version": 1, **request_})
    assert answer["error"] in ("SchemaError", "PatternError")
    assert problem in answer["message"]


def test_fault_of_the_host(served: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that is no error of the caller is reported as one of the host, which says where it happened."""
    monkeypatch.delattr("cepheid.hosts.durable.routing.routing.Routing.remove")
    answer = _raw(served, {"version": 1, "request": "unsubscribe", "name": "all"})
    assert answer["error"] == "StoreError"
    assert re.match(
        r"the host failed by a fault of Cepheid, and says where on .*: AttributeError: .*", answer["message"]
    )
    assert "host.py" in capsys.readouterr().err
    assert served.asked(lambda host: host.sql("SELECT 1 AS n")).num_rows == 1


def test_no_more_files(served: Served) -> None:
    """A host that can open no more files waits for some without work, counts that, and then answers."""
    client = socket.socket(socket.AF_UNIX)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 1, limits[1]))
    try:
        begun, worked = time.monotonic(), time.process_time()
        client.connect(str(socket_of(served.url)))
        while served.server.failures < 4:
            assert time.monotonic() - begun < 30
            time.sleep(0.05)
        assert time.process_time() - worked < (time.monotonic() - begun) / 2
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    with RemoteHost(client) as host:
        assert host.sql("SELECT 1 AS n").num_rows == 1


def _raw(served: Served, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request that `RemoteHost` would not send."""

    def ask(_: RemoteHost) -> dict[str, Any] | None:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(socket_of(served.url)))
            send_json(client, request)
            return receive_json(client, MOST_REQUEST)

    answer = served.asked(ask)
    assert answer is not None
    return answer
