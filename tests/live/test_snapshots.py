"""Snapshots: a restored matcher continues; a damaged snapshot, or one of another matcher, is refused without any
effect.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scripts.stored_snapshots import KINDS, TOLD, go_on, matcher_of
from tests.live.events import SCHEMA, events, matcher

from cepheid import Limits, Matcher, OccurrencePattern, Pattern, Skip, SnapshotError
from cepheid.intervals import IntervalMatcher, interval_pattern
from cepheid.matchers.snapshot import FORMAT, Snapshot, differences, from_bytes, to_bytes

pytestmark = pytest.mark.filterwarnings("ignore:a matcher keeps what is open")

STORED = Path(__file__).parent / "snapshots"
LOOP = (
    Pattern.begin("a")
    .where("x = 'a'")
    .followed_by("b")
    .where("x <> 'a' AND x > coalesce(b.x, '') AND id > count(b)")
    .one_or_more()
    .followed_by("c")
    .where("x = 'c' AND id % 2 = a.id % 2")
    .within("100 seconds")
    .skip(Skip.to_next())
)


def busy(**options: Any) -> Matcher:
    """A matcher of LOOP with partial matches of two keys, withheld matches, and an event that waits."""
    live = matcher(LOOP, **{"sequence": None, **options})
    live.process(events((1, "p", 0, "a"), (2, "p", 1, "b"), (3, "q", 1, "a"), (4, "p", 2, "bb"), (5, "p", 3, "x")))
    live.process(events((6, "p", 4, "a"), (7, "p", 4.5, "b"), (8, "p", 4.5, "b"), (10, "p", 5, "c"), (9, "q", 6, "b")))
    return live


REST = events((11, "p", 7, "c"), (13, "q", 7, "c"), (12, "q", 8, "a"), (14, "p", 200, "x"))


# Continuing from a snapshot


def test_a_restored_matcher_continues() -> None:
    """A matcher restored from a snapshot emits what the original emits, and takes an equal snapshot."""
    first, second = busy(), matcher(LOOP, sequence=None)
    second.restore(first.snapshot())
    assert second.counts == first.counts
    assert second.snapshot() == first.snapshot()
    assert second.process(REST).to_pylist() == first.process(REST).to_pylist() != []
    assert second.finish().to_pylist() == first.finish().to_pylist()
    assert second.counts == first.counts


def test_strings_across_events() -> None:
    """Conditions compare strings from before a snapshot with later ones, whatever their internal codes."""
    pattern = Pattern.begin("a").next("b").where("x < a.x").next("c").where("x > a.x AND x <> 'z'")
    options: dict[str, Any] = {"outputs": None, "measures": {"text": "concat(a.x, b.x, c.x)"}}
    found = []
    live = matcher(pattern, **options)
    for i, letter in enumerate("qmzmaézyéz"):
        found += live.process(events((i, "p", i, letter))).column("text").to_pylist()
        state = live.snapshot()
        live = matcher(pattern, **options)
        live.restore(state)
    assert found == ["maé", "zyé"]


def test_a_snapshot_replaces_what_was_there() -> None:
    """Restoring removes everything that the matcher had before."""
    live, fresh = busy(), matcher(LOOP, sequence=None)
    live.restore(fresh.snapshot())
    assert live.counts == fresh.counts
    assert live.process(REST) == fresh.process(REST)


def test_limits_and_lateness_may_be_others() -> None:
    """A matcher with other limits and another lateness can restore the snapshot; its own settings apply from
    then on.
    """
    live = matcher(LOOP, sequence=None, lateness="3 seconds", limits=Limits(max_partial_matches=1, on_limit="drop"))
    live.restore(busy().snapshot())
    live.process(REST)
    assert live.counts.dropped_partial_matches > 0


# Formats of earlier releases


@pytest.mark.parametrize("path", sorted(STORED.glob("*.snapshot")), ids=lambda path: path.stem)
def test_stored_snapshots(path: Path) -> None:
    """A snapshot of every released format can be restored, and the matcher then finds the right matches."""
    kind = path.name.partition(".")[0]
    live = matcher_of(kind)
    live.restore(path.read_bytes())
    expected = [json.loads(line) for line in path.with_suffix(".jsonl").read_text("utf-8").splitlines()]
    assert go_on(kind, live) == expected
    assert {row["kind"] for row in expected} >= TOLD[kind]


def test_each_kind_has_a_stored_snapshot() -> None:
    """There is also a stored snapshot of the current format."""
    assert {path.name for path in STORED.glob(f"*.{FORMAT}.snapshot")} == {
        f"{kind}.{FORMAT}.snapshot" for kind in KINDS
    }


@pytest.mark.parametrize("kind", KINDS)
def test_ids_go_from_snapshot_to_snapshot(kind: str) -> None:
    """A matcher goes on with the ids of the version that wrote its snapshot, and says so in its own snapshots."""
    old, expected = (STORED / f"{kind}.2.{suffix}" for suffix in ("snapshot", "jsonl"))
    first, second, fresh = (matcher_of(kind) for _ in range(3))
    first.restore(old.read_bytes())
    assert (from_bytes(first.snapshot()).header["ids"], from_bytes(fresh.snapshot()).header["ids"]) == (1, 2)
    second.restore(first.snapshot())
    assert go_on(kind, second) == [json.loads(line) for line in expected.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("written", [3, 0, "1", 1.0, True, None])
def test_unknown_ids(written: Any) -> None:
    """A snapshot with ids that this version cannot make is refused."""
    live = busy()
    snapshot = from_bytes(live.snapshot())
    snapshot.header["ids"] = written
    what = f"the snapshot has ids {json.dumps(written)}, and this version makes ids 1 and 2: a newer version of Cepheid"
    assert refused(live, to_bytes(snapshot)).startswith(what)


# Damage


def refused(live: Matcher, data: bytes) -> str:
    """The reason why the bytes are refused; the state of the matcher does not change."""
    before = live.snapshot()
    with pytest.raises(SnapshotError) as caught:
        live.restore(data)
    assert live.snapshot() == before
    return str(caught.value)


def test_truncated() -> None:
    """Every truncated snapshot is refused."""
    live = busy()
    data, counts = live.snapshot(), live.counts
    for length in range(len(data)):
        with pytest.raises(SnapshotError):
            live.restore(data[:length])
    assert live.counts == counts
    assert live.snapshot() == data
    assert refused(live, b"") == (
        "these 0 bytes are not a snapshot of a matcher. "
        "Start without it, or restore one that the same kind of matcher has written"
    )


def test_flipped() -> None:
    """Any changed byte is detected."""
    live = busy()
    data = live.snapshot()
    for at_ in range(len(data)):
        with pytest.raises(SnapshotError):
            live.restore(data[:at_] + bytes([data[at_] ^ 0x10]) + data[at_ + 1 :])
    assert live.snapshot() == data
    assert refused(live, data + b"\0").startswith("the snapshot is damaged: its digest does not agree with its ")


def test_another_format() -> None:
    """An unknown format is named in the error."""
    body = busy().snapshot()[:-16].replace(b'"format": 3', b'"format": 7')
    data = body + blake2b(body, digest_size=16).digest()
    message = refused(busy(), data)
    assert message.startswith("the snapshot has format 7, and this version reads formats up to 4. Start without it")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: matcher(LOOP.named("other"), sequence=None), 'pattern.name was "pattern" and is "other"'),
        (
            lambda: matcher(LOOP.within("9 seconds"), sequence=None),
            'pattern.within was "1 minute 40 seconds" and is "9 seconds"',
        ),
        (lambda: matcher(LOOP), 'sequence was [] and is ["id"]'),
        (lambda: matcher(LOOP, sequence=None, key="x"), 'key[0] was "k" and is "x"'),
        (lambda: matcher(LOOP, sequence=None, outputs=["matches"]), 'outputs was ["matches", "timeouts", "late"]'),
        (lambda: matcher(LOOP, sequence=None, columns=["id"]), 'columns was ["id", "k", "at", "x"] and is ["id"]'),
        (lambda: matcher(LOOP, sequence=None, time_zone="Asia/Tokyo"), 'time_zone was "UTC" and is "Asia/Tokyo"'),
        (lambda: matcher(LOOP, sequence=None, measures={"n": "max(b.at)"}), 'measures.n was null and is "max(b.at)"'),
        (
            lambda: Matcher(
                LOOP,
                SCHEMA.set(0, pa.field("id", pa.int32())),
                key="k",
                time="at",
                outputs=["matches", "timeouts", "late"],
            ),
            'columns.id was "int64" and is "int32"',
        ),
    ],
)
def test_another_matcher(other: Callable[[], Matcher], message: str) -> None:
    """The error says what differs between the two matchers."""
    reason = refused(other(), busy().snapshot())
    assert reason.startswith("the snapshot was made for another matcher: ")
    assert message in reason


FINE = SCHEMA.set(SCHEMA.get_field_index("at"), pa.field("at", pa.timestamp("ns", "UTC")))
PALS = interval_pattern("EVENT PAL(a one before b two)").taxonomy("x").within("1 day")
CUT: list[Callable[..., Any]] = [
    lambda **how: Matcher(Pattern.begin("a"), FINE, time="at", lateness="1 second", **how),
    lambda **how: Matcher(OccurrencePattern.of("a").taxonomy("x"), FINE, time="at", lateness="1 second", **how),
    lambda **how: IntervalMatcher(PALS, FINE, time=("at", "at"), lateness="1 second", **how),
]


@pytest.mark.parametrize("made", CUT)
@pytest.mark.parametrize(("before", "now"), [("us", None), (None, "us")])
def test_times_cut_otherwise(made: Callable[..., Any], before: str | None, now: str | None) -> None:
    """A snapshot of a matcher that cuts times is not for one that does not, and the other way round."""
    data = made(time_resolution=before).snapshot()
    with pytest.raises(SnapshotError) as caught:
        made(time_resolution=now).restore(data)
    change = f"time_resolution was {json.dumps(before)} and is {json.dumps(now)}"
    assert str(caught.value).startswith(f"the snapshot was made for another matcher: {change}")
    made(time_resolution=before).restore(data)


def test_measures_may_change() -> None:
    """A matcher with other measures can restore a snapshot if these need no other columns of the events."""
    pattern = Pattern.begin("a").where("x = 'a'").next("b").where("id > a.id")
    options: dict[str, Any] = {"sequence": None, "outputs": None, "columns": ["id"]}
    first = matcher(pattern, **options, measures={"n": "a.id"})
    first.process(events((1, "p", 0, "a")))
    second = matcher(pattern, **options, measures={"m": "a.id + 10 * b.id"})
    second.restore(first.snapshot())
    assert second.process(events((2, "p", 1, "b"), (3, "p", 9, "c"))).column("m").to_pylist() == [21]
    third = matcher(pattern, **options, measures={"n": "a.id", "x": "b.x"})
    assert 'measures.x was null and is "b.x"' in refused(third, first.snapshot())


def test_parameters_of_another_type() -> None:
    """Parameter values of different types make different patterns, even if Python considers the values equal."""
    pattern = Pattern.begin("a").where("id > $n").next("b")
    before, now = (matcher(pattern.with_parameters(n=value)) for value in (1, 1.0))
    assert "pattern.parameters.n was 1 and is 1.0" in refused(now, before.snapshot())
    assert differences({"key": [True]}, {"key": [1]}) == ["key[0] was true and is 1"]


def test_the_order_of_declarations_does_not_count() -> None:
    """Declaring parameters and types in another order gives the same pattern."""
    pattern = Pattern.begin("a").subtype("t").where("id > $n AND id < $m").next("b")
    first = matcher(pattern.taxonomy("x", {"u": "t", "v": "t"}).with_parameters(n=1, m=9))
    first.process(events((5, "p", 0, "u")))
    second = matcher(pattern.taxonomy("x", {"u": ["t"], "v": ["t"]}).with_parameters(m=9, n=1))
    second.restore(first.snapshot())
    assert second.counts == first.counts


@pytest.mark.parametrize("made_for", [None, "text", {}])
def test_made_for_something_else(made_for: Any) -> None:
    """A header with anything unexpected about what the snapshot was made for is refused."""
    live = busy()
    snapshot = from_bytes(live.snapshot())
    snapshot.header["made_for"] = made_for
    assert refused(live, to_bytes(snapshot)).startswith("the snapshot was made for another matcher: ")


def test_compiled_otherwise() -> None:
    """If a version numbers states or slots differently, arrays of an earlier version are not misread."""
    live = busy()
    snapshot = from_bytes(live.snapshot())
    snapshot.header["made_for"]["layout"] = "0" * 32
    assert refused(live, to_bytes(snapshot)) == (
        "the snapshot was made for another matcher: another version of Cepheid wrote it and compiles this pattern "
        "differently. Start without it"
    )


# Inconsistent parts under a valid digest


def _set(name: str, field: str | None, value: int) -> Callable[[Snapshot], None]:
    def change(snapshot: Snapshot) -> None:
        array = snapshot.arrays[name]
        (array if field is None else array[field])[-1] = value

    return change


def _replace(name: str, change: Callable[[Any], Any]) -> Callable[[Snapshot], None]:
    def replace(snapshot: Snapshot) -> None:
        part: Any = snapshot.arrays if name in snapshot.arrays else snapshot.batches
        part[name] = change(part[name])

    return replace


def _without(name: str) -> Callable[[Snapshot], None]:
    def remove(snapshot: Snapshot) -> None:
        for part in (snapshot.header, snapshot.arrays, snapshot.batches):
            part.pop(name, None)  # type: ignore[union-attr]

    return remove


PARTS = ("rows", "slots", "nodes", "keys", "completed", "totals", "names", "held", "now", "counts", "found", "kept")
BROKEN: dict[str, Callable[[Snapshot], None]] = {
    **{
        f"{array}.{field} {value}": _set(array, field, value)
        for array, fields in {
            "rows": ("state", "start", "node", "length", "whole"),
            "nodes": ("event", "stage", "parent", "holders"),
            "keys": ("live", "live_end", "completed", "completed_end"),
            "completed": ("start", "node", "length"),
        }.items()
        for field in fields
        for value in (-2, 1 << 30)
    },
    "slots -2": _set("slots", None, -2),
    "slots 2**62": _set("slots", None, 1 << 62),
    **{f"no {name}": _without(name) for name in PARTS},
    **{f"{name} cut": _replace(name, lambda part: part[:-1]) for name in ("rows", "slots", "nodes", "keys", "totals")},
    **{f"{name} as floats": _replace(name, lambda part: part.astype(float)) for name in ("slots", "totals")},
    "rows flat": _replace("rows", lambda part: part["state"].copy()),
    "slots flat": _replace("slots", lambda part: part.ravel()),
    "held cut": _replace("held", lambda part: part.slice(0, 1)),
    "held renamed": _replace("held", lambda part: part.rename_columns([f"{n}_" for n in part.schema.names])),
    "held without a column": _replace("held", lambda part: part.drop_columns(["_time"])),
    "waiting renamed": _replace("waiting", lambda part: part.rename_columns([f"{n}_" for n in part.schema.names])),
    "names cut": _replace("names", lambda part: part.slice(0, 1)),
    "names renumbered": _replace(
        "names", lambda part: pa.record_batch({"number": pa.array([0, 0], pa.int32()), "name": part.column("name")})
    ),
    "names beyond": _replace(
        "names", lambda part: pa.record_batch({"number": pa.array([0, 9], pa.int32()), "name": part.column("name")})
    ),
    "names far beyond": _replace(
        "names",
        lambda part: pa.record_batch({"number": pa.array([0, 2**31 - 1], pa.int32()), "name": part.column("name")}),
    ),
    "counts are text": lambda snapshot: snapshot.header.update(counts="none"),
    "now is text": lambda snapshot: snapshot.header.update(now="today"),
    "kept more": lambda snapshot: snapshot.header["kept"]["counts"].update(more=1),
}


@pytest.mark.parametrize("how", BROKEN)
def test_inconsistent_parts(how: str) -> None:
    """Bytes with a valid digest that are not a possible state of this matcher are refused, too."""
    live = busy()
    snapshot = from_bytes(live.snapshot())
    BROKEN[how](snapshot)
    assert refused(live, to_bytes(_again(snapshot))).startswith("the snapshot")


def _again(snapshot: Snapshot) -> Snapshot:
    return snapshot._replace(arrays={name: np.asarray(array) for name, array in snapshot.arrays.items()})


def test_snapshots_hold_no_python_objects() -> None:
    """An array of Python objects, which NumPy would unpickle, is neither written nor read."""
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        to_bytes(Snapshot({}, {"rows": np.array([object()])}, {}))


def test_all_parts_are_there() -> None:
    """The matcher whose snapshot is damaged above has something in every part."""
    snapshot = from_bytes(busy().snapshot())
    assert all(len(array) for array in snapshot.arrays.values())
    assert {*snapshot.arrays, *snapshot.batches, *snapshot.header} >= {*PARTS, "waiting"}


# In sets


SETS = Pattern.begin("a").where("x = 'a'").followed_by_any("b").where("x = 'b'").followed_by_any("c").where("x = 'c'")
OF_SETS: list[Callable[[dict[str, Any]], Any]] = [
    lambda state: state["nodes"]["event"].fill(99),
    lambda state: state["nodes"]["event"].fill(-1),
    lambda state: state["nodes"]["before"].fill(7),
    lambda state: state["nodes"]["beside"].fill(7),
    lambda state: state["nodes"]["stage"].fill(-1),
    lambda state: state["nodes"]["start"][1:].fill(10**12),
    lambda state: state["heads"].fill(99),
    lambda state: state.update(heads=state["heads"].astype(np.int64)),
    lambda state: state.update(now=state["now"][:0]),
]


def in_sets() -> Matcher:
    """A matcher with three open partial matches, which are stored in sets."""
    live = matcher(SETS.within("100 seconds"), sequence=None, outputs=None)
    live.process(events((1, "p", 0, "a"), (2, "p", 1, "a"), (3, "p", 2, "b"), (4, "p", 3, "x")))
    return live


def test_sets_are_restored() -> None:
    """Sets of partial matches are restored, and give the matches that they would have given."""
    rest = events((5, "p", 4, "c"), (6, "p", 50, "x"))
    restored = matcher(SETS.within("100 seconds"), sequence=None, outputs=None)
    restored.restore(in_sets().snapshot())
    found = restored.process(rest)
    assert found.num_rows == 2
    assert found == in_sets().process(rest)


def test_sets_with_an_expired_part() -> None:
    """In a union of two sets, the set with the earlier starts has expired; the other one continues."""
    pattern = Pattern.begin("a").one_or_more().followed_by("b").where("x = 'b'").next("c").within("4 seconds")
    rows = [(second, "p", second, "a") for second in range(1, 6)]
    live = matcher(pattern, outputs="matches")
    for row in rows:
        live.process(events(row))
    live.restore(live.snapshot())
    found = live.process(events((6, "p", 6, "b"), (7, "p", 7, "c")))
    other = matcher(pattern, outputs="matches").process(events(*rows, (6, "p", 6, "b"), (7, "p", 7, "c")))
    assert len(found) > 0
    assert sorted(found.column("match_id").to_pylist()) == sorted(other.column("match_id").to_pylist())


@pytest.mark.parametrize("break_", OF_SETS)
def test_inconsistent_sets(break_: Callable[[dict[str, Any]], Any]) -> None:
    """Nodes that refer to missing nodes, or whose starts disagree, are refused; the matcher is unchanged."""
    snapshot = from_bytes(in_sets().snapshot())
    arrays: dict[str, Any] = {name: array.copy() for name, array in snapshot.arrays.items()}
    break_(arrays)
    live = in_sets()
    before = live.snapshot()
    with pytest.raises(SnapshotError, match="the snapshot's"):
        live.restore(to_bytes(Snapshot(snapshot.header, arrays, snapshot.batches)))
    assert live.snapshot() == before


@pytest.mark.parametrize("given", ["text", None, 3])
def test_restore_takes_only_bytes(given: Any) -> None:
    """Every kind of bytes can be restored; anything else is refused, and the error names its type."""
    live = in_sets()
    live.restore(memoryview(live.snapshot()))  # type: ignore[arg-type]
    with pytest.raises(SnapshotError, match=f"a snapshot is bytes, as .* got {type(given).__name__}"):
        live.restore(given)
