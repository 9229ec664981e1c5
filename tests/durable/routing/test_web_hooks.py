"""Web hooks against a real server: signed, tried again, never redirected, and only at addresses that are allowed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.durable.routing.hosts import LOOPBACK, find, opened, subscriptions
from tests.durable.routing.receiver import Receiver, running_receiver

from cepheid.errors import SchemaError
from cepheid.host import Host
from cepheid.hosts.durable.routing.sender import Undelivered
from cepheid.hosts.durable.routing.senders.addresses import checked_address, is_allowed

QUICK: dict[str, Any] = {"pause": "1 millisecond", "attempts": 3}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_receiver() as found:
        yield found


@pytest.fixture
def host(receiver: Receiver, tmp_path: Path) -> Iterator[Host]:
    with opened(f"sqlite:///{tmp_path}/alerts.db", receiver.origin, LOOPBACK) as found:
        yield found


def dead(host: Host) -> list[str]:
    problems: list[str] = host.dead_letters.column("problem").to_pylist()
    return problems


def test_request(host: Host, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request has the row as JSON, the id of the match, the number, and a signature over id, time and body."""
    monkeypatch.setenv("HOOK_KEY", "whsec_" + base64.b64encode(b"the key").decode())
    host.subscribe("hook", to=f"{receiver.origin}/in?who=me", secret="env:HOOK_KEY")  # noqa: S106 - the name of one
    find(host, 1)
    assert host.deliver()
    (one,) = receiver.received
    (row,) = host.sql("SELECT match_id FROM matches_pairs").to_pylist()
    assert one.path == "/in?who=me"
    assert one.row["id"] == 1
    assert one.headers["content-type"] == "application/json"
    assert one.headers["webhook-id"] == row["match_id"]
    assert one.headers["cepheid-number"] == "1"
    assert one.headers["cepheid-subscription"] == "hook"
    assert "cepheid-out-of-order" not in one.headers
    stamp = one.headers["webhook-timestamp"]
    assert abs(time.time() - int(stamp)) < 60
    signed = f"{row['match_id']}.{stamp}.".encode() + one.body
    expected = base64.b64encode(hmac.new(b"the key", signed, hashlib.sha256).digest()).decode()
    assert one.headers["webhook-signature"] == f"v1,{expected}"
    stored = host.sql("SELECT content FROM subscriptions").to_pylist()[0]["content"]
    assert "HOOK_KEY" in stored
    assert "whsec" not in stored


def test_no_secret(host: Host, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the secret nothing is sent unsigned: the subscription waits."""
    monkeypatch.delenv("HOOK_KEY", raising=False)
    host.subscribe("hook", to=receiver.origin, secret="env:HOOK_KEY")  # noqa: S106 - the name of one
    find(host, 1)
    assert host.deliver()
    assert receiver.received == []
    assert subscriptions(host)["hook"]["problem"] == "secret: the environment has no variable HOOK_KEY"


def test_tried_again(host: Host, receiver: Receiver) -> None:
    """A server that fails gets the same message again, and later ones after it."""
    failures = count()
    receiver.answer = lambda _: (503, {}) if next(failures) < 2 else (200, {})
    host.subscribe("hook", to=receiver.origin, **QUICK)
    find(host, 1, 3)
    assert host.deliver()
    assert receiver.ids == [1, 1, 1, 3]
    assert len({one.headers["webhook-id"] for one in receiver.received}) == 2
    assert subscriptions(host)["hook"]["problem"] == "the answer is 503 Service Unavailable"
    assert dead(host) == []


def test_out_of_order(host: Host, receiver: Receiver) -> None:
    """A dead letter that is sent again says that it is out of order."""
    receiver.answer = lambda one: (500 if one.row["id"] == 1 else 200, {})
    host.subscribe("hook", to=receiver.origin, **QUICK)
    find(host, 1, 3)
    assert host.deliver()
    assert dead(host) == ["the answer is 500 Internal Server Error"]
    receiver.answer = lambda _: (200, {})
    host.resend("hook")
    assert host.deliver()
    assert receiver.ids == [1, 1, 1, 3, 1]
    assert receiver.received[-1].headers["cepheid-out-of-order"] == "true"
    assert dead(host) == []


@pytest.mark.parametrize("status", [400, 422])
def test_refused(host: Host, receiver: Receiver, status: int) -> None:
    """A message that the server refuses as wrong is not sent again: it would be the same."""
    receiver.answer = lambda _: (status, {})
    host.subscribe("hook", to=receiver.origin, **QUICK)
    find(host, 1)
    assert host.deliver()
    assert len(receiver.received) == 1
    assert dead(host)[0].startswith(f"the answer is {status}")


def test_redirect(host: Host, receiver: Receiver) -> None:
    """A redirect is not followed, not even to the same server."""
    receiver.answer = lambda one: (307, {"location": "/elsewhere"}) if one.path == "/in" else (200, {})
    host.subscribe("hook", to=f"{receiver.origin}/in", **QUICK)
    find(host, 1)
    assert host.deliver()
    assert [one.path for one in receiver.received] == ["/in"] * 3
    assert dead(host) == ["the answer is 307 Temporary Redirect, which is not followed"]


def test_hangs(host: Host, receiver: Receiver) -> None:
    """A server that does not answer is given up after the timeout."""
    receiver.hangs = True
    host.subscribe("hook", to=receiver.origin, timeout="200 milliseconds", **QUICK)
    find(host, 1)
    assert host.deliver()
    assert dead(host) == ["no answer within 0.2 seconds"]


@pytest.mark.parametrize(("scheme", "begin"), [("http", b"H"), ("https", b"\x16\x03\x03\x40\x00")])
def test_drips(scheme: str, begin: bytes, tmp_path: Path) -> None:
    """The timeout is for the whole attempt: a server that answers byte by byte is given up, too, also while it begins
    TLS.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=_drip, args=(listener, begin), daemon=True).start()
        origin = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
        with opened(f"sqlite:///{tmp_path}/alerts.db", origin, LOOPBACK) as host:
            host.subscribe("hook", to=origin, timeout="500 milliseconds", attempts=1)
            find(host, 1)
            began = time.monotonic()
            assert host.deliver()
            assert time.monotonic() - began < 3
            assert dead(host) == ["no answer within 0.5 seconds"]


def _drip(listener: socket.socket, begin: bytes) -> None:
    connection, _ = listener.accept()
    with connection:
        try:
            connection.sendall(begin)
            for _ in range(100):
                time.sleep(0.05)
                connection.sendall(b"H")
        except OSError:
            return


def test_no_server(tmp_path: Path) -> None:
    """Where nobody listens, that is the problem."""
    origin = "http://127.0.0.1:9"
    with opened(f"sqlite:///{tmp_path}/alerts.db", origin, LOOPBACK) as host:
        host.subscribe("hook", to=origin, **QUICK)
        find(host, 1)
        assert host.deliver()
        assert "Connection refused" in dead(host)[0]


def test_private_addresses(receiver: Receiver, tmp_path: Path) -> None:
    """A name or address that is not public is not reached unless its network is allowed."""
    with opened(f"sqlite:///{tmp_path}/alerts.db", receiver.origin) as host:
        host.subscribe("hook", to=receiver.origin, **QUICK)
        find(host, 1)
        assert host.deliver()
        assert receiver.received == []
        assert dead(host)[0] == (
            "127.0.0.1, which is no public address: if web hooks may be there, allow 127.0.0.1/32, or its network, too"
        )


def test_address_that_changes(receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is resolved once, and the connection goes to the address that was checked, whatever it means later."""
    port = receiver.origin.rpartition(":")[2]
    asked: list[str] = []
    answers = iter(["127.0.0.1", "10.1.2.3"])

    def resolve(name: str, number: int, *_: object, **__: object) -> list[Any]:
        asked.append(name)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers) if name == "hooks" else name, number))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with opened(f"sqlite:///{tmp_path}/alerts.db", f"http://hooks:{port}", LOOPBACK) as host:
        host.subscribe("hook", to=f"http://hooks:{port}/", **QUICK)
        find(host, 1)
        assert host.deliver()
    assert receiver.ids == [1]
    assert asked.count("hooks") == 1
    assert receiver.received[0].headers["host"] == f"hooks:{port}"


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("8.8.8.8", True),
        ("2001:4860:4860::8888", True),
        ("127.0.0.1", False),
        ("10.0.0.1", False),
        ("192.168.1.1", False),
        ("172.16.0.1", False),
        ("100.64.0.1", False),
        ("169.254.169.254", False),
        ("0.0.0.0", False),  # noqa: S104 - it is refused
        ("224.0.0.1", False),
        ("240.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1", False),
        ("fc00::1", False),
        ("ff02::1", False),
        ("::ffff:10.0.0.1", False),
        ("::ffff:8.8.8.8", True),
        ("64:ff9b::a00:1", False),
        ("64:ff9b::808:808", True),
        ("2002:7f00:1::", False),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", False),
    ],
)
def test_addresses(address: str, allowed: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Loopback, private, link-local, multicast and reserved addresses are refused, also where another one carries
    them.
    """
    assert is_allowed(ipaddress.ip_address(address), []) == allowed


def test_allowed_network() -> None:
    """A network that is allowed by name may be reached, and only that one."""
    networks = [ipaddress.ip_network("10.1.0.0/16")]
    assert is_allowed(ipaddress.ip_address("10.1.2.3"), networks)
    assert is_allowed(ipaddress.ip_address("::ffff:10.1.2.3"), networks)
    assert not is_allowed(ipaddress.ip_address("10.2.0.1"), networks)


def test_unknown_name() -> None:
    """A name that cannot be resolved is the problem."""
    with pytest.raises(Undelivered, match=r"nothing\.invalid cannot be resolved"):
        checked_address("nothing.invalid", 443, [])


@pytest.mark.parametrize(
    ("to", "problem"),
    [
        ("https://user:hunter2@example.com/", "has a password or another secret"),
        ("https://example.com/?token=hunter2", "has a password or another secret"),
        ("kafka://user:hunter2@broker:9092/topic", "has a password or another secret"),
        ("postgresql://user:hunter2@server/other#alerts", "has a password or another secret"),
        ("https://user@example.com/", "is none of"),
        ("https:///path", "is none of"),
        ("https://example.com/a path", "is none of"),
        ("https://example.com/päth", "is none of"),
        ("https://example.com:port/", "is no URL"),
        ("kafka://broker:9092", "is none of"),
        ("sqlite:///other.db", r"which input of the host\? Write sqlite:///other.db#INPUT"),
        ("table://no table", "is none of"),
        ("alerts.mail.send", "is none of"),
    ],
)
def test_wrong_targets(host: Host, to: str, problem: str) -> None:
    """What is no target, or has a secret in it, is refused, and the secret is not repeated."""
    with pytest.raises(SchemaError, match=problem) as caught:
        host.subscribe("x", to=to)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("to", "needed"),
    [
        ("https://hooks.example.com/path", "https://hooks.example.com:443"),
        ("http://hooks.example.com/path", "http://hooks.example.com:80"),
        ("https://hooks.example.com:8443/path", "https://hooks.example.com:8443"),
        ("kafka://broker:9092/topic", "kafka://broker:9092"),
        ("sqlite:///other.db#alerts", "sqlite:///other.db"),
        ("os:system", "os:system"),
    ],
)
def test_not_allowed(tmp_path: Path, to: str, needed: str) -> None:
    """Only what is allowed by name may be reached, and each name allows only itself."""
    others = ["https://example.com", "kafka://broker:9093", "sqlite:///another.db", "os:getpid"]
    refused = pytest.raises(SchemaError, match=f"to: the host may not reach {needed}: open or run it with allow")
    with opened(f"sqlite:///{tmp_path}/alerts.db", *others) as host, refused:
        host.subscribe("x", to=to)
    with opened(f"sqlite:///{tmp_path}/alerts.db", needed) as host:
        host.subscribe("x", to=to)


def test_wrong_allow(tmp_path: Path) -> None:
    """What cannot be allowed is an error, all at once."""
    with pytest.raises(SchemaError) as caught:
        opened(f"sqlite:///{tmp_path}/alerts.db", "*", "https://example.com/path", "10.0.0.1/8")
    assert str(caught.value).count("is none of module:function, https://host") == 3


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With https the certificate must be one that the system trusts, for the name in the URL; the connection goes to
    the checked address.
    """
    _make_certificate(tmp_path, "localhost")
    with running_receiver(tmp_path) as receiver:
        port = receiver.origin.rpartition(":")[2]
        right, wrong = f"https://localhost:{port}", f"https://127.0.0.1:{port}"
        with opened(f"sqlite:///{tmp_path}/alerts.db", right, wrong, LOOPBACK, "::1/128") as host:
            host.subscribe("unknown", to=right, attempts=1)
            find(host, 1)
            assert host.deliver()
            assert "certificate verify failed" in dead(host)[0]
            host.unsubscribe("unknown")
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate"))
            host.subscribe("right", to=right, attempts=1)
            host.subscribe("wrong", to=wrong, attempts=1)
            find(host, 3)
            assert host.deliver()
            assert receiver.ids == [3]
            assert "IP address mismatch" in dead(host)[0]


def _make_certificate(folder: Path, name: str) -> None:
    """A certificate for the name, which signs itself, and its key."""
    files = ("-keyout", str(folder / "key"), "-out", str(folder / "certificate"), "-days", "2", "-nodes")
    subject = ("-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", *files, *subject], check=True, capture_output=True
    )
