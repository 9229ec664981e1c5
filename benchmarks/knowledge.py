"""Knowledge: sessions of events whose meaning follows from an ontology, and the closure of a large ontology.

    python benchmarks/knowledge.py --rows 100000 [--brick Brick.ttl]

Brick 1.4 is in the wheel of `brickschema` 0.8 (brickschema/ontologies/1.4/Brick.ttl).
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import owlrl
import pyarrow as pa
import pyoxigraph
import rdflib
from measuring import machine, print_table, timed

from cepheid import Matcher, OccurrencePattern, detect
from cepheid.kernel.knowledge.closures import SessionClosures
from cepheid.knowledge import EventMapping, Knowledge, constant, individual, node
from cepheid.knowledge.closure.closure import Closure
from cepheid.knowledge.events.facts import EventFacts
from cepheid.knowledge.reading import triples
from cepheid.knowledge.terms import Iri, Triple

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--brick", type=Path)
    arguments = parser.parse_args()
    print(machine())
    knowledge = Knowledge.read(ONTOLOGY, prefixes=PREFIXES)
    pattern = OccurrencePattern.of("BookRequest ; LogOut", knowledge=knowledge, mapping=MAPPING)
    for of_session in (EVENTS_OF_SESSION, 20_000):
        table = events(max(arguments.rows, of_session), of_session)
        detect(table.slice(0, 40), pattern, key="session", time="at")  # loads the kernels
        parts(knowledge, pattern, table, of_session)
    snapshot(pattern, events(20_000, 20_000))
    peers(knowledge, events(20_000, EVENTS_OF_SESSION))
    if arguments.brick is not None:
        parsing, stated = timed(lambda: triples(arguments.brick.read_bytes(), "turtle"), clock=PROCESSOR)
        closing, closed = timed(lambda: closure_of(stated), clock=PROCESSOR)
        rows = [("parse", parsing, len(stated)), ("close", closing, len(closed.facts))]
        print_table("Brick 1.4", ("step", "seconds", "facts"), rows)


def closure_of(stated: list[Triple]) -> Closure:
    closure = Closure()
    closure.add(stated)
    return closure


def parts(knowledge: Knowledge, pattern: OccurrencePattern, table: pa.Table, of_session: int) -> None:
    """The parts of detection, then all of it."""
    closures = SessionClosures(knowledge.closure)
    count = len(table)
    numbers = np.array([closures.begin() for _ in range(-(-count // of_session))], np.int32).repeat(of_session)[:count]
    reading = numbering = closing = shown = 0.0
    few = list[tuple[Iri, list[Triple]]]()
    for first in range(0, count, 1000):
        gc.disable()  # as sessions do
        some = table.slice(first, 1000)
        columns = {name: some[name].combine_chunks() for name in some.column_names}
        seconds, said = timed(
            partial(EventFacts(MAPPING, knowledge.prefixes).read, columns, lambda _: {}), clock=PROCESSOR
        )
        reading += seconds
        facts = [(fact, time) for time, (_, facts) in enumerate(said, first) for fact in facts]
        seconds, numbered = timed(partial(closures.said, facts), clock=PROCESSOR)
        numbering += seconds
        ends = np.cumsum([len(facts) for _, facts in said])
        seconds, _ = timed(partial(closures.add, numbers[first : first + 1000], ends, numbered), clock=PROCESSOR)
        closing += seconds
        few = said[:400]
        shown = len(facts) / len(said)
        del said, facts
        gc.enable()
    python, _ = timed(lambda: close_in_python(knowledge.closure, few, of_session), clock=PROCESSOR)
    whole, found = timed(lambda: detect(table, pattern, key="session", time="at"), clock=PROCESSOR)
    rows = [
        ("columns to facts", count, count / reading),
        ("facts to numbers", count, count / numbering),
        ("closing, compiled", count, count / closing),
        ("closing, in Python", len(few), len(few) / python),
        (f"detect: {len(found):,} matches", count, count / whole),
    ]
    title = f"{shown:.0f} facts an event, {of_session:,} events a session"
    print_table(title, ("part", "events", "events/s"), [(name, n, round(rate)) for name, n, rate in rows])


def close_in_python(base: Closure, said: list[tuple[Iri, list[Triple]]], of_session: int) -> None:
    session = Closure(base)
    for number, (_, facts) in enumerate(said):
        if number % of_session == 0:
            session = Closure(base)
        session.add(facts, number)


def snapshot(pattern: OccurrencePattern, table: pa.Table) -> None:
    """A session of many events in a Matcher: its snapshot, and how long a Matcher needs to continue from it."""
    matcher = Matcher(pattern, table.schema, key="session", time="at")
    matcher.process(table.slice(0, len(table) - 1))
    writing, state = timed(matcher.snapshot, clock=PROCESSOR)
    another = Matcher(pattern, table.schema, key="session", time="at")
    restoring, _ = timed(lambda: another.restore(state), clock=PROCESSOR)
    rows = [("write", writing, len(state)), ("restore", restoring, len(state))]
    print_table(f"One session of {len(table):,} events: its snapshot", ("step", "seconds", "bytes"), rows)


def peers(knowledge: Knowledge, table: pa.Table) -> None:
    """The same question by SPARQL over all events at once, and the closure of a session by owlrl."""
    columns: Mapping[str, pa.Array] = {name: table[name].combine_chunks() for name in table.column_names}
    said = EventFacts(MAPPING, knowledge.prefixes).read(columns, lambda _: {})
    texts = ["\n".join(f"{' '.join(map(str, fact))} ." for fact in facts) for _, facts in said]
    store = pyoxigraph.Store()
    store.load(input=ONTOLOGY.encode(), format=pyoxigraph.RdfFormat.TURTLE)
    loading, _ = timed(
        lambda: store.load(input="\n".join(texts).encode(), format=pyoxigraph.RdfFormat.N_TRIPLES),
        clock=PROCESSOR,
    )
    asking, _ = timed(lambda: [*cast("pyoxigraph.QuerySolutions", store.query(SPARQL))], clock=PROCESSOR)
    graph = rdflib.Graph()
    graph.parse(data=ONTOLOGY, format="turtle")
    graph.parse(data="\n".join(texts[:EVENTS_OF_SESSION]), format="nt")
    closing, _ = timed(lambda: owlrl.DeductiveClosure(owlrl.OWLRL_Semantics).expand(graph), clock=PROCESSOR)
    rows = [
        ("pyoxigraph: load all events and ask once", len(said), round(len(said) / (loading + asking))),
        ("owlrl: close a session once", EVENTS_OF_SESSION, round(EVENTS_OF_SESSION / closing)),
    ]
    print_table("Others", ("what", "events", "events/s"), rows)


if __name__ == "__main__":
    main()
