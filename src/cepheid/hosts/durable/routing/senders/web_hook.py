"""Web hooks: one POST for each letter, signed as https://www.standardwebhooks.com has it, so that receivers can check
it with the libraries that exist.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import http.client
import os
import socket
import ssl
import time
from collections.abc import Sequence
from contextlib import suppress
from threading import Timer
from urllib.parse import urlsplit

from cepheid.errors import SchemaError
from cepheid.hosts.durable.routing.sender import Undelivered
from cepheid.hosts.durable.routing.senders.addresses import checked_address
from cepheid.hosts.durable.routing.subscription import Letter
from cepheid.hosts.durable.routing.targets import Network

_REFUSED = {400, 413, 415, 422}
"""Statuses that are about the content, which will be the same at the next attempt."""
_SHOWN = 200
"""The most bytes of an answer in a problem."""


class WebHookSender:
    """Posts letters to a URL. Only a status of 200 to 299 is a success; redirects are not followed."""

    at_once = 1
    gives_up = True

    def __init__(
        self, url: str, subscription: str, *, secret: str | None, timeout: float, networks: Sequence[Network]
    ) -> None:
        """`secret` is as in `Subscription`; `timeout` has the seconds for a whole attempt.

        Raises:
            SchemaError: the environment has no such secret, or it is not of the form that it claims.
        """
        self._parts = urlsplit(url)
        self._subscription = subscription
        self._key = None if secret is None else key_of(secret)
        self._timeout = timeout
        self._networks = networks

    def send(self, letters: Sequence[Letter]) -> None:
        for letter in letters:
            self._post(letter)

    def close(self) -> None:
        pass

    def _post(self, letter: Letter) -> None:
        body = letter.content.encode()
        connection = self._connection()
        started = time.monotonic()  # not after the watch has begun, whose end must count as a timeout
        # The timeout of a socket is for each read, and a server may answer byte by byte.
        watch = Timer(self._timeout, _ended, (connection,))
        watch.daemon = True
        watch.start()
        try:
            path = self._parts.path or "/"
            target = f"{path}?{self._parts.query}" if self._parts.query else path
            connection.request("POST", target, body, self._headers(letter, body))
            answer = connection.getresponse()
            text = answer.read(_SHOWN).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, TimeoutError) or time.monotonic() - started >= self._timeout:
                raise Undelivered(f"no answer within {self._timeout:g} seconds") from error
            raise Undelivered(f"{type(error).__name__}: {error}") from error
        finally:
            watch.cancel()
            connection.close()
        if not 200 <= answer.status < 300:
            what = ", which is not followed" if 300 <= answer.status < 400 else ""
            problem = f"the answer is {answer.status} {answer.reason}{what}: {text}".rstrip(": ")
            raise Undelivered(problem, is_refused=answer.status in _REFUSED)

    def _connection(self) -> http.client.HTTPConnection:
        """A connection to an address that was checked.

        Raises:
            Undelivered: the host has no address that is allowed.
        """
        host, port = str(self._parts.hostname), self._parts.port
        if self._parts.scheme == "https":
            address = checked_address(host, port or http.client.HTTPS_PORT, self._networks)
            return _CheckedHttps(host, port, address, self._timeout)
        address = checked_address(host, port or http.client.HTTP_PORT, self._networks)
        return _CheckedHttp(host, port, address, self._timeout)

    def _headers(self, letter: Letter, body: bytes) -> dict[str, str]:
        now = str(int(time.time()))
        headers = {
            "content-type": "application/json",
            "user-agent": "cepheid",
            "webhook-id": letter.id,
            "webhook-timestamp": now,
            "cepheid-subscription": self._subscription,
            "cepheid-number": str(letter.number),
        }
        if letter.out_of_order:
            headers["cepheid-out-of-order"] = "true"
        if self._key is not None:
            headers["webhook-signature"] = signature(self._key, letter.id, now, body)
        return headers


def signature(key: bytes, id_: str, timestamp: str, body: bytes) -> str:
    """The signature of a message, as in the header `webhook-signature`."""
    digest = hmac.new(key, f"{id_}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def key_of(secret: str) -> bytes:
    """The key in the variable that `env:NAME` names: its bytes, or after `whsec_` what is in Base64.

    Raises:
        SchemaError: there is no such variable, or it is not Base64.
    """
    name = secret.removeprefix("env:")
    value = os.environ.get(name, "")
    if not value:
        raise SchemaError(f"secret: the environment has no variable {name}")
    if not value.startswith("whsec_"):
        return value.encode()
    try:
        return base64.b64decode(value.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        raise SchemaError(f"secret: what comes after whsec_ in the variable {name} is not Base64") from None


class _CheckedHttp(http.client.HTTPConnection):
    """A connection to the given address, whatever the host's name means by now."""

    def __init__(self, host: str, port: int | None, address: str, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout)
        self._address = address

    def connect(self) -> None:
        self.sock = socket.create_connection((self._address, self.port), self.timeout)


class _CheckedHttps(_CheckedHttp):
    """The same with TLS; the certificate must be that of the name."""

    default_port = http.client.HTTPS_PORT

    def connect(self) -> None:
        super().connect()
        # Wrapping detaches the plain socket: only if the new one is known before the handshake can `_ended` reach it.
        wrapped = ssl.create_default_context().wrap_socket(
            self.sock, server_hostname=self.host, do_handshake_on_connect=False
        )
        self.sock = wrapped
        wrapped.do_handshake()


def _ended(connection: http.client.HTTPConnection) -> None:
    """Ends all reading and writing of the connection."""
    if connection.sock is not None:
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)
