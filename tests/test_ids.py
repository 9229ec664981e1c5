"""Ids of rows: they are as plain Python defines them, and each kind of row has the id that it has always had."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid import CepheidWarning, IntervalMatcher, Matcher, OccurrencePattern, Pattern, detect
from cepheid.events.identity import canonical_bytes
from cepheid.host import open_host
from cepheid.intervals import interval_pattern
from cepheid.output.ids import Identifying, Ids, Members, hex_ids, identified, purpose, single
from cepheid.output.ids_reference import Member, id_reference

SCHEMA = pa.schema(
    [
        *(("id", pa.int64()), ("account", pa.string()), ("at", pa.timestamp("us", "UTC"))),
        *(("until", pa.timestamp("us", "UTC")), ("what", pa.string())),
    ]
)
START = datetime(2026, 3, 2, 8, tzinfo=UTC)
Event: TypeAlias = tuple[int, str, int, str]
"""Id, account, second and type."""

PAID = Pattern.begin("open", name="paid").where("what = 'open'").followed_by("pay").where("what = 'pay'")
PAID = PAID.within("10 seconds")
UNPAID = Pattern.begin("open", name="unpaid").where("what = 'open'").not_followed_by("pay").where("what = 'pay'")
UNPAID = UNPAID.followed_by("close").where("what = 'close'").within("10 seconds")
DELAYED = OccurrencePattern.of("(open + 2s; pay)").named("delayed").taxonomy("what")
DURING = interval_pattern("EVENT PAL(open meets pay) WITHIN 1 hour").named("meets").taxonomy("what")
OPEN, PAY = (1, "é", 0, "open"), (2, "é", 3, "pay")
STREAM: dict[str, Any] = {"key": "account", "time": "at", "sequence": "id"}


def table(*rows: Event) -> pa.Table:
    """The events; each lasts three seconds."""
    timed = [(id_, account, _at(second), _at(second + 3), what) for id_, account, second, what in rows]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in timed], SCHEMA)


def _at(second: int) -> datetime:
    return START + timedelta(seconds=second)


def micros(second: int) -> int:
    """The time of a second, in microseconds since 1970."""
    return int(_at(second).timestamp()) * 1_000_000


def canonical(*values: str | bytes | int) -> bytes:
    """The identity of an event with these values, after `events.identity.canonical_bytes`."""
    encoded = [value.encode() if isinstance(value, str) else value for value in values]
    texts = [value for value in encoded if isinstance(value, bytes)]
    lengths = [len(value) if isinstance(value, bytes) else value for value in encoded]
    return b"".join(b"\1" + struct.pack("<q", length) for length in lengths) + b"".join(texts)


def identity(event: Event, ordinal: int = 0) -> bytes:
    """The identity of an event that has a sequence."""
    id_, account, second, _ = event
    return canonical(account, micros(second), ordinal, id_)


def unnumbered(event: Event, ordinal: int = 0) -> bytes:
    """The identity of an event without a sequence: its columns count."""
    id_, account, second, what = event
    return canonical(account, micros(second), ordinal, id_, micros(second + 3), what)


def interval(event: Event, ordinal: int = 0) -> bytes:
    id_, account, second, what = event
    return canonical(account, micros(second), micros(second + 3), id_, what, ordinal)


# The definition


WORD = st.integers(-(2**63), 2**63 - 1)
MEMBER = st.tuples(st.none() | st.binary(max_size=40), WORD, WORD)
MARKED = st.lists(MEMBER, min_size=1, max_size=4).filter(lambda row: any(event is not None for event, *_ in row))


def members_of(rows: list[list[tuple[bytes | None, int, int]]]) -> tuple[pa.Array, Members]:
    """The distinct events of the rows, and the rows' members, each with a mark before and one after."""
    flat = [member for row in rows for member in row]
    events = sorted({event for event, _, _ in flat if event is not None})
    number = np.array([-1 if event is None else events.index(event) for event, _, _ in flat], np.int32)
    before, after = (np.array([member[i] for member in flat], np.int64) for i in (1, 2))
    ends = np.cumsum([len(row) for row in rows], dtype=np.int64)
    members = Members(number, ends, (before,), (after,))
    return pa.array(events, pa.large_binary()), members


def identity_of(event: bytes | None) -> bytes | None:
    """The identity of an event with one column."""
    return None if event is None else canonical(event)


@given(st.lists(MARKED, max_size=5), st.text(max_size=20), st.sampled_from(["match", "late interval"]))
def test_ids_are_as_defined(rows: list[list[tuple[bytes | None, int, int]]], name: str, kind: str) -> None:
    """The ids are those of the definition in plain Python."""
    events, members = members_of(rows)
    known = identified(Ids.SIPHASH, Identifying([events], len(events)))
    found = hex_ids(known.hashes(members, purpose(name, kind))).to_pylist()
    assert found == [
        id_reference(name, kind, [Member(identity_of(event), marks) for event, *marks in row]) for row in rows
    ]


@given(st.lists(MARKED, max_size=5), st.text(max_size=20))
def test_ids_of_earlier_versions_are_as_defined(rows: list[list[tuple[bytes | None, int, int]]], name: str) -> None:
    """Ids 1 are BLAKE2b of all bytes, one event after the other."""
    events, members = members_of(rows)
    key = purpose(name, "match")
    expected = []
    for row in rows:
        each = ((identity_of(event) or b"", a, b) for event, a, b in row)
        content = b"".join(struct.pack("<q", a) + event + struct.pack("<q", b) for event, a, b in each)
        expected.append(blake2b(content, digest_size=16, person=key).hexdigest())
    known = identified(Ids.BLAKE2B, Identifying([events], len(events)))
    assert hex_ids(known.hashes(members, key)).to_pylist() == expected


COLUMN = st.sampled_from(
    [
        *((pa.int32(), st.integers(-(2**31), 2**31 - 1)), (pa.bool_(), st.booleans()), (pa.float64(), st.floats())),
        *((pa.decimal128(38, 2), st.decimals(-9, 9, places=2)), (pa.timestamp("ns"), WORD), (pa.string(), st.text())),
        *((pa.large_binary(), st.binary(max_size=40)), (pa.list_(pa.string()), st.lists(st.text(max_size=9)))),
        (pa.struct([("a", pa.int8()), ("b", pa.string())]), st.fixed_dictionaries({"a": st.just(7), "b": st.text()})),
    ]
)
"""A type, and values of it."""


@given(st.data(), st.lists(COLUMN, min_size=1, max_size=12), st.integers(1, 5), st.integers(1, 150))
def test_events_are_hashed_as_their_canonical_bytes(
    data: st.DataObject, columns: list[tuple[pa.DataType, st.SearchStrategy[Any]]], count: int, times: int
) -> None:
    """The hash of an event, made from its columns, is that of its canonical bytes, whatever the types, the places of
    NULLs and the number of events.
    """
    rows = [data.draw(st.lists(st.none() | values, min_size=count, max_size=count)) for _, values in columns]
    arrays = [pa.array(values, type_) for values, (type_, _) in zip(rows, columns, strict=True)]
    many = [pa.concat_arrays([array] * (times + 1)).slice(1, count * times) for array in arrays]
    known = identified(Ids.SIPHASH, Identifying(many, count * times))
    found = hex_ids(known.hashes(single(range(count * times)), purpose("p", "match"))).to_pylist()
    some = canonical_bytes(many, count * times).slice(0, count).to_pylist()
    assert found == [id_reference("p", "match", [Member(content)]) for content in some] * times


# Golden ids: they are keys in the databases of users, and never change


def of_stages(*events: Event) -> pa.Table:
    live = Matcher(PAID, SCHEMA, **STREAM, lateness="0 seconds", outputs=("matches", "timeouts", "late"))
    return pa.concat_tables([live.process(table(event)) for event in events])


def in_real_time(*events: Event) -> pa.Table:
    live = Matcher(UNPAID, SCHEMA, **STREAM, lateness="10 seconds", consistency="realtime")
    return pa.concat_tables([live.process(table(event)) for event in events])


def of_intervals(*events: Event) -> pa.Table:
    live = IntervalMatcher(DURING, SCHEMA, key="account", time=("at", "until"), lateness="1 second")
    return pa.concat_tables([live.process(table(event)) for event in events])


LATER, CLOSE = (9, "é", 50, "other"), (3, "é", 2, "close")
UNTIL = micros(10)
GOLDEN: dict[str, tuple[Callable[[], pa.Table], list[str], list[Member]]] = {
    "paid match": (
        lambda: of_stages(OPEN, PAY),
        ["742fd42066bedfa91bbb3d7e51fd501b"],
        [Member(identity(OPEN), [0]), Member(identity(PAY), [1])],
    ),
    "paid timeout": (
        lambda: of_stages(OPEN, LATER),
        ["515bc0ecb21233b3f20ea0dd4d1f15ae"],
        [Member(identity(OPEN), [0, UNTIL])],
    ),
    "paid late": (lambda: of_stages(LATER, PAY), ["4d0a86929917f7d1db7f29b29847b6b7"], [Member(identity(PAY))]),
    "unpaid match": (
        lambda: in_real_time(OPEN, CLOSE, (4, "é", 1, "pay")),
        ["0410060893a2790ac0b339c8f931afce", "0410060893a2790ac0b339c8f931afce"],
        [Member(identity(OPEN), [0]), Member(identity(CLOSE), [2])],
    ),
    "delayed match": (
        lambda: detect(table(OPEN, PAY), DELAYED, key="account", time="at"),
        ["93ab85003259f4f64bdf1dec2940a5d5"],
        [
            *(Member(None, [2, 2_000_000]), Member(unnumbered(OPEN), [0, 0]), Member(None, [1, 0])),
            Member(unnumbered(PAY), [0, 0]),
        ],
    ),
    "meets interval": (
        lambda: detect(table(OPEN, PAY), DURING, key="account", time=("at", "until")),
        ["e3b71274a985430200cd45be2ae0c384"],
        [Member(interval(OPEN)), Member(interval(PAY))],
    ),
    "meets late interval": (
        lambda: of_intervals(LATER, PAY),
        ["183a54c05a2ffc206c8af723fedbff49"],
        [Member(interval(PAY))],
    ),
}
"""The pattern and the kind of its ids → what gives the rows, their ids, and what the ids are made of."""


@pytest.mark.parametrize("what", GOLDEN)
def test_golden_ids(what: str) -> None:
    """Each kind of row has the id that it has always had, which is the defined one."""
    rows, expected, members = GOLDEN[what]
    assert rows().column("match_id").to_pylist() == expected
    name, _, kind = what.partition(" ")
    assert {id_reference(name, kind, members)} == {*expected}


def test_golden_ids_of_open_partial_matches(tmp_path: Path) -> None:
    """The id of an open partial match is made of the events that it has taken and its deadline, the series of the first
    event alone.
    """
    with open_host(f"sqlite:///{tmp_path}/store.db") as host:
        host.input("events", SCHEMA, time="at", sequence="id")
        host.deploy(PAID, input="events", key="account")
        host.feed(table(OPEN), input="events")
        ((name,),) = host.sql("SELECT open_table FROM patterns").to_pandas().to_numpy().tolist()
        (row,) = host.sql(f"SELECT id, series FROM {name}").to_pylist()
    assert row == {"id": "553b920bf4499a36f40412947dc8ee1b", "series": "8045a09e7965f922f5b5ad2670ab6455"}
    assert row["id"] == id_reference("paid", "open", [Member(identity(OPEN), [0, UNTIL])])
    assert row["series"] == id_reference("paid", "series", [Member(identity(OPEN))])


def test_equal_events_have_ordinals() -> None:
    """Events that are equal in all columns differ by their ordinals, so their rows have different ids."""
    again = Pattern.begin("twice", name="again").times(2)
    with pytest.warns(CepheidWarning, match="2 events agree in key and time"):
        found = detect(table(PAY, PAY), again, key="account", time="at").column("match_id").to_pylist()
    assert found == [id_reference("again", "match", [Member(unnumbered(PAY, ordinal), [0]) for ordinal in (0, 1)])]
    late = of_stages(LATER, PAY, PAY).column("match_id").to_pylist()
    assert late == [id_reference("paid", "late", [Member(identity(PAY, ordinal))]) for ordinal in (0, 1)]


ONE = GOLDEN["paid match"][1]
BEFORE = Pattern.begin("any", name="paid").where("what = 'any'").optional()
OTHER_NAMES = Pattern.begin("o", name="paid").where("what = 'open'").followed_by("p").where("what = 'pay'")


@pytest.mark.parametrize(
    ("pattern", "options", "same"),
    [
        (PAID.named("paid", version="2"), {}, True),
        (PAID.within("5 seconds"), {"measures": {"paid": "pay.id"}, "columns": ["id"]}, True),
        (OTHER_NAMES, {}, True),
        (PAID.named("bought"), {}, False),
        (BEFORE.followed_by("open").where("what = 'open'").followed_by("pay").where("what = 'pay'"), {}, False),
        (PAID, {"sequence": None}, False),
        (PAID, {"sequence": ["id", "until"]}, False),
    ],
)
def test_what_ids_depend_on(pattern: Pattern, options: dict[str, Any], *, same: bool) -> None:
    """The same events give the same id unless the pattern's name, a stage's number or the sequence is another one."""
    found = detect(table(OPEN, PAY), pattern, **{**STREAM, **options}).column("match_id").to_pylist()
    assert len(found) == 1
    assert (found == ONE) is same


def test_columns_count_without_a_sequence() -> None:
    """Without a sequence the chosen columns identify an event."""
    unordered = {**STREAM, "sequence": None}
    found = [detect(table(OPEN, PAY), PAID, columns=names, **unordered) for names in (["id"], ["id", "what"], ["id"])]
    first, second, again = (rows.column("match_id").to_pylist() for rows in found)
    assert first == again != second
