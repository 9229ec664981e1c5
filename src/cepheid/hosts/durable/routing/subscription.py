"""Subscriptions and dead letters as values, and the tables in which a store has them."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, TypeAlias

import pyarrow as pa

from cepheid.hosts.durable.store import RowTable
from cepheid.output.common import INSERTION, RETRACTION

ALL = "*"
"""In place of names of patterns: all patterns, also those that are deployed later."""

Status: TypeAlias = Literal["active", "failing", "waiting"]
"""A failing subscription tries again by itself. A waiting one delivers only if the host is opened in another way."""


@dataclass(frozen=True)
class Subscription:
    """Who gets what, and how far it was delivered."""

    name: str
    patterns: tuple[str, ...]
    """Names of patterns, or ALL."""
    where: str | None
    to: str
    """The target, as `targets` reads it."""
    secret: str | None
    """`env:NAME`, the variable with the key that signs what is sent."""
    timeout: int
    """Microseconds for one attempt."""
    attempts: int
    """After so many a message becomes a dead letter."""
    pause: int
    """Microseconds before the second attempt; each further pause is twice as long."""
    columns: pa.Schema
    """The columns of the patterns' rows that may be in `where` and in a table."""
    delivered: int = 0
    """The number of the last row of the outbox that was handled."""
    status: Status = "active"
    problem: str | None = None
    """The last problem. It stays after the delivery that succeeds."""

    def covers(self, pattern: str) -> bool:
        return self.patterns == (ALL,) or pattern in self.patterns


def differences(known: Subscription, given: Subscription) -> list[str]:
    """What differs in the arguments of two subscriptions, as texts."""
    names = {"patterns": "pattern", "where": "where", "to": "to", "secret": "secret"}
    names |= {"timeout": "timeout", "attempts": "attempts", "pause": "pause"}
    return [
        f"{argument} {getattr(known, name)!r}, not {getattr(given, name)!r}"
        for name, argument in names.items()
        if getattr(known, name) != getattr(given, name)
    ]


_LONGEST = 500
"""Characters of a problem."""


class Letter(NamedTuple):
    """One message to a subscriber."""

    number: int
    """In the outbox: in order, without gaps, never given twice."""
    pattern: str
    version: str
    kind: str
    match_id: str
    content: str
    """The whole row as JSON."""
    out_of_order: bool = False
    """Whether it was a dead letter, so later ones have come before it."""
    attempts: int = 0
    """Those of earlier sendings."""

    @property
    def row(self) -> dict[str, Any]:
        row: dict[str, Any] = json.loads(self.content)
        return row

    @property
    def id(self) -> str:
        """The idempotency key: the same whenever the message is sent again. A match that may be retracted is inserted
        and retracted under one match_id, so there the number belongs to it.
        """
        return f"{self.match_id}.{self.number}" if self.kind in (INSERTION, RETRACTION) else self.match_id


class DeadLetter(NamedTuple):
    """A message that was given up."""

    letter: Letter
    attempts: int
    problem: str


SUBSCRIPTIONS = RowTable(
    "subscriptions",
    pa.schema(
        [
            *(("name", pa.string()), ("pattern", pa.string()), ("condition", pa.string()), ("target", pa.string())),
            *(("delivered", pa.int64()), ("status", pa.string()), ("problem", pa.string()), ("content", pa.string())),
        ]
    ),
    "name",
    is_small=True,
)
DEAD_LETTERS = RowTable(
    "dead_letters",
    pa.schema(
        [
            *(("id", pa.string()), ("subscription", pa.string()), ("number", pa.int64()), ("pattern", pa.string())),
            *(("version", pa.string()), ("kind", pa.string()), ("match_id", pa.string()), ("attempts", pa.int64())),
            *(("problem", pa.string()), ("status", pa.string()), ("failed_at", pa.timestamp("us", "UTC"))),
            ("content", pa.string()),
        ]
    ),
    "id",
    (("subscription", "number"),),
)
"""Its status is `dead`, or `sending` for those that are to be sent again."""


def subscription_row(one: Subscription) -> pa.Table:
    content = asdict(one) | {"columns": b64encode(one.columns.serialize().to_pybytes()).decode()}
    for name in ("delivered", "status", "problem"):  # they change, and are columns
        del content[name]
    values = (one.name, ", ".join(one.patterns), one.where, one.to)
    problem = None if one.problem is None else _plain(one.problem)
    row = (*values, one.delivered, one.status, problem, json.dumps(content))
    return _row(SUBSCRIPTIONS, row)


def subscription_from_row(row: dict[str, Any]) -> Subscription:
    content = json.loads(row["content"])
    columns = pa.ipc.read_schema(pa.BufferReader(b64decode(content.pop("columns"))))
    changing = {name: row[name] for name in ("delivered", "status", "problem")}
    return Subscription(**{**content, "patterns": tuple(content["patterns"]), **changing}, columns=columns)


def dead_letter_id(subscription: str, number: int) -> str:
    return f"{subscription}/{number}"


def dead_letter_row(subscription: str, one: DeadLetter) -> pa.Table:
    letter = one.letter
    about = (dead_letter_id(subscription, letter.number), subscription, letter.number, letter.pattern, letter.version)
    failed = (
        letter.kind,
        letter.match_id,
        one.attempts,
        _plain(one.problem),
        "dead",
        datetime.now(UTC),
        letter.content,
    )
    return _row(DEAD_LETTERS, (*about, *failed))


def letter_of(row: dict[str, Any]) -> Letter:
    """The message in a row of the outbox or of dead letters."""
    fields = ("number", "pattern", "version", "kind", "match_id", "content", "attempts")
    return Letter(**{name: row[name] for name in fields if name in row})


def _plain(problem: str) -> str:
    """The beginning of a problem. A receiver may have written it: databases refuse some characters, and terminals obey
    others.
    """
    return "".join(one if one.isprintable() else " " for one in problem[:_LONGEST])


def _row(table: RowTable, values: Sequence[Any]) -> pa.Table:
    columns = [pa.array([value], field.type) for value, field in zip(values, table.columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=table.columns)
