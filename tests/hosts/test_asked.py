"""Filters that have no SQL are asked once for each value of an event: in process, in matchers, on a durable host."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.hosts.asked_shop import GIVEN, OTHERS, STAGES, intervals, occurrences, stages, taken
from tests.hosts.semantic_shop import SCHEMA, START, log

from cepheid import Matcher, OccurrencePattern, Pattern, PatternError, detect, semantic
from cepheid.detect import plan_of
from cepheid.families import known_family_of
from cepheid.host import open_host
from cepheid.knowledge.filters.syntax import parsed
from cepheid.knowledge.question import Question
from cepheid.requests.request_of import request_of

OPTIONS: dict[str, Any] = {"key": "user", "columns": ["id"]}


def test_in_process() -> None:
    """Patterns of all kinds."""
    assert taken(detect(log(), stages(), time="at", **OPTIONS)) == STAGES
    assert taken(detect(log(), occurrences(), time="at", **OPTIONS)) == OTHERS
    assert taken(detect(log(), intervals(), time=("at", "until"), **OPTIONS)) == OTHERS
    both = detect(log(), {"one": stages(), "other": stages().named("x")}, time="at", **OPTIONS)
    assert len(both) == 2 * len(STAGES)


def test_matcher() -> None:
    """Events come one by one."""
    matcher = Matcher(stages(), SCHEMA, lateness="0 s", time="at", **OPTIONS)
    found = [matcher.process(log().slice(row, 1)) for row in range(len(log()))]
    assert taken(pa.concat_tables([*found, matcher.finish()])) == STAGES


def test_durable(tmp_path: Path) -> None:
    """A host that is opened again for each event."""
    store = f"sqlite:///{tmp_path}/shop.db"
    with open_host(store) as host:
        host.input("log", SCHEMA, time="at", sequence="id")
        host.deploy(stages(), input="log", key="user", columns=["id"])
    for row in range(len(log())):
        with open_host(store) as host:
            host.feed(log().slice(row, 1), input="log", position=row + 1)
    with open_host(store) as host:
        host.advance_time(START + timedelta(days=1))
        assert len(host.sql("SELECT stages FROM matches_stages")) == len(STAGES)


def test_explain() -> None:
    """The plan says what is asked, and of which columns."""
    plan = plan_of(log(), request_of(stages(), time="at", **OPTIONS))
    text = known_family_of(stages()).explain(stages(), plan).text
    assert "[matches(?t, ?x) asked once for each value of item, 2 cases of the knowledge]" in text
    assert "asked once for each value of price]" in text


def test_asked_once() -> None:
    """A value of which the answer is known is not asked again."""
    question = Question((("t", "item"),), parsed('matches(?t, "^d")', {}))
    items = pa.array(["dune", "alien", None, "dune"])
    for _ in range(2):
        assert question.answers({"item": items}).to_pylist() == [True, False, False, True]
    assert question.answers({"item": items.slice(0, 0)}).to_pylist() == []
    other = Question((("t", "item"), ("t", "name")), ())
    assert other.answers({"item": items, "name": pa.array(["dune", "x", None, "dun"])}).to_pylist() == [
        *(True, False, False, False)
    ]


def test_two_events() -> None:
    """Built-ins without SQL over two events are refused by stages, and asked in sessions by occurrences."""
    both = "text(?a, ?t) ∧ text(?b, ?u) ∧ upperCase(?l, ?t) ∧ matches(?u, ?l)"
    pattern = Pattern.begin("a", **GIVEN).followed_by("b").where(semantic(both))
    message = r"asks more than the events of a partial match say: (upperCase|matches) has no SQL \(stage 'b', where\)"
    with pytest.raises(PatternError, match=message):
        detect(log(), pattern, time="at", **OPTIONS)
    grows = OccurrencePattern.of(f"((?a: Event ; ?b: Event)_1d)[{both}]", **GIVEN).policy("unrestricted")
    assert plan_of(log(), request_of(grows, time="at", **OPTIONS)).semantics is not None
