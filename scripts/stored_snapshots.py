"""Writes snapshots in the current format, which the tests retain permanently. It is run once, when `snapshot.FORMAT` is
raised.

    python -m scripts.stored_snapshots tests/live/snapshots [KIND …]

Each snapshot is of a matcher that has processed a part of its events. A second file has the rows that the matcher emits
from there. Formats that are no longer written must still be read, so older files are never rewritten.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid import IntervalMatcher, Matcher, OccurrencePattern, Pattern, Skip
from cepheid.intervals import interval_pattern
from cepheid.matchers.snapshot import FORMAT

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
UNPAID = (
    Pattern.begin("open", name="unpaid")
    .where("what = 'open'")
    .not_followed_by("pay")
    .where("what = 'pay'")
    .followed_by("close")
    .where("what = 'close'")
    .within("1 hour")
)
OCCURRENCES = OccurrencePattern.of("((open; close) - pay) | (open + 10s; close)").policy("recent")
WITH_CONDITIONS = OccurrencePattern.of(
    "(?o:open; ?p:pay; ?c:close)_1h[p.amount > $least AND c.account = o.account AND c.id % 2 = o.id % 2]"
)
WITH_CONDITIONS = WITH_CONDITIONS.policy("unrestricted").with_parameters(least=1)
USED_UP = OccurrencePattern.of("open; (close & pay)").policy("chronicle")
INTERVALS = "EVENT SEQ(open o, (!pay p WHERE p.account = o.account), close c) WITHIN 1 hour REALTIME {0}"


def _stages(pattern: Pattern, **options: Any) -> Callable[[], Matcher]:
    return lambda: Matcher(pattern, SCHEMA, key="account", time="at", **options)


def _occurrences(pattern: OccurrencePattern, **options: Any) -> Callable[[], Matcher]:
    arguments = {"lateness": "2 seconds", "outputs": ["matches", "late"], **options}
    return lambda: Matcher(pattern.taxonomy("what"), SCHEMA, key="account", time="at", **arguments)


def _intervals(pattern: str) -> Callable[[], IntervalMatcher]:
    typed = interval_pattern(pattern).taxonomy("what")
    options: dict[str, Any] = {"time": ("at", "until"), "lateness": "4 seconds"}
    return lambda: IntervalMatcher(typed, with_ends(SCHEMA.empty_table()), key="account", **options)


KINDS: Mapping[str, Callable[[], Matcher | IntervalMatcher]] = {
    "in_sequence": _stages(PATTERN, **ALL, sequence="id", lateness="0 seconds"),
    "waiting": _stages(PATTERN, **ALL, lateness="2 seconds"),
    "in_sets": _stages(SETS, outputs=["matches", "late"], sequence="id", lateness="0 seconds"),
    "functions": _stages(FUNCTIONS, **ALL, sequence="id", lateness="0 seconds"),
    "real_time": _stages(UNPAID, lateness="4 seconds", consistency="realtime"),
    "occurrences": _occurrences(OCCURRENCES),
    "occurrences_with_conditions": _occurrences(WITH_CONDITIONS, measures={"paid": "p.amount", "of": "o.account"}),
    "occurrences_real_time": _occurrences(OCCURRENCES, lateness="4 seconds", consistency="realtime"),
    "occurrences_used_up": _occurrences(USED_UP, sequence="id"),
    "intervals": _intervals(INTERVALS.format(0)),
    "intervals_real_time": _intervals(INTERVALS.format(1)),
}
"""Kind of snapshot → the function that makes its matcher."""

TOLD = {"in_sets": {"match", "late"}} | {key: {"match", "timeout"} for key in ["in_sequence", "waiting", "functions"]}
TOLD |= {key: {"match", "late"} for key in (kind for kind in KINDS if kind.startswith("occurrences"))}
TOLD |= {key: {"insertion", "retraction", "late"} for key in KINDS if key.endswith("real_time")}
TOLD |= {"intervals": {"insertion", "late"}}
"""Kinds of rows that must be among those emitted after each snapshot."""

BEFORE = [
    (1, "é", 0, "open", "0.00"),
    (2, "b", 1, "open", "0.00"),
    (3, "é", 2, "pay", "5.00"),
    (4, "é", 3, "open", "0.00"),
    (5, "é", 4, "pay", "7.50"),
    (6, "é", 5, "close", "1.00"),  # completes the second partial match; its match waits, as the first is open
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
OPEN = [(20, "d", 7, "open", "0.00"), (21, "e", 8, "open", "0.00"), (22, "e", 10, "close", "0.00")]
"""Events after BEFORE, for matchers with a lateness. The last one completes a match in real time."""
MORE = [
    (23, "d", 11, "close", "0.00"),
    AFTER[1],
    (24, "e", 9, "pay", "0.00"),  # causes a retraction of the match of e
    (25, "c", 9, "pay", "0.00"),
    (26, "c", 13, "close", "0.00"),
    *AFTER[3:6],
    (27, "d", 5, "pay", "0.00"),  # late
    AFTER[6],
]
OF_STAGES = ("in_sequence", "waiting", "in_sets", "functions")
"""The first kinds, for which files of all formats exist."""


def matcher_of(kind: str) -> Matcher | IntervalMatcher:
    """A matcher that can restore snapshots of this kind."""
    return KINDS[kind]()


def go_on(kind: str, matcher: Matcher | IntervalMatcher) -> list[dict[str, Any]]:
    """The rows that the matcher emits for the events after the snapshot, as JSON values."""
    events = with_ends(events_of(AFTER if kind in OF_STAGES else MORE))
    # One event a call, as an IntervalMatcher sorts the events of a call by their ends.
    size = 1 if isinstance(matcher, IntervalMatcher) else len(events)
    calls = [matcher.process(events.slice(first, size)) for first in range(0, len(events), size)]
    rows = [row for found in (*calls, matcher.finish()) for row in found.to_pylist()]
    shown: list[dict[str, Any]] = json.loads(json.dumps(rows, default=str))
    return shown


def write(folder: Path, kinds: Sequence[str]) -> None:
    """Writes a snapshot of each kind, and the rows that the matcher emits after it."""
    folder.mkdir(exist_ok=True)
    for kind in kinds:
        matcher = matcher_of(kind)
        matcher.process(with_ends(events_of(BEFORE if kind in OF_STAGES else [*BEFORE, *OPEN])))
        path = folder / f"{kind}.{FORMAT}.snapshot"
        path.write_bytes(matcher.snapshot())
        shown = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in go_on(kind, matcher))
        path.with_suffix(".jsonl").write_text(shown, "utf-8")


def with_ends(events: pa.Table) -> pa.Table:
    """The events with a column `until`, their end as intervals: the event's time plus `amount` seconds."""
    seconds = pc.multiply(events["amount"].cast(pa.float64()), 1_000_000).cast(pa.int64()).cast(pa.duration("us"))
    return events.append_column("until", pc.add(events["at"], seconds))


def events_of(rows: list[tuple[int, str, int, str, str]]) -> pa.Table:
    start = datetime(2026, 3, 2, 8, tzinfo=UTC)
    timed = [(id_, account, start + timedelta(seconds=s), what, Decimal(d)) for id_, account, s, what, d in rows]
    columns = dict(zip(SCHEMA.names, map(list, zip(*timed, strict=True)), strict=True))
    return pa.table(columns, schema=SCHEMA)


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2:] or [*KINDS])
