"""A key with copies has the rows that it has without them."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.hosts.patterns_and_events import FIRST, SCHEMA, Case, cases, events, microseconds
from tests.live.test_any_delivery import counted, table
from tests.searching import share
from tests.stream.test_shard import OUTPUTS, Stream, deliveries

from cepheid import CepheidWarning, Skip, detect
from cepheid.events.batch import Batch
from cepheid.hosts.shards.arrow_stream import to_stream
from cepheid.hosts.shards.log import MatcherCache
from cepheid.hosts.spark.stream.copies.assignment import Assignment, Decision
from cepheid.hosts.spark.stream.copies.routing import Marking, routed
from cepheid.hosts.spark.stream.load.hot_keys import key_hash
from cepheid.hosts.spark.stream.shard import Shard
from cepheid.plan.stages.division.starts import Starts, starts_of

SECOND = timedelta(seconds=1)
STANDBYS = 3


def decision(key: str, copies: Sequence[int], shard: int) -> Decision:
    """That these standbys shall hold copies of the key, whose original shard this is."""
    return Decision(0, shard, key_hash((key,)), tuple(copies))


def shard_of(key: str, shards: int) -> int:
    """The shard in which a `Stream` puts the key."""
    return sum(map(ord, key)) % shards


@dataclass
class CopiedStream(Stream):
    """A query without Spark, some of whose keys have copies in standbys."""

    assignment: Assignment = field(default_factory=Assignment)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.runner = replace(self.runner, marks_starts=True)
        self.matching = self.matching._replace(runner=pickle.dumps(self.runner))
        starts = starts_of(self.plan)
        assert isinstance(starts, Starts)
        self.marking = Marking(self.runner.compiled.may_start, starts.window)

    def decide(self, *decided: Decision) -> None:
        """Changes the copies from the next micro-batch on, as `CopiesFolder` does."""
        watermark = self.watermark * 1000
        received = watermark + self.lateness // timedelta(microseconds=1) + 999
        self.assignment = self.assignment.since({0: watermark - self.marking.window}).after(decided, received)

    def called(self, shard: int) -> Shard:
        return super().called(shard)._replace(is_standby=shard >= self.shards)

    def values(self, rows: pa.Table) -> dict[int, bytes]:
        keys = rows.column(self.options["key"]).to_pylist()
        shards = np.array([shard_of(name, self.shards) for name in keys], np.int32)
        keyed = self.assignment.of_pattern(0)
        batch, places = routed(Batch(self._lifted(rows)), shards, keyed, self.marking, self.shards)
        return {
            place: to_stream(batch.take(pa.array(np.flatnonzero(places == place))).data)
            for place in np.unique(places).tolist()
        }


@st.composite
def divisible(draw: st.DrawFn) -> Case:
    case = draw(cases())
    pattern = replace(case.pattern.skip(Skip.no_skip()), without=None)
    if pattern.window is None:
        pattern = pattern.within("9 seconds")
    return Case(pattern, case.checks)


@share(30)
@given(data=st.data(), case=divisible(), lateness=st.sampled_from([0, 1, 5]), in_sequence=st.booleans())
def test_any_copies(*, data: st.DataObject, case: Case, lateness: int, in_sequence: bool) -> None:
    """Any copies and releases between any micro-batches, with any restarts: the rows are those of a finite input, and
    late events and ties are reported once. When time has passed all deadlines, no standby has state.
    """
    rows = data.draw(events(ties=True))
    options = {"key": "device", "time": "at", "sequence": "id" if in_sequence else None}
    stream = CopiedStream(case.pattern, SCHEMA, options, lateness * SECOND)
    found, late, in_time = [], [], []
    decisions = st.lists(
        st.tuples(st.sampled_from(["p", "q", "r"]), st.lists(st.integers(0, STANDBYS - 1), unique=True)), max_size=2
    )
    for batch in data.draw(deliveries(rows, lateness)):
        stream.decide(*(decision(key, copies, shard_of(key, stream.shards)) for key, copies in data.draw(decisions)))
        for row in batch:
            (late if microseconds(row["at"]) < stream.watermark * 1000 else in_time).append(row)
        if data.draw(st.booleans()):
            stream.cache = MatcherCache()  # a restart
        found.append(stream.batch(table(batch)))
    as_of = FIRST + 1000 * SECOND
    stream.watermark = microseconds(as_of) // 1000 + 1
    found += [stream.batch(SCHEMA.empty_table())]
    given_ = pa.concat_tables(
        [part for part in found if part.num_rows] or [pa.table({"kind": pa.array([], pa.string())})]
    )
    kinds = given_.column("kind").to_pylist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)
        in_order = sorted(in_time, key=lambda row: (row["device"], row["at"], row["id"]))
        expected = detect(table(in_order), case.pattern, outputs=OUTPUTS, as_of=as_of, **options)
    not_late = given_.filter(pa.array([kind != "late" for kind in kinds], pa.bool_()))
    assert counted(not_late) == counted(expected)
    late_ids = [row["event"]["id"] for row in given_.to_pylist() if row["kind"] == "late"]
    assert sorted(late_ids) == sorted(row["id"] for row in late)
    assert not any(shard >= stream.shards for shard in stream.states)
    if stream.counts:
        assert stream.counts["late"] == len(late)
        assert stream.counts["matches"] + stream.counts["timeouts"] == not_late.num_rows
