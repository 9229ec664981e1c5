"""`detect` finds occurrences in tables in this process."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cepheid import (
    CepheidWarning,
    ConditionError,
    EventError,
    LimitExceeded,
    Limits,
    Matcher,
    OccurrencePattern,
    Pattern,
    PatternError,
    Report,
    SchemaError,
    detect,
    event,
)
from cepheid.compile.occurrences.compiled import compile_occurrences
from cepheid.events.batch import Schema
from cepheid.events.order import Ordering
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.in_process.detect import ordered_batches
from cepheid.hosts.in_process.held_bits import HeldBits
from cepheid.hosts.in_process.prepare import TimedEvents
from cepheid.kernel.arrays import FOREVER, Visits
from cepheid.knowledge.events.mapping import EventMapping
from cepheid.knowledge.knowledge import Knowledge
from cepheid.lang.duration import LONGEST
from cepheid.matchers.occurrences.detector import OccurrenceDetector
from cepheid.plan.occurrences.build import build_occurrence_plans
from cepheid.plan.occurrences.plans import OccurrencePlans
from cepheid.plan.pattern_request import PatternRequest, PlanOptions
from cepheid.plan.plan_set import relevant_to_any
from occurrences.shop import ROWS, at, found, shop, spans

SESSION = "((?l:Login; ?o:Logout)[l.user = o.user] -[b.user = l.user] ?b:Buy)"


def test_a_row_of_an_occurrence() -> None:
    """A row has the times, a struct for each variable that is visible outside, and the events in order."""
    (row,) = found(SESSION)
    assert len(row.pop("match_id")) == 32
    login = {"at": at(1), "type": "Login", "user": "ann", "price": None}
    logout = {"at": at(5), "type": "Logout", "user": "ann", "price": None}
    assert row == {
        "match_start": at(1),
        "match_end": at(5),
        "detected_at": at(5),
        "l": login,
        "o": logout,
        "events": [
            {"type": "Login", "time": at(1), "user": "ann", "price": None},
            {"type": "Logout", "time": at(5), "user": "ann", "price": None},
        ],
    }


def test_each_key_alone() -> None:
    """With `key`, each user's events are a separate sequence, and the key is a column of the result."""
    rows = found("(Login; Logout) - Buy", key="user")
    assert [(row["user"], span) for row, span in zip(rows, spans(rows), strict=True)] == [("ann", (1, 5))]


@pytest.mark.parametrize("name", ["kind", "pattern", "event"])
def test_keys_named_as_columns_that_only_outputs_have(name: str) -> None:
    """Without `outputs`, keys with these names are columns of the rows like any other key."""
    events = shop(ROWS).rename_columns({"user": name})
    pattern = OccurrencePattern.of("(Login; Logout) - Buy").taxonomy("type")
    assert detect(events, pattern, key=name, time="at").column(name).to_pylist() == ["ann"]


def test_kinds_of_tables() -> None:
    """A pandas input gives a pandas result."""
    frame = detect(shop().to_pandas(), OccurrencePattern.of("Buy").taxonomy("type"), time="at")
    assert isinstance(frame, pd.DataFrame)
    assert frame["match_end"].tolist() == [pd.Timestamp(at(3))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Login; Logout", [(1, 5), (2, 5), (1, 7), (2, 7)]),
        ("Logout & Buy", [(3, 5), (3, 7)]),
        ("Buy | (Login; Buy)", [(1, 3), (2, 3), (3, 3)]),
        ("(Login; Logout) - Buy", []),
        ("(Login; Logout)_4s", [(1, 5), (2, 5)]),
        ("Buy + 2s; Logout", [(5, 7)]),
        ("Buy + 4s & Logout", [(5, 7), (7, 7)]),
        ("Paid = Buy[price > 29] Login; Paid", [(1, 3), (2, 3)]),
        ("(?a:Login; ?b:Login)[start(b) - end(a) > INTERVAL '7' SECOND]", [(1, 9)]),
        ("?w:(Login; Login)[end(w) - start(w) = INTERVAL '1' SECOND]", [(1, 2)]),
        ("(?a:Login | ?b:Buy)[b.price = 30]", [(3, 3)]),
    ],
)
def test_operators(text: str, expected: list[tuple[int, int]]) -> None:
    """Each operator, checked by the starts and ends in the order of emission."""
    assert sorted(spans(found(text)), key=lambda span: span[::-1]) == sorted(expected, key=lambda span: span[::-1])


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("recent", [(2, 5), (2, 7)]),
        ("snoop_recent", [(2, 5), (2, 7)]),
        ("chronicle", [(1, 5), (2, 7)]),
        ("continuous", [(1, 5), (2, 5)]),
        ("cumulative", [(1, 5)]),
    ],
)
def test_policies(policy: str, expected: list[tuple[int, int]]) -> None:
    """The recent policy emits one occurrence per end; Snoop's contexts consume events."""
    assert spans(found("Login; Logout", policy=policy)) == expected


def test_temporal_events() -> None:
    """A temporal event has a delay; the events to which the delay applies follow it, with a depth greater by one."""
    (row,) = found("(Buy + 2s) + 1min", columns=["price"])
    assert (row["match_start"], row["match_end"]) == (at(65), at(65))
    minute, two = timedelta(minutes=1), timedelta(seconds=2)
    assert row["events"] == [
        {"type": None, "time": at(65), "delay": minute, "depth": 0, "price": None},
        {"type": None, "time": at(5), "delay": two, "depth": 1, "price": None},
        {"type": "Buy", "time": at(3), "delay": None, "depth": 2, "price": 30},
    ]


def test_variables_that_are_no_event() -> None:
    """Variables that stand for several events have a start and an end; a variable that the occurrence lacks is NULL."""
    rows = found("?w:(Login; Buy) | ?l:Logout", columns=[])
    assert [(row["w"], row["l"]) for row in rows][1:3] == [
        ({"start": at(2), "end": at(3)}, None),
        (None, {"type": "Logout"}),
    ]


def test_the_least_derivation() -> None:
    """If an occurrence can be composed in several ways, its variables are those of the way with the earliest events."""
    rows = found("?a:Login & ?b:Login")
    variables = [(row["a"]["at"], row["b"]["at"]) for row in rows]
    seconds = [(1, 1), (1, 2), (2, 2), (1, 9), (2, 9), (9, 9)]
    assert variables == [(at(a), at(b)) for a, b in seconds]


def test_measures() -> None:
    """Measures are SQL over variables; they take the place of the variables and events."""
    measures = {"who": "upper(l.user)", "lasted": "end(w) - start(w)", "next": "date_trunc('MINUTE', end(o))"}
    rows = found("?w:(?l:Login; ?o:Logout)[l.user = o.user]", measures=measures)
    assert [list(row)[4:] for row in rows] == [["who", "lasted", "next"]] * 2
    assert [row["who"] for row in rows] == ["ANN", "BOB"]
    assert [row["lasted"] for row in rows] == [timedelta(seconds=4), timedelta(seconds=5)]
    assert rows[0]["next"] == at(0)
    (row,) = found("?w:(Buy + 1s)", measures={"s": "start(w)", "e": "end(w)"})
    assert (row["s"], row["e"]) == (at(4), at(4))


def test_measures_of_local_times() -> None:
    """In measures, starts and ends have the type of the time column."""
    table = shop(time=pa.timestamp("us"))
    (row,) = found("?w:(Login; Buy)_1s", table, time_zone="Europe/Berlin", measures={"s": "start(w)", "t": "1"})
    assert row["s"] == at(2).replace(tzinfo=None)
    assert row["match_start"] == at(2).replace(tzinfo=None)


@pytest.mark.parametrize(("as_of", "expected"), [(4, []), (5, [(5, 5)]), (64, [(5, 5)]), (65, [(5, 5), (65, 65)])])
def test_time_stops(as_of: int, expected: list[tuple[int, int]]) -> None:
    """With `as_of`, only events up to that time count, and temporal events after it have not happened."""
    rows = [(5, "Logout", "ann", None), (70, "Logout", "ann", None)]
    assert spans(found("Logout | Logout + 1min", shop(rows), as_of=at(as_of))) == expected


def test_simultaneous_events() -> None:
    """Events at the end of an occurrence count, whatever the order of the events of that time."""
    rows = [(1, "A", "u", 1), (2, "B", "u", 1), (2, "C", "u", 1)]
    for order in (rows, rows[::-1]):
        assert found("(A; B) - C", shop(order)) == []
        assert spans(found("(A; B) - C", shop(order), sequence="type")) == []
        assert spans(found("B; C", shop(order))) == []


ids = st.lists(st.sampled_from(["A", "B", "C"]), max_size=8)


@settings(max_examples=10, deadline=None)
@given(ids, st.randoms(use_true_random=False))
def test_ids_do_not_depend_on_the_order_of_rows(types: list[str], random: Any) -> None:
    """An occurrence has the same match_id however the events are shuffled; different occurrences have different ids."""
    rows = [(second // 2, type_, "u", second % 3) for second, type_ in enumerate(types)]
    shuffled = random.sample(rows, len(rows))
    if not rows:
        return
    once, again = ({row["match_id"] for row in found("(A; B) | (A & C)", shop(r))} for r in (rows, shuffled))
    assert once == again
    assert len(once) == len(found("(A; B) | (A & C)", shop(rows)))


def test_temporal_events_have_ids_of_their_own() -> None:
    """A temporal event has another id than the event that it follows, and than one with another delay."""
    rows = [(1, "A", "u", None), (2, "A", "u", None)]
    texts = ["A", "A + 2s", "A + 1s", "(A + 1s) + 1s"]
    all_ids = [row["match_id"] for text in texts for row in found(text, shop(rows))]
    assert len({*all_ids}) == len(all_ids) == 8


def test_the_name_is_part_of_ids() -> None:
    """Two patterns never share an id."""
    pattern = OccurrencePattern.of("Buy").taxonomy("type")
    first, second = (detect(shop(), pattern.named(name), time="at")["match_id"][0] for name in ("a", "b"))
    assert first != second


def test_reports() -> None:
    """The report counts the events read, the events dropped and the matches found."""
    report = Report()
    table = pa.concat_tables(
        [shop(), shop([(4, "Login", "x", 1)]).set_column(0, "at", [pa.nulls(1, shop()["at"].type)])]
    )
    found("Login", table, report=report, nulls="drop")
    assert (report.counts.events, report.counts.null_times, report.counts.matches) == (7, 1, 3)
    with pytest.raises(EventError, match="1 without a time"):
        found("Login", table)


def test_ties_in_contexts() -> None:
    """In contexts, events of equal time that only their content orders give a warning, because one of them is consumed
    first. Other policies give none.
    """
    tied = shop([(1, "A", "u", 1), (1, "A", "u", 2)])
    assert len(found("A", tied)) == 2
    with pytest.warns(CepheidWarning, match="2 events agree in key and time"):
        found("A", tied, policy="chronicle")


def test_recent_with_conditions_warns() -> None:
    """A condition on several events makes the recent policy store all occurrences, which is warned of. Conditions on
    single events give no warning.
    """
    with pytest.warns(CepheidWarning, match=re.escape("policy 'recent' with the condition 'l.user = o.user'")):
        assert spans(found("(?l:Login; ?o:Logout)[l.user = o.user]", policy="recent")) == [(1, 5), (2, 7)]
    assert spans(found("?l:Login[l.user = 'ann']; Logout", policy="recent")) == [(1, 5), (1, 7)]


def test_the_longest_delay() -> None:
    """With the longest allowed delay, the temporal event lies after the last time that an event may have and is still
    emitted. A longer delay is refused by the parser.
    """
    last, days = 1 << 62, LONGEST.days
    events = shop([(1, "A", "u", 1)]).set_column(0, "at", pa.array([last]).cast(pa.timestamp("us", "UTC")))
    pattern = OccurrencePattern.of(f"A + {{{days} days}}").taxonomy("type")
    (end,) = detect(events, pattern, time="at").column("match_end").cast(pa.int64()).to_pylist()
    assert end == last + days * 86_400_000_000
    with pytest.raises(PatternError, match="must be 36525000 days at most, which are 100,000 years"):
        OccurrencePattern.of(f"A + {{{days + 1} days}}")


def test_limits() -> None:
    """The number of open occurrences per key and the number of occurrences completed at one instant are bounded."""
    rows = [(second, "A", "u", second) for second in range(30)]
    with pytest.raises(LimitExceeded, match="a key keeps more than 10 occurrences open"):
        found("A; A", shop(rows), limits=Limits(max_partial_matches=10))
    with pytest.raises(LimitExceeded, match="one instant completes more than 5 matches"):
        found("A; A", shop(rows), limits=Limits(max_matches_per_event=5))
    assert len(found("A; A", shop(rows), policy="recent", limits=Limits(max_partial_matches=2))) == 29


def test_conditions_that_fail() -> None:
    """A condition fails only for events to which it applies, as in SQL's ANSI mode."""
    rows = [(1, "A", "1", None), (2, "B", "x", None), (3, "A", "2", None)]
    assert spans(found("(?a:A; ?b:A)[CAST(a.user AS INT) < CAST(b.user AS INT)]", shop(rows))) == [(1, 3)]
    with pytest.raises(ConditionError, match=re.escape("in the condition (CAST(a.user AS INT) < CAST(b.user AS INT))")):
        found("(?a:A; ?b:B)[CAST(a.user AS INT) < CAST(b.user AS INT)]", shop(rows))


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (
            "?a:A[1 / a.price > 0]",
            f"'1 / a.price > 0' (condition), at the event with at = {at(2):%Y-%m-%d %H:%M:%S}, price = 0, type = 'A'",
        ),
        (
            "(?a:A; ?b:B)[1 / (a.price - b.price) > 0]",
            ("the condition (1 / (a.price - b.price) > 0), at a (price = 2, type = 'A'), b (price = 2, type = 'B')"),
        ),
        (
            "(?w:(A; A); ?b:B)[1 / (b.price - 2) > 0 AND end(w) < start(b)]",
            (
                "the condition (1 / (b.price - 2) > 0 AND end(w) < start(b)), "
                "at w (price = 0, type = 'A') … (price = 2, type = 'A'), b (price = 2, type = 'B')"
            ),
        ),
    ],
)
def test_a_condition_that_fails_is_reported_with_its_events(text: str, where: str) -> None:
    """The error quotes the condition as it was written and names the events of its variables."""
    events = shop([(1, "B", "ann", 1), (2, "A", "ann", 0), (3, "A", "ann", 2), (4, "B", "ann", 2)])
    with pytest.raises(ConditionError) as caught:
        found(text, events, columns=["price"])
    assert str(caught.value) == f"division by zero in {where}"


def test_a_condition_of_a_restricted_type_that_fails() -> None:
    """The error names the restricted type."""
    pattern = OccurrencePattern.of("Cheap").restrict("Cheap", "A", "1 / price > 0").taxonomy("type")
    message = f"'1 / price > 0' (type 'Cheap'), at the event with at = {at(2):%Y-%m-%d %H:%M:%S}, price = 0, type = 'A'"
    with pytest.raises(ConditionError, match=re.escape(message)):
        detect(shop([(1, "A", "ann", 5), (2, "A", "ann", 0)]), pattern, time="at", columns=["price"])


SHOP = "http://shop.example/"


def test_types_by_column_and_by_knowledge() -> None:
    """Patterns that are found together have the type of an event in one column, or all of them in none."""
    known = Knowledge.read(f"<{SHOP}Login> a <http://www.w3.org/2002/07/owl#Class> .", prefixes={"": SHOP})
    mapping = EventMapping(f"{SHOP}event/{{price}}", type="type")
    patterns = {
        "a": OccurrencePattern.of("Login", knowledge=known, mapping=mapping),
        "b": OccurrencePattern.of("Login").taxonomy("type"),
    }
    message = "the type of an event is in 'type' here, and in no column in pattern 'a'"
    with pytest.raises(PatternError, match=re.escape(message)):
        detect(shop(), patterns, time="at", columns=["price"])


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda p: detect(shop(), p, time=None), SchemaError, "time: occurrences have a start and an end"),
        (
            lambda p: detect(shop(), p, time="at", outputs=["matches", "timeouts"]),
            SchemaError,
            "outputs: occurrences have no timeouts; ask for 'matches', 'inconsistent', 'late' or several",
        ),
        (
            lambda p: detect(shop(), {"a": p, "b": p.taxonomy("user")}, time="at", columns=[]),
            PatternError,
            "the type of an event is in 'user' here, and in 'type' in pattern 'a' (pattern 'b')\nPatterns that are",
        ),
        (
            lambda p: detect(shop(), {"a": p, "b": OccurrencePattern.of("?v:A[v.no = 1]")}, time="at", key="no"),
            PatternError,
            (
                "key: no column named 'no'. Known here: at, type, user, price\n"
                "which column holds the type of an event is not known (pattern 'b', taxonomy)"
            ),
        ),
        (
            lambda p: detect(shop(), {"a": p, "b": Pattern.begin("x")}, time="at"),
            PatternError,
            "several patterns must be of one kind (occurrences): an OccurrencePattern is expected, got",
        ),
        (lambda p: Matcher({"a": p}, shop(), time="at"), PatternError, "a Matcher finds one pattern"),
        (
            lambda _: detect(shop(), {"a": of("?x:Buy"), "b": of("?x:(Buy; Buy)")}, time="at"),
            PatternError,
            "'x' is a start and an end here, and 'x' is one event in pattern 'a'",
        ),
        (
            lambda _: detect(shop(), {"a": of("?x:Buy[x.no = 1]"), "b": of("?x:Buy[y.at = 1]")}, time="at"),
            PatternError,
            "no column named 'no'",
        ),
        (
            lambda _: detect(shop(), event("Buy"), time="at"),
            PatternError,
            "an expression is no pattern yet: make one of it with OccurrencePattern.of(…), got Leaf(type='Buy')",
        ),
        (
            lambda p: detect(shop(), {"a": p, "b": event("Buy")}, time="at"),
            PatternError,
            "make one of it with OccurrencePattern.of(…), got Leaf(type='Buy') (pattern 'b')",
        ),
        (
            lambda _: detect(shop(), None, time="at"),
            PatternError,
            "a pattern is made with Pattern.begin(…), OccurrencePattern.of(…) or IntervalPattern.of(…), or read with",
        ),
        (lambda p: detect(shop(), p, time="at", columns="no"), SchemaError, "columns: no column named 'no'"),
        (
            lambda p: detect(shop().append_column("time", [[1] * len(ROWS)]), p, time="at"),
            SchemaError,
            "columns: 'time' is the name of a field that 'events' has itself; rename the column, or choose others",
        ),
    ],
)
def test_refusals(ask: Any, error: type[Exception], message: str) -> None:
    """Invalid arguments are refused with a clear message."""
    with pytest.raises(error, match=re.escape(message)):
        ask(OccurrencePattern.of("Buy").taxonomy("type"))


def test_columns_named_as_fields_of_temporal_events() -> None:
    """Columns with these names are in the result like any other. If the pattern has temporal events, whose fields have
    the same names, they are refused.
    """
    with pytest.raises(PatternError) as caught:
        detect(shop(), of("Buy").taxonomy("typ"), time="at")
    assert "'events' has itself" not in str(caught.value)
    with pytest.raises(PatternError, match="the column of the types must be STRING, 'price' is BIGINT") as caught:
        detect(shop(), of("Buy").taxonomy("price"), time="at")
    assert "'events' has itself" not in str(caught.value)
    events = (
        shop().append_column("delay", pa.array(range(len(ROWS)))).append_column("Depth", pa.array(range(len(ROWS))))
    )
    (row,) = detect(events, of("Buy"), time="at").to_pylist()
    assert {"type": "Buy", "delay": 2, "Depth": 2}.items() <= row["events"][0].items()
    both = detect(events, {"a": of("Buy"), "b": of("Login; Buy")}, time="at").to_pylist()
    assert both[0]["events"] == row["events"]
    for pattern in (of("Buy + 1s"), {"a": of("Buy"), "b": of("Login + 1s")}):
        with pytest.raises(SchemaError, match="columns: 'delay' is the name of a field that 'events' has itself"):
            detect(events, pattern, time="at")
    assert detect(events, of("Buy + 1s"), time="at", columns="price").num_rows == 1


def of(text: str) -> OccurrencePattern:
    return OccurrencePattern.of(text).taxonomy("type")


def test_several_patterns() -> None:
    """One table has the rows of all patterns, each with its pattern's name and as the pattern gives them alone,
    whatever the policies.
    """
    patterns = {
        "sessions": of("?l:Login; ?o:Logout"),
        "recent": of("?l:Login; ?o:Logout").policy("recent"),
        "later": of("(Login; Logout) + 1s"),
        "same user": of("(?a:Login; ?o:Logout)[a.user = o.user]"),
        "continuous": of("Login; Buy").policy("continuous"),
    }
    rows = detect(shop(), patterns, time="at").to_pylist()
    assert [*dict.fromkeys(row["pattern"] for row in rows)] == [*patterns]
    for name, pattern in patterns.items():
        alone = detect(shop(), pattern.named(name), time="at").to_pylist()
        own = [row for row in rows if row["pattern"] == name]
        assert [row["match_id"] for row in own] == [row["match_id"] for row in alone]
        for row, expected in zip(own, alone, strict=True):
            assert {name: row[name] for name in expected if name != "events"} == {
                name: value for name, value in expected.items() if name != "events"
            }
    assert [row["o"]["user"] for row in rows if row["pattern"] == "same user"] == ["ann", "bob"]
    assert {row["o"] is None for row in rows if row["pattern"] == "continuous"} == {True}


def test_outputs() -> None:
    """With `outputs`, rows begin with their kind and the pattern's name and end with the late event, which is always
    NULL here.
    """
    plain = found("?l:Login; Buy")
    rows = found("?l:Login; Buy", outputs=("matches", "late"))
    assert [[*row][:3] + [*row][-1:] for row in rows] == [["kind", "pattern", "match_id", "event"]] * len(plain)
    assert rows == [{"kind": "match", "pattern": "pattern", **row, "event": None} for row in plain] != []
    assert found("Login", outputs="late") == []


def test_several_patterns_with_measures() -> None:
    """Each pattern has its own measures, and NULL in those of the others."""
    patterns = {"a": of("?l:Login"), "b": of("?b:Buy")}
    measures = {"a": {"who": "l.user"}, "b": {"price": "b.price", "who": "b.user"}}
    rows = detect(shop(), patterns, time="at", measures=measures).to_pylist()
    assert [(row["pattern"], row["who"], row["price"]) for row in rows] == [
        ("a", "ann", None),
        ("a", "bob", None),
        ("a", "ann", None),
        ("b", "bob", 30),
    ]


def test_what_patterns_share_is_evaluated_once() -> None:
    """Equal expressions of several patterns are evaluated once, also with variables and conditions."""
    texts = ["(?l:Login; ?o:Logout)[l.user = o.user]", "(?l:Login; ?o:Logout)[l.user = o.user] - Buy"]

    def looked_at(texts: list[str]) -> int:
        schema = Schema(shop().schema, (), "at")
        engine = DuckDbEngine(time_zone="UTC")
        asked = [PatternRequest(of(text).named(text)) for text in texts]
        plans = [build_occurrence_plans([one], schema, engine, PlanOptions()).only for one in asked]
        together = OccurrencePlans.of(plans, named=True)
        compiled = compile_occurrences(together)
        events = TimedEvents(shop(), (shop()["at"],))
        (batch,) = ordered_batches(events, together, relevant_to_any(compiled.relevant_to), engine, HeldBits())
        (part, last) = (*(ordering := Ordering()).process(batch), *ordering.finish())
        detector = OccurrenceDetector(compiled)
        for ordered in (part, last):
            ends = np.array([len(ordered.batch)])
            zeros = np.zeros(1, np.int32)
            detector.step(ordered.batch, Visits(zeros, ends, np.array([FOREVER]), np.zeros(1, np.bool_)))
        return detector.kernel.evaluated

    first, second, both = looked_at(texts[:1]), looked_at(texts[1:]), looked_at(texts)
    assert both == second
    assert first < second
    assert looked_at([texts[0], texts[0]]) == first


def test_no_events() -> None:
    """An empty table gives no rows, with the columns of the output."""
    table = detect(shop().slice(0, 0), OccurrencePattern.of("Buy").taxonomy("type"), time="at", key="user")
    assert table.schema.names == ["match_id", "user", "match_start", "match_end", "detected_at", "events"]
    assert table.num_rows == 0
