"""`cepheid knowledge`: what ontologies say, what is ignored, and questions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cepheid = Callable[..., Any]

SHOP = """\
@prefix : <http://shop.example/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
<http://shop.example> owl:imports <http://other.example> .
:Novel rdfs:subClassOf :Book .
:Book rdfs:subClassOf [ owl:onProperty :writtenBy ; owl:someValuesFrom :Person ] ; owl:disjointWith :Film .
"""
BOOKS = """\
@prefix item: <http://shop.example/item/> .
@prefix : <http://shop.example/> .
item:dune a :Novel ; :hasPrice 12 .
item:emma a :Book ; :hasPrice 9 .
"""


@pytest.fixture
def shop(folder: Path) -> Path:
    (folder / "shop.ttl").write_text(SHOP)
    (folder / "books.ttl").write_text(BOOKS)
    return folder


@pytest.mark.usefixtures("shop")
def test_check(cepheid: Cepheid) -> None:
    """The figures, then what is ignored."""
    done = cepheid("knowledge", "check", "shop.ttl", "books.ttl")
    assert (done.returncode, done.stderr) == (0, "")
    first, *ignored = done.stdout.splitlines()
    assert re.fullmatch("facts: 10, following: [1-9][0-9]*, classes: 3, properties: 2", first)
    no_new, not_fetched = "no individuals are made up", "nothing is fetched. Read the file, too"
    assert ignored == [
        f"ignored: :Book rdfs:subClassOf (:writtenBy some :Person): someValuesFrom as a superclass: {no_new}",
        f"ignored: <http://shop.example> owl:imports <http://other.example>: an import: {not_fetched}",
    ]
    result = json.loads(cepheid("knowledge", "check", "shop.ttl", "books.ttl", "--json").stdout)
    assert [result[name] for name in ("ok", "exit_code", "facts", "classes", "properties")] == [True, 0, 10, 3, 2]
    assert [one["axiom"] for one in result["ignored"]] == [
        ":Book rdfs:subClassOf (:writtenBy some :Person)",
        "<http://shop.example> owl:imports <http://other.example>",
    ]


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["Book(item:dune)"], "holds"),
        (["Film(?x)"], "does not hold"),
        (["Book(?b) ^ hasPrice(?b, 9)", "--bind", "b=http://shop.example/item/dune"], "does not hold"),
        (["Book(?b) ^ hasPrice(?b, 12)", "--bind", "b=item:dune"], "holds"),
        (["s:Book(item:dune)", "--prefix", "s=http://shop.example/"], "holds"),
        (["s:Book(dune)", "--prefix", "=http://shop.example/item/", "--prefix", "s=http://shop.example/"], "holds"),
    ],
)
@pytest.mark.usefixtures("shop")
def test_ask(cepheid: Cepheid, arguments: list[str], answer: str) -> None:
    """A filter holds or not; names have the prefixes of the files, and those of --prefix."""
    done = cepheid("knowledge", "ask", "shop.ttl", "books.ttl", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{answer}\n", "")
    done = cepheid("knowledge", "ask", "shop.ttl", "books.ttl", *arguments, "--json")
    assert json.loads(done.stdout) == {"ok": True, "exit_code": 0, "holds": answer == "holds"}


@pytest.mark.usefixtures("shop")
def test_unknown_names(process: Cepheid) -> None:
    """A filter with a name that the knowledge does not have is answered, with a warning."""
    done = process("knowledge", "ask", "shop.ttl", "Boook(?x)")
    assert (done.returncode, done.stdout) == (0, "does not hold\n")
    unknown = "the knowledge has no class or property <http://shop.example/Boook> (filter, column 1)"
    assert done.stderr.startswith(f"warning: {unknown}\n  Boook(?x)\n  ^^^^^\n")


@pytest.mark.usefixtures("shop")
def test_ask_for_values(cepheid: Cepheid) -> None:
    """With variables the answers are rows, as matches are."""
    question = ["knowledge", "ask", "shop.ttl", "books.ttl", "Book(?b) ^ hasPrice(?b, ?p)", "--variables", "b, ?p"]
    expected = [
        {"b": "http://shop.example/item/dune", "p": '"12"^^<http://www.w3.org/2001/XMLSchema#integer>'},
        {"b": "http://shop.example/item/emma", "p": '"9"^^<http://www.w3.org/2001/XMLSchema#integer>'},
    ]
    assert [json.loads(line) for line in cepheid(*question).stdout.splitlines()] == expected
    assert json.loads(cepheid(*question, "--json").stdout)["rows"] == expected
    done = cepheid("knowledge", "ask", "shop.ttl", "Film(?x)", "--variables", "x")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no values make the filter true\n")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["check", "bad.ttl"], 1, "bad.ttl: "),
        (["check", "shop.ttl", "both.ttl"], 1, "the knowledge contradicts itself, by the rule cax-dw of OWL 2 RL: "),
        (["check", "missing.ttl"], 3, "missing.ttl: no such file or directory"),
        (["check", "rising.yaml"], 1, "rising.yaml: the format is not known: files end in .ttl, .nt, .rdf or .owl"),
        (["ask", "shop.ttl", "Book(?b"], 1, "',' or ')' is expected, not the end"),
        (
            ["ask", "shop.ttl", "Book(?b)", "--variables", "c"],
            1,
            "no class or property atom has 'c'. There are b",
        ),
        (["ask", "shop.ttl", "Book(?b)", "--bind", "c=:x"], 1, "the filter has no variable 'c'"),
        (["ask", "shop.ttl", "Book(?b)", "--bind", "b"], 2, "'b' is not NAME=IRI"),
        (["check", "shop.ttl", "--prefix", "b"], 2, "'b' is not NAME=IRI"),
    ],
)
def test_problems(shop: Path, cepheid: Cepheid, arguments: list[str], code: int, message: str) -> None:
    """Each kind of problem has its exit code and a message."""
    (shop / "bad.ttl").write_text(":a :b")
    (shop / "both.ttl").write_text("@prefix : <http://shop.example/> . :x a :Novel, :Film .")
    done = cepheid("knowledge", *arguments)
    assert done.returncode == code
    assert message in " ".join(done.stderr.split())


PATTERN = """\
knowledge:
  files: [books.ttl]
  prefixes: {"": "http://shop.example/"}
mapping:
  name: http://shop.example/event/{id}
  properties:
    Novel: {individual: "x:{item}"}
    hasPrise: price
"""
KINDS = "occurrence: Book", "stages: [{begin: a}]", "interval: EVENT PAL(Book a)"


@pytest.mark.parametrize("kind", KINDS)
def test_problems_of_a_mapping(shop: Path, cepheid: Cepheid, kind: str) -> None:
    """Each is marked at the name in the pattern file that it is about."""
    (shop / "p.yaml").write_text(PATTERN + kind)
    done = cepheid("check", "p.yaml")
    assert done.returncode == 1
    places = re.findall(r"line (\d+), column (\d+)\)\n.*\n *(\^+)", done.stderr)
    assert places == [("7", "5", "^" * 5), ("7", "25", "^" * 10), ("8", "5", "^" * 8)]
