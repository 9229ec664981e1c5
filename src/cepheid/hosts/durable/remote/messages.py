"""Requests to a host and its answers, as JSON values."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from inspect import signature
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from cepheid import errors
from cepheid.errors import PatternError, Problem, SchemaError, StoreError
from cepheid.hosts.durable.documents import deployment_to_json, input_to_json
from cepheid.hosts.durable.host import Fed, Old
from cepheid.hosts.durable.remote.frames import VERSION
from cepheid.hosts.durable.state import Deployment, Input, MatchesOf
from cepheid.hosts.shards.arrow_stream import to_stream
from cepheid.lang.documents import AnyPattern, pattern_from_text, pattern_to_document
from cepheid.plan.limits import Limits


class AnyHost(Protocol):
    """What commands ask of a host: one in this process, or one that another process runs."""

    @property
    def input(self) -> Callable[..., None]: ...

    @property
    def deploy(self) -> Callable[..., Deployment]: ...

    def retire(self, name: str, *, how: Old) -> None: ...

    def advance_time(self, time: datetime | str, *, input: str | None = None) -> object:  # noqa: A002
        """Advances the time of an input, or of all inputs."""

    @property
    def subscribe(self) -> Callable[..., None]: ...

    def unsubscribe(self, name: str) -> None: ...

    def resend(self, name: str, numbers: Sequence[int] | None = None) -> int: ...

    @property
    def inputs(self) -> Mapping[str, Input]: ...

    @property
    def feed(self) -> Callable[..., Fed]: ...

    def sql(self, query: str) -> pa.Table: ...

    def backup(self, path: str | Path) -> None: ...

    def close(self) -> None: ...


ARGUMENTS = {
    "sql": ("query",),
    "input": ("name", "schema", "time", "sequence", "lateness", "time_zone", "nulls", "keep"),
    "deploy": (
        *("pattern", "input", "key", "columns", "measures", "promote", "outputs", "rows_per", "limits", "since", "old"),
    ),
    "retire": ("name", "how"),
    "advance_time": ("time", "input"),
    "backup": ("path",),
    "subscribe": ("name", "to", "pattern", "where", "after", "secret", "timeout", "attempts", "pause"),
    "unsubscribe": ("name",),
    "resend": ("name", "numbers"),
    "inputs": (),
    "feed": ("events", "input", "position"),
}
"""The arguments of each request."""


def checked_request(request: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name of the request, and its arguments.

    Raises:
        StoreError: it is of another version of the protocol, or unknown, or has unknown arguments.
    """
    given = dict(request)
    version, name = given.pop("version", None), given.pop("request", None)
    if version != VERSION:
        raise StoreError(
            f"the request is of version {version!r} of the protocol, and the host speaks version {VERSION}: use the "
            "same version of Cepheid for both"
        )
    if name not in ARGUMENTS:
        raise StoreError(f"there is no request {name!r}; known: {', '.join(ARGUMENTS)}")
    if unknown := sorted(given.keys() - {*ARGUMENTS[name]}):
        raise StoreError(f"{name} has no argument {', '.join(unknown)}; known: {', '.join(ARGUMENTS[name])}")
    return name, given


def request_to_json(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The request; arguments that are None are left out.

    Raises:
        PatternError: the pattern has conditions in Python, which cannot be sent.
    """
    given = {argument: value for argument, value in arguments.items() if value is not None}
    return {"version": VERSION, "request": name, **{key: _plain(value) for key, value in given.items()}}


def _plain(value: Any) -> Any:
    """An argument as a JSON value."""
    match value:
        case pa.Table():
            return b64encode(to_stream(value)).decode()
        case pa.Schema():
            return b64encode(value.serialize().to_pybytes()).decode()
        case MatchesOf() | Limits():
            return asdict(value)
        case datetime():
            return value.isoformat()
        case timedelta():
            return f"{value // timedelta(microseconds=1)} microseconds"
        case str() | int() | float():
            return value
        case Mapping():
            return dict(value)
        case list() | tuple():
            return [*value]
    return pattern_to_document(value)


def perform(host: AnyHost, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Performs a request other than a query; returns the result.

    Raises:
        SchemaError: an argument is missing, or cannot be read.
        what the host's method of this name raises.
    """
    if name == "inputs":
        return {"inputs": [input_to_json(one) for one in host.inputs.values()]}
    arguments = read_arguments(host, name, given)
    result = getattr(host, name)(**arguments)
    match name:
        case "deploy":
            return deployment_to_json(result)
        case "resend":
            return {"letters": result}
        case "feed":
            return {"skipped": result.skipped}
    return {}


def read_arguments(host: AnyHost, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the host's method, from their JSON form.

    Raises:
        SchemaError: an argument is missing, or cannot be read.
    """
    try:
        signature(getattr(type(host), name)).bind(host, **given)
    except TypeError as error:
        raise SchemaError(f"{name}: {error}") from None
    return {argument: _read(name, argument, value) for argument, value in given.items()}


def _read(name: str, argument: str, value: Any) -> Any:
    read = _READ.get((name, argument))
    try:
        return value if read is None else read(value)
    except (TypeError, KeyError, ValueError, AttributeError, pa.ArrowException) as error:
        if is_known(error):
            raise
        raise SchemaError(f"{name}: {argument} cannot be read: {error!r}") from error


def _absolute(text: str) -> Path:
    """
    Raises:
        StoreError: the path is relative.
    """
    path = Path(text)
    if not path.is_absolute():
        raise StoreError(f"backup: an absolute path is expected, as the host may be in another folder; got {text!r}")
    return path


def _table(text: str) -> pa.Table:
    return pa.ipc.open_stream(pa.BufferReader(b64decode(text))).read_all()


def _schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.BufferReader(b64decode(text)))


def _pattern(document: Any) -> AnyPattern:
    return pattern_from_text(json.dumps(document))


def _source(given: Any) -> str | MatchesOf:
    return MatchesOf(tuple(given["patterns"]), given["raw"]) if isinstance(given, dict) else given


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError(f"a text is expected, not {given!r}")
    return given


_READ: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("input", "schema"): _schema,
    ("feed", "events"): _table,
    ("backup", "path"): _absolute,
    ("sql", "query"): _text,
    ("feed", "input"): _text,
    ("resend", "name"): _text,
    ("unsubscribe", "name"): _text,
    ("deploy", "pattern"): _pattern,
    ("deploy", "input"): _source,
    ("deploy", "limits"): lambda given: Limits(**given),
}
"""By request and argument: reads what is not a JSON value itself."""


def is_known(error: Exception) -> bool:
    """Whether it is one of Cepheid's errors. Others are faults of Cepheid."""
    return getattr(errors, type(error).__name__, None) is type(error)


def failure_to_json(error: Exception) -> dict[str, Any]:
    """The answer for a failed request."""
    kind, known = type(error).__name__, is_known(error)
    answer = {"ok": False, "error": kind if known else StoreError.__name__}
    fault = f"the host failed by a fault of Cepheid, and says where on its standard error: {kind}: {error}"
    answer["message"] = str(error) if known else fault
    if isinstance(error, PatternError):
        answer["problems"] = [asdict(problem) for problem in error.problems]
    return answer


def failure_from_json(answer: Mapping[str, Any]) -> Exception:
    """The error that the answer has; it is raised by the caller."""
    kind = getattr(errors, answer["error"], StoreError)
    if kind is PatternError:
        return PatternError([_problem(**problem) for problem in answer["problems"]])
    error: Exception = kind(answer["message"])
    return error


def _problem(*, span: list[int] | None, **given: Any) -> Problem:
    return Problem(**given, span=None if span is None else (span[0], span[1]))
