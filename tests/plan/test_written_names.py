"""The ways in which a column of names may write a name are those that are read as it."""

from __future__ import annotations

import pytest

from cepheid.errors import KnowledgeError
from cepheid.knowledge.events.names import name_of
from cepheid.knowledge.events.written import written_names
from cepheid.knowledge.terms import Iri

PREFIXES = {
    "": "http://a.example/",
    "b": "http://a.example/b/",
    "h": "http:",
    "t": "http://",
    "urn": "http://a.example/u",
    "n": "urn:n:",
    "s": "http://a.example",
}
NAMES = [
    *(
        "http://a.example/x-1_",
        "http://a.example/b/x",
        "http://a.example/",
        "http://a.example//x",
        "http://a.example/u1",
    ),
    *("http://c.example/x", "http://a.example/x.y", "http://a.example/x:y", "http://a.example/x://y", "urn:n:1", "n:1"),
    *("http://a.example/x y", "http://a.example/ü", "_:x", "x", "http://a.example/<x>", "http://a.example:80/x"),
]


@pytest.mark.parametrize("prefixes", [PREFIXES, {"": PREFIXES[""]}, {"urn": PREFIXES[""]}, {}])
@pytest.mark.parametrize("name", NAMES)
def test_ways_are_those_that_are_read(name: str, prefixes: dict[str, str]) -> None:
    """Fewer would miss events, and more would find others."""
    rests = [(prefix, name.removeprefix(iri)) for prefix, iri in prefixes.items() if name.startswith(iri)]
    ways = {name, f"<{name}>", *(f"{prefix}:{rest}" for prefix, rest in rests if rest)}
    ways |= {rest for prefix, rest in rests if rest and not prefix}
    written = written_names(Iri(name), prefixes)
    assert len({*written}) == len(written)
    assert {*written} == {way for way in ways if _reads_as(way, name, prefixes)}


def _reads_as(way: str, name: str, prefixes: dict[str, str]) -> bool:
    try:
        return name_of(way, prefixes).value == name
    except KnowledgeError:
        return False
