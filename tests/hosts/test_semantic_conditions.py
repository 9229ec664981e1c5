"""Semantic filters in patterns of stages and intervals find what their definition finds: for each candidate, all that
the events up to its time say is closed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import pyarrow as pa
from hypothesis import event as note
from hypothesis import given
from hypothesis import strategies as st
from tests.searching import share

from cepheid import IntervalPattern, Pattern, PatternError, detect, semantic
from cepheid.errors import KnowledgeError
from cepheid.kernel.occurrences.session_reference import Known, Said
from cepheid.knowledge.events.facts import EventFacts
from cepheid.knowledge.events.mapping import EventMapping
from cepheid.knowledge.filters.syntax import Atom, Variable, parsed
from cepheid.knowledge.knowledge import Knowledge
from cepheid.knowledge.terms import Iri
from occurrences.test_lifted_equals_growing import FILTERS, HEAD, PLAIN, TYPES, Row, mappings, rows, table

CLASSES = [name for name in TYPES if name != "Mine"]
OF_FIRST = [text for text in FILTERS if "?v1" not in text]
REFUSED = "OccurrencePattern.of(…, knowledge=…, mapping=…) can ask it"


class Definition:
    """What the events of a table say, at the times of these events."""

    def __init__(self, knowledge: Knowledge, mapping: EventMapping, events: pa.Table) -> None:
        columns = {name: events[name].combine_chunks() for name in mapping.columns}
        read = EventFacts(mapping, knowledge.prefixes).read(columns, lambda _: {})
        self.times = [time.timestamp() for time in events["at"].to_pylist()]
        said = {i: Said(iri, int(self.times[i]), facts) for i, (iri, facts) in enumerate(read)}
        self._prefixes, self._known = knowledge.prefixes, Known(knowledge, said)

    def holds(self, text: str, events: Mapping[str, int], time: float) -> bool:
        """Whether the filter holds; `events` has the numbers of the events that variables are."""
        atoms = parsed(text, self._prefixes)
        return self._known.holds(atoms, events, int(time))

    def is_of(self, event: int, class_: str) -> bool:
        atom = Atom("class", Iri(f"http://shop.example/{class_}"), (Variable("e"),))
        return self._known.holds((atom,), {"e": event}, int(self.times[event]))

    def condition(self, text: str, current: str) -> Callable[[Any, Any], bool]:
        """The filter as a condition in Python of the stage `current`."""

        def holds(event: Mapping[str, Any], matched: Mapping[str, Any]) -> bool:
            numbers = {name: taken[-1]["number"] for name, taken in matched.items() if taken and f"?{name}" in text}
            events = {**numbers, current: event["number"]}
            return self.holds(text, events, max(self.times[number] for number in events.values()))

        return holds

    def of_class(self, class_: str) -> Callable[[Any], bool]:
        return lambda event: self.is_of(event["number"], class_)


@st.composite
def calls(draw: st.DrawFn, stage: str) -> list[tuple[str, str]]:
    """The calls that give a stage conditions, each with its argument."""
    filters = st.sampled_from(OF_FIRST if stage == "v0" else FILTERS)
    found = [("subtype", draw(st.sampled_from(CLASSES)))]
    made = draw(st.sampled_from([["where"], ["where", "where"], ["where", "or_where"]]))
    found += [(call, draw(filters)) for call in made]
    return found if draw(st.booleans()) else found[1:]


def stages(definition: Definition | None, made: Sequence[tuple[str, Any]], knowledge: dict[str, Any]) -> Pattern:
    """Two stages with these calls; with a definition, conditions are in Python."""
    pattern = Pattern.begin("v0", **({} if definition else knowledge))
    for number, (stage, given_calls) in enumerate(made):
        pattern = pattern.followed_by_any(stage) if number else pattern
        for count, (call, argument) in enumerate(given_calls):
            name = f"{stage}.{count}"
            if definition is None:
                pattern = getattr(pattern, call)(argument if call == "subtype" else semantic(argument))
            elif call == "subtype":
                pattern = pattern.where(definition.of_class(argument), name=name)
            else:
                pattern = getattr(pattern, call)(definition.condition(argument, stage), name=name)
    return pattern.one_or_more()


def found_or_refused(events: pa.Table, pattern: Pattern | IntervalPattern, options: dict[str, Any]) -> pa.Table | None:
    """The matches; None if a filter asks more than SQL can say."""
    try:
        found = detect(events, pattern, **options)
    except PatternError as error:
        if REFUSED not in str(error):
            raise
        note("refused")
        return None
    note("lifted")
    return found


@share(40)
@given(st.lists(st.sampled_from(PLAIN), max_size=6, unique=True), mappings(), calls("v0"), calls("v1"), rows)
def test_stages(
    plain: list[str],
    mapping: dict[str, Any],
    first: list[tuple[str, str]],
    second: list[tuple[str, str]],
    given_: list[Row],
) -> None:
    """A loop follows one event; its filters may ask of both."""
    if (known := _read(plain)) is None:
        return
    events, mapped = table(given_), EventMapping(**mapping)
    made = [("v0", first), ("v1", second)]
    options: dict[str, Any] = {"time": "at", "sequence": "number", "columns": ["number"]}
    found = found_or_refused(events, stages(None, made, {"knowledge": known, "mapping": mapped}), options)
    if found is None:
        return
    slow = stages(Definition(known, mapped, events), made, {})
    assert _numbers(found, "v0", "v1") == _numbers(detect(events, slow, **options), "v0", "v1")


def ended(condition: Any) -> Pattern:
    """A loop that the condition ends."""
    return Pattern.begin("v0").followed_by("v1").one_or_more().until(condition)


def nothing_before(condition: Any) -> Pattern:
    """One event, if none that fits the condition came in the two seconds before."""
    return Pattern.begin("v0").begin_without("v1", within="2 seconds", where=condition)


@share(40)
@given(
    st.lists(st.sampled_from(PLAIN), max_size=6, unique=True),
    mappings(),
    st.sampled_from(FILTERS),
    st.sampled_from([ended, nothing_before]),
    rows,
)
def test_until_and_begin_without(
    plain: list[str], mapping: dict[str, Any], text: str, made: Callable[[Any], Pattern], given_: list[Row]
) -> None:
    """A filter may end a loop, or keep a match from beginning."""
    if (known := _read(plain)) is None:
        return
    events, mapped = table(given_), EventMapping(**mapping)
    options: dict[str, Any] = {"time": "at", "sequence": "number", "columns": ["number"]}
    knowing = replace(made(semantic(text)), knowledge=known, mapping=mapped)
    found = found_or_refused(events, knowing, options)
    if found is None:
        return
    slow = detect(events, made(Definition(known, mapped, events).condition(text, "v1")), **options)
    stages = [name for name in ("v0", "v1") if name in found.schema.names]
    assert _numbers(found, *stages) == _numbers(slow, *stages)


@share(40)
@given(
    st.lists(st.sampled_from(PLAIN), max_size=6, unique=True),
    mappings(),
    st.tuples(st.sampled_from(CLASSES), st.sampled_from(CLASSES), st.sampled_from(FILTERS)),
    st.none() | st.tuples(st.sampled_from(CLASSES), st.sampled_from([*OF_FIRST, *FILTERS])),
    rows,
)
def test_intervals(
    plain: list[str],
    mapping: dict[str, Any],
    asked_of_both: tuple[str, str, str],
    negated: tuple[str, str] | None,
    given_: list[Row],
) -> None:
    """Two events, the first before the second; perhaps without another between them, about which a filter asks."""
    if (known := _read(plain)) is None:
        return
    events, mapped = table(given_), EventMapping(**mapping)
    *types, text = asked_of_both
    pattern = IntervalPattern.pal(v0=types[0], v1=types[1]).relate("v0", "before", "v1")
    pattern = pattern.with_knowledge(known, mapped).where(semantic(text))
    if negated is not None:
        asked = negated[1].replace("?v1", "?gone")
        order = "end(v0) < start(gone), end(gone) < start(v1)"
        pattern = pattern.without("gone", negated[0], ordered=order, where=semantic(asked))
    found = found_or_refused(events, pattern, {"time": ("at", "at"), "columns": ["number"]})
    if found is None:
        return
    definition = Definition(known, mapped, events)
    time = definition.times

    def absent(one: int, other: int) -> bool:
        if negated is None:
            return True
        between = [n for n in range(len(given_)) if time[one] < time[n] < time[other]]
        of_type = [n for n in between if definition.is_of(n, negated[0])]
        return not any(definition.holds(asked, {"v0": one, "gone": n, "v1": other}, time[other]) for n in of_type)

    expected = [
        (one, other)
        for one, other in permutations(range(len(given_)), 2)
        if time[one] < time[other]
        and definition.is_of(one, types[0])
        and definition.is_of(other, types[1])
        and definition.holds(text, {"v0": one, "v1": other}, time[other])
        and absent(one, other)
    ]
    assert _numbers(found, "v0", "v1") == sorted(expected)


def _read(plain: Sequence[str]) -> Knowledge | None:
    """The knowledge; None if it contradicts itself."""
    try:
        return Knowledge.read("\n".join([HEAD, *plain]), prefixes={"": "http://shop.example/"})
    except KnowledgeError:
        return None


def _numbers(found: pa.Table, *names: str) -> list[Any]:
    """The numbers of the events of each match."""
    rows_ = [tuple(row[name] for name in names) for row in found.to_pylist()]
    return sorted(
        tuple(tuple(e["number"] for e in one) if isinstance(one, list) else one["number"] for one in row)
        for row in rows_
    )
