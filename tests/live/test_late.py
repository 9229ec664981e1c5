"""Ids of late events: each event has its own, however the events are split into calls."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.live.events import at, events, matcher

from cepheid import Matcher, SnapshotError
from cepheid.events import late_ordinals as late
from cepheid.events.late_ordinals import LateOrdinals
from cepheid.matchers.snapshot import from_bytes, to_bytes

LATE = [(1, "p", 1, "a"), (2, "p", 2, "b"), (1, "p", 1, "a"), (2, "p", 2, "b"), (1, "q", 1, "a"), (1, "p", 1, "a")]


@given(came=st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=20), data=st.data())
def test_any_split(came: list[bytes], data: st.DataObject) -> None:
    """The ordinals of equal events differ. They do not depend on the split into calls or on snapshots in between, also
    when counting restarts after MOST events.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(late, "MOST", 3)
        whole = LateOrdinals().of(pa.array(came, pa.large_binary())).tolist()
        rest, found, ordinals = came, list[int](), LateOrdinals()
        while rest:
            size = data.draw(st.integers(1, 4))
            part, rest = rest[:size], rest[size:]
            found += ordinals.of(pa.array(part, pa.large_binary())).tolist()
            ordinals = LateOrdinals.restored(ordinals.count, ordinals.listed)
    assert found == whole
    assert len({*zip(came, whole, strict=True)}) == ordinals.count == len(came)


def ids(live: Matcher, *rows: Any) -> list[str]:
    found: list[str] = live.process(events(*rows)).column("match_id").to_pylist()
    return found


@pytest.mark.parametrize("consistency", [None, "conservative", "realtime"])
@pytest.mark.parametrize("sequence", [None, "id"])
def test_calls(consistency: str | None, sequence: str | None) -> None:
    """The same late events have the same ids in one call and in several."""
    found = []
    for size in (1, 4, 6):
        live = matcher(consistency=consistency, sequence=sequence)
        live.advance_time(at(100))
        found.append([one for i in range(0, len(LATE), size) for one in ids(live, *LATE[i : i + size])])
    assert found[0] == found[1] == found[2]
    assert len({*found[0]}) == len(LATE)


@pytest.mark.parametrize("consistency", [None, "realtime"])
def test_events_of_one_sequence(consistency: str | None) -> None:
    """Events with the same sequence but different other columns have different ids."""
    live = matcher(consistency=consistency)
    live.advance_time(at(100))
    assert len({*ids(live, (1, "p", 1, "a"), (1, "p", 1, "b")), *ids(live, (1, "p", 1, "c"))}) == 3


@pytest.mark.parametrize("consistency", [None, "realtime"])
def test_snapshots_of_former_versions(consistency: str | None) -> None:
    """After a snapshot that does not list the late events, the ids of further late events differ from all
    earlier ones.
    """
    live = matcher(consistency=consistency)
    live.advance_time(at(100))
    before = ids(live, *LATE)
    snapshot = from_bytes(live.snapshot())
    del snapshot.batches["late"]  # type: ignore[attr-defined]
    live.restore(to_bytes(snapshot))
    assert live.counts.late == len(LATE)
    assert not {*before} & {*ids(live, *LATE)}


def test_more_than_there_were() -> None:
    """A snapshot that lists more late events than it counts is refused."""
    live = matcher()
    live.advance_time(at(100))
    ids(live, *LATE)
    snapshot = from_bytes(live.snapshot())
    snapshot.header["counts"]["late"] = 1
    with pytest.raises(SnapshotError, match="the snapshot's late events do not agree with its count of them"):
        live.restore(to_bytes(snapshot))
