"""Knowledge: sessions of events whose meaning follows from an ontology, and the closure of a large ontology.

    python benchmarks/knowledge.py --rows 100000 [--brick Brick.ttl]

Brick 1.4 is in the wheel of `brickschema` 0.8 (brickschema/ontologies/1.4/Brick.ttl).
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, cast

import numpy as np
import owlrl
import pyarrow as pa
import pyoxigraph
import rdflib
from measuring import machine, print_table, timed

from cepheid import Matcher, OccurrencePattern, detect
from cepheid.compile.arrays import Ints
from cepheid.kernel.knowledge.closures import SessionClosures
from cepheid.kernel.knowledge.numbering import Numbering
from cepheid.knowledge import EventMapping, Knowledge, constant, individual, node
from cepheid.knowledge.closure.closure import Closure
from cepheid.knowledge.events.facts import EventFacts
from cepheid.knowledge.reading import triples
from cepheid.knowledge.terms import XSD, Iri, Triple

SHOP = "http://shop.example/"
ONTOLOGY = f"""
@prefix : <{SHOP}> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:AtomicProcessEndEvent rdfs:subClassOf :AtomicProcessCallEvent . :AtomicProcessCallEvent rdfs:subClassOf :Event .
:Request rdfs:subClassOf :AtomicProcessEndEvent . :LogIn rdfs:subClassOf :AtomicProcessEndEvent .
:LogOut rdfs:subClassOf :AtomicProcessEndEvent . :input rdfs:domain :Event ; rdfs:range :Binding .
:output rdfs:domain :Event ; rdfs:range :Binding . :callId a owl:DatatypeProperty . :paid a owl:DatatypeProperty .
:at a owl:DatatypeProperty . :process a owl:ObjectProperty . :toParameter a owl:ObjectProperty .
:objectValue a owl:ObjectProperty . :Media rdfs:subClassOf :Category . :Book rdfs:subClassOf :Media .
:Novel rdfs:subClassOf :Book . :Film rdfs:subClassOf :Media . :Toy rdfs:subClassOf :Category .
:dune a :Novel . :alien a :Film . :lego a :Toy . :algebra a :Book . :Book owl:disjointWith :Film .
:about owl:propertyChainAxiom ( :input :objectValue ) .
:BookRequest owl:equivalentClass [ owl:intersectionOf ( :Request
  [ a owl:Restriction ; owl:onProperty :about ; owl:someValuesFrom :Book ] ) ] .
"""
PREFIXES = {"": SHOP}
MAPPING = EventMapping(
    f"{SHOP}event/{{id}}",
    type="kind",
    properties={
        "process": individual("process"),
        "at": "at",
        "callId": "id",
        "paid": "price",
        "input": node({"a": constant("Binding"), "toParameter": constant("item"), "objectValue": individual("item")}),
        "output": node({"a": constant("Binding"), "toParameter": constant("who"), "objectValue": individual("who")}),
    },
)
PROCESSOR = time.process_time
ITEMS, EVENTS_OF_SESSION = ("dune", "alien", "lego", "algebra"), 20
SPARQL = f"""PREFIX : <{SHOP}> SELECT (COUNT(DISTINCT ?e) AS ?n) WHERE {{
  ?e a :Request ; :input/:objectValue/a/<http://www.w3.org/2000/01/rdf-schema#subClassOf>* :Book }}"""


def events(rows: int, of_session: int) -> pa.Table:
    """Events of sessions: a log in, requests, a log out."""
    number = np.arange(rows)
    place = number % of_session
    kind = np.where(place == 0, "LogIn", np.where(place == of_session - 1, "LogOut", "Request"))
    return pa.table(
        {
            "session": number // of_session,
            "at": pa.array(number * 1_000_000).cast(pa.timestamp("us", "UTC")),
            "id": pa.array(number),
            "kind": pa.array(kind),
            "process": pa.array(kind),
            "item": pa.array(np.array(ITEMS)[number * 7 % 11 % 4]),
            "price": pa.array(number % 50 / 2),
            "who": pa.array([f"customer{one % 500}" for one in (number // of_session).tolist()]),
        }
    )


PATTERNS = {
    "BookRequest ; LogOut": "BookRequest ; LogOut",
    "with a filter": "?r: Request [ about(?r, ?i) ^ Book(?i) ] ; LogOut",
    "with a built-in": "?r: Request [ about(?r, ?i) ^ Book(?i) ^ paid(?r, ?p) ^ swrlb:greaterThan(?p, 12) ] ; LogOut",
    "with a filter over two events": "(?l: LogIn ; ?r: Request) [ output(?l, ?b) ^ objectValue(?b, ?who) ^ "
    "output(?r, ?c) ^ objectValue(?c, ?who) ^ about(?r, ?i) ^ Book(?i) ]",
}
ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--brick", type=Path)
    arguments = parser.parse_args()
    print(machine())
    knowledge = Knowledge.read(ONTOLOGY, prefixes=PREFIXES)
    pattern = OccurrencePattern.of("BookRequest ; LogOut", knowledge=knowledge, mapping=MAPPING)
    for of_session in (EVENTS_OF_SESSION, 20_000):
        parts(knowledge, pattern, events(max(arguments.rows, of_session), of_session), of_session)
    whole(knowledge, arguments.rows)
    snapshot(pattern, events(20_000, 20_000))
    if arguments.brick is not None:
        parsing, stated = timed(lambda: triples(arguments.brick.read_bytes(), "turtle"), clock=PROCESSOR)
        closing, closed = timed(lambda: closure_of(stated), clock=PROCESSOR)
        rows = [("parse", parsing, len(stated)), ("close", closing, len(closed.facts))]
        print_table("Brick 1.4", ("step", "seconds", "facts"), rows)


def with_turtle(table: pa.Table) -> pa.Table:
    """The events with the same facts as Turtle in the column "said"."""
    return table.append_column("said", pa.array([*map(as_turtle, table.to_pylist())]))


def as_turtle(row: Mapping[str, Any]) -> str:
    binding = "[ a :Binding ; :toParameter :{} ; :objectValue :{} ]"
    return (
        f"<{SHOP}event/{row['id']}> a :{row['kind']} ; :process :{row['process']} ; "
        f':at "{row["at"]:%Y-%m-%dT%H:%M:%S}Z"^^<{XSD}dateTime> ; :callId {row["id"]} ; :paid {row["price"]:.1e} ; '
        f":input {binding.format('item', row['item'])} ; :output {binding.format('who', row['who'])} ."
    )


def whole(knowledge: Knowledge, count: int) -> None:
    """All of detection by patterns, and others that answer the same question; they take turns."""
    table = events(count, EVENTS_OF_SESSION)
    few = with_turtle(table.slice(0, 20_000))
    turtle = EventMapping(f"{SHOP}event/{{id}}", turtle="said")
    works: dict[str, tuple[pa.Table, Callable[[], int]]] = {}
    for name, text in PATTERNS.items():
        works[f"columns: {name}"] = table, partial(found_by, text, knowledge, MAPPING, table)
    works["Turtle: BookRequest ; LogOut"] = few, partial(found_by, "BookRequest ; LogOut", knowledge, turtle, few)
    works["Turtle, parsed alone by pyoxigraph"] = few, partial(parsed, few["said"].to_pylist())
    texts = ntriples(knowledge, few)
    works["pyoxigraph: load all events and ask once by SPARQL"] = few, partial(ask_all, "\n".join(texts))
    works["owlrl: close a session once"] = (
        few.slice(0, EVENTS_OF_SESSION),
        partial(close_by_owlrl, texts[:EVENTS_OF_SESSION]),
    )
    rates: dict[str, list[float]] = {name: [] for name in works}
    answers: dict[str, int] = {}
    for _, work in works.values():
        work()  # loads the kernels
    for _ in range(ROUNDS):
        for name, (given, work) in works.items():
            seconds, answers[name] = timed(work, clock=PROCESSOR)
            rates[name].append(len(given) / seconds)
    rows = [(name, len(given), answers[name], round(median(rates[name]))) for name, (given, _) in works.items()]
    print_table("All of it: medians", ("what", "events", "found", "events/s"), rows)


def found_by(text: str, knowledge: Knowledge, mapping: EventMapping, table: pa.Table) -> int:
    pattern = OccurrencePattern.of(text, knowledge=knowledge, mapping=mapping)
    return len(detect(table, pattern, key="session", time="at"))


def parsed(texts: list[str]) -> int:
    """How many triples there are."""
    head = f"@prefix : <{SHOP}> . "
    return sum(1 for text in texts for _ in pyoxigraph.parse(input=head + text, format=pyoxigraph.RdfFormat.TURTLE))


def ntriples(knowledge: Knowledge, table: pa.Table) -> list[str]:
    """What each event says."""
    said = EventFacts(MAPPING, knowledge.prefixes).read(columns_of(table), lambda _: {})
    return ["\n".join(f"{' '.join(map(str, fact))} ." for fact in facts) for _, facts in said]


def columns_of(table: pa.Table) -> dict[str, pa.Array]:
    return {name: table[name].combine_chunks() for name in table.column_names}


def ask_all(text: str) -> int:
    """The number of requests for books, asked once when all events are known."""
    store = pyoxigraph.Store()
    store.load(input=ONTOLOGY.encode(), format=pyoxigraph.RdfFormat.TURTLE)
    store.load(input=text.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES)
    (found,) = cast("pyoxigraph.QuerySolutions", store.query(SPARQL))
    return int(found["n"].value)


def close_by_owlrl(texts: list[str]) -> int:
    """The number of facts that follow."""
    graph = rdflib.Graph()
    graph.parse(data=ONTOLOGY, format="turtle")
    graph.parse(data="\n".join(texts), format="nt")
    before = len(graph)
    owlrl.DeductiveClosure(owlrl.OWLRL_Semantics).expand(graph)
    return len(graph) - before


def closure_of(stated: list[Triple]) -> Closure:
    closure = Closure()
    closure.add(stated)
    return closure


def parts(knowledge: Knowledge, pattern: OccurrencePattern, table: pa.Table, of_session: int) -> None:
    """The parts of detection, as sessions call them, then all of it."""
    at_once = max(4000, of_session)
    detect(table.slice(0, 40), pattern, key="session", time="at")  # loads the kernels
    facts, columns = EventFacts(MAPPING, knowledge.prefixes), columns_of(table)
    few = facts.read({name: column.slice(0, 400) for name, column in columns.items()}, lambda _: {})
    rates: dict[str, list[float]] = defaultdict(list)
    for _ in range(ROUNDS):
        closures, seconds = SessionClosures(knowledge.closure), dict[str, float]()
        for first in range(0, len(table), at_once):
            some = {name: column.slice(first, at_once) for name, column in columns.items()}
            times = np.arange(first, first + len(some["id"]))
            for name, spent in one_call(facts, closures, some, times, of_session):
                seconds[name] = seconds.get(name, 0) + spent
        python, _ = timed(lambda: close_in_python(knowledge.closure, few, of_session), clock=PROCESSOR)
        all_, found = timed(lambda: detect(table, pattern, key="session", time="at"), clock=PROCESSOR)
        for name, spent in seconds.items():
            rates[name].append(len(table) / spent)
        rates["closing, in Python"].append(len(few) / python)
        rates[f"detect: {len(found):,} matches"].append(len(table) / all_)
    shown = sum(len(one) for _, one in few) // len(few)
    title = f"{shown} facts an event, {of_session:,} events a session: medians"
    print_table(title, ("part", "events/s"), [(name, round(median(each))) for name, each in rates.items()])


def one_call(
    facts: EventFacts, closures: SessionClosures, columns: Mapping[str, pa.Array], times: Ints, of_session: int
) -> Iterator[tuple[str, float]]:
    """The seconds of the parts of one call, for whole sessions."""
    seconds, said = timed(lambda: facts.said(columns, lambda _: {}), clock=PROCESSOR)
    yield "columns to facts", seconds
    numbering = Numbering(closures.terms)
    seconds, (ends, numbered) = timed(lambda: numbering.said(said.columns, times), clock=PROCESSOR)
    yield "facts to numbers", seconds
    sessions = [closures.begin() for _ in range(-(-len(times) // of_session))]
    numbers = np.array(sessions, np.int32).repeat(of_session)[: len(times)]
    seconds, _ = timed(lambda: closures.add(numbers, ends, numbered), clock=PROCESSOR)
    yield "closing, compiled", seconds
    seconds, _ = timed(lambda: forget(closures, sessions), clock=PROCESSOR)
    yield "forgetting the sessions", seconds


def forget(closures: SessionClosures, sessions: list[int]) -> None:
    for session in sessions:
        closures.end(session)
    if closures.is_full:
        closures.tidy(np.zeros(0, np.int32))


def close_in_python(base: Closure, said: list[tuple[Iri, list[Triple]]], of_session: int) -> None:
    session = Closure(base)
    for number, (_, facts) in enumerate(said):
        if number % of_session == 0:
            session = Closure(base)
        session.add(facts, number)


def snapshot(pattern: OccurrencePattern, table: pa.Table) -> None:
    """A session of many events in a Matcher, which come by the thousand: its snapshot, and how long a Matcher needs to
    continue from it.
    """
    matcher = Matcher(pattern, table.schema, key="session", time="at", lateness="0 seconds")
    last = len(table) - 1
    processing, _ = timed(
        lambda: [matcher.process(table.slice(first, min(1000, last - first))) for first in range(0, last, 1000)],
        clock=PROCESSOR,
    )
    writing, state = timed(matcher.snapshot, clock=PROCESSOR)
    another = Matcher(pattern, table.schema, key="session", time="at", lateness="0 seconds")
    restoring, _ = timed(lambda: another.restore(state), clock=PROCESSOR)
    continuing, found = timed(lambda: [another.process(table.slice(last)), another.finish()], clock=PROCESSOR)
    rows = [
        ("process its events, 1,000 a call", processing),
        (f"write its snapshot of {len(state):,} bytes", writing),
        ("restore it", restoring),
        (f"process its last event and finish: {sum(map(len, found)):,} matches", continuing),
    ]
    print_table(f"One session of {len(table):,} events", ("step", "seconds"), [(name, f"{s:.3f}") for name, s in rows])


if __name__ == "__main__":
    main()
