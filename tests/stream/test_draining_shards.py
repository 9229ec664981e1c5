"""Shards of a pattern that drains, called in the way Spark calls them."""

from __future__ import annotations

from datetime import timedelta
from itertools import chain

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hosts.patterns_and_events import microseconds
from tests.live.events import PAIR, at
from tests.live.events import SCHEMA as PAIR_SCHEMA
from tests.live.events import events as pair_events
from tests.live.test_any_delivery import counted
from tests.searching import share
from tests.stream.test_shard import FOLLOWED, OUTPUTS, Stream

from cepheid import Pattern, detect
from cepheid.hosts.shards.log import MatcherCache

LOOP = Pattern.begin("a").where("x = 'a'").one_or_more().followed_by("b").where("x = 'b'").within("10 seconds")
ABSENT = PAIR.not_followed_by("c").where("x = 'c'")
Row = tuple[int, str, float, str]


@st.composite
def deliveries(draw: st.DrawFn) -> list[list[Row]]:
    """Micro-batches with events that come up to four seconds late; none is later than the lateness allows."""
    times = sorted(draw(st.lists(st.integers(0, 80), min_size=2, max_size=40)))
    rows = [(i, draw(st.sampled_from("pq")), time / 2, draw(st.sampled_from("aabbcz"))) for i, time in enumerate(times)]
    order = sorted(rows, key=lambda row: row[2] + draw(st.integers(0, 8)) / 2)
    cuts = sorted(draw(st.sets(st.integers(1, len(rows) - 1), min_size=1, max_size=6)))
    return [order[start:end] for start, end in zip([0, *cuts], [*cuts, len(order)], strict=True)]


@share(40)
@pytest.mark.parametrize("pattern", [PAIR, LOOP, ABSENT], ids=["pair", "loop", "absent"])
@given(data=st.data(), batches=deliveries())
def test_a_pattern_drains(data: st.DataObject, pattern: Pattern, batches: list[list[Row]]) -> None:
    """What starts with an event from before the switch is found, also if the event still waited for the watermark then;
    nothing else is. At the end no state is left.
    """
    stream = Stream(pattern, PAIR_SCHEMA, FOLLOWED, timedelta(seconds=4), outputs=("matches", "timeouts"))
    stream.small_log = data.draw(st.sampled_from([0, 3000, stream.small_log]))
    switch = data.draw(st.integers(1, len(batches)))
    workers = MatcherCache(), MatcherCache()
    found = [stream.batch(pair_events(*batch)) for batch in batches[:switch]]
    stream.matching = stream.matching._replace(drains=True)
    for batch in [*batches[switch:], [(-1, "end", 100.0, "z")]]:
        stream.cache = data.draw(st.sampled_from([MatcherCache(), *workers]))
        found.append(stream.batch(pair_events(*batch)))
    stream.watermark = 1 + microseconds(at(100)) // 1000
    found.append(stream.batch(PAIR_SCHEMA.empty_table()))
    rows = sorted(chain.from_iterable(batches))
    expected = detect(pair_events(*rows), pattern, as_of=at(100), outputs=OUTPUTS[:2], **FOLLOWED)
    before = {row[0] for row in chain.from_iterable(batches[:switch])}
    firsts = [stages[0][1][0]["id"] for stages in expected.column("stages").to_pylist()]
    expected = expected.filter(pa.array([first in before for first in firsts], pa.bool_()))
    emitted = [part for part in found if part.num_rows] or [expected.slice(0, 0)]
    assert counted(pa.concat_tables(emitted)) == counted(expected)
    assert stream.states == {}
