"""Writes the snapshots of the present format that the tests keep for ever: run once, when `snapshot.FORMAT` is raised.

    python -m scripts.stored_snapshots tests/live/snapshots

Each is of a matcher in the middle of its work, with what it gives from there on beside it. A format that is no longer
written must still be read, so files of older ones are never written again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid import Matcher, Pattern, Skip
from cepheid.snapshot import FORMAT

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("account", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("what", pa.string()),
        ("amount", pa.decimal128(8, 2)),
    ]
)
PATTERN = (
    Pattern.begin("open", name="account")
    .where("what = 'open'")
    .followed_by("pays")
    .where("what = 'pay' AND amount > coalesce(pays.amount, 0)")
    .one_or_more()
    .optional()
    .followed_by("close")
    .where("what = 'close' AND id % 2 = open.id % 2")
    .within("1 hour")
    .skip(Skip.to_next())
)
SETS = (
    Pattern.begin("open", name="sets")
    .where("what = 'open'")
    .followed_by_any("pay")
    .where("what = 'pay'")
    .followed_by_any("close")
    .where("what = 'close'")
    .within("1 hour")
)


def _dearer(event: Mapping[str, Any], matched: Mapping[str, Any]) -> bool:
    return event["what"] == "pay" and all(event["amount"] > pay["amount"] for pay in matched["pays"])


FUNCTIONS = (
    Pattern.begin("open", name="functions")
    .where(lambda event: event["what"] == "open", name="open")
    .followed_by("pays")
    .where(_dearer, name="dearer")
    .one_or_more()
    .followed_by("close")
    .where("what = 'close'")
    .within("1 hour")
)
ALL: dict[str, Any] = {"outputs": ["matches", "timeouts", "late"]}
KINDS: dict[str, tuple[Pattern, dict[str, Any]]] = {
    "in_sequence": (PATTERN, {**ALL, "sequence": "id", "lateness": "0 seconds"}),
    "waiting": (PATTERN, {**ALL, "lateness": "2 seconds"}),
    "in_sets": (SETS, {"outputs": ["matches", "late"], "sequence": "id", "lateness": "0 seconds"}),
    "functions": (FUNCTIONS, {**ALL, "sequence": "id", "lateness": "0 seconds"}),
}
"""How the matcher of each file is made."""

BEFORE = [
    (1, "é", 0, "open", "0.00"),
    (2, "b", 1, "open", "0.00"),
    (3, "é", 2, "pay", "5.00"),
    (4, "é", 3, "open", "0.00"),
    (5, "é", 4, "pay", "7.50"),
    (6, "é", 5, "close", "1.00"),  # of the second; it waits, as the first is open
    (7, "c", 9, "open", "0.00"),
    (8, "c", 9, "pay", "2.00"),
]
AFTER = [
    (8, "c", 9, "open", "0.00"),  # late where there is a sequence
    (9, "é", 10, "close", "1.00"),
    (10, "b", 11, "close", "1.00"),
    (11, "c", 12, "close", "1.00"),
    (12, "b", 20, "open", "0.00"),
    (13, "b", 19, "pay", "3.00"),
    (14, "b", 5000, "pay", "4.00"),
]


def matcher_of(kind: str) -> Matcher:
    """A matcher that the snapshots of this kind fit."""
    pattern, options = KINDS[kind]
    return Matcher(pattern, SCHEMA, key="account", time="at", **options)


def go_on(matcher: Matcher) -> list[dict[str, Any]]:
    """What comes of the events behind the snapshot, as JSON values."""
    rows = [*matcher.process(events_of(AFTER)).to_pylist(), *matcher.finish().to_pylist()]
    shown: list[dict[str, Any]] = json.loads(json.dumps(rows, default=str))
    return shown


def write(folder: Path) -> None:
    """Writes a snapshot of each kind, and what comes behind it."""
    folder.mkdir(exist_ok=True)
    for kind in KINDS:
        matcher = matcher_of(kind)
        matcher.process(events_of(BEFORE))
        path = folder / f"{kind}.{FORMAT}.snapshot"
        path.write_bytes(matcher.snapshot())
        shown = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in go_on(matcher))
        path.with_suffix(".jsonl").write_text(shown, "utf-8")


def events_of(rows: list[tuple[int, str, int, str, str]]) -> pa.Table:
    start = datetime(2026, 3, 2, 8, tzinfo=UTC)
    timed = [(id_, account, start + timedelta(seconds=s), what, Decimal(d)) for id_, account, s, what, d in rows]
    columns = dict(zip(SCHEMA.names, map(list, zip(*timed, strict=True)), strict=True))
    return pa.table(columns, schema=SCHEMA)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
