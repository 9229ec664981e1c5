"""The ways in which a column of names may write a name are those that are read as it, and have one normal form."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cepheid.errors import KnowledgeError
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.knowledge.events.names import name_of
from cepheid.knowledge.events.written import written_names
from cepheid.knowledge.terms import Iri
from cepheid.lang.sql.parser import parse_expression
from cepheid.plan.lifted import Lifted
from cepheid.plan.semantics.names_sql import NormalForm

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


SEVERAL = [PREFIXES, {"": PREFIXES[""]}, {"urn": PREFIXES[""]}, {"": "urn:n:", "a": "urn:"}, {"": "http:"}, {}]


@pytest.mark.parametrize("prefixes", SEVERAL)
@pytest.mark.parametrize("name", NAMES)
def test_ways_are_those_that_are_read(name: str, prefixes: dict[str, str]) -> None:
    """Fewer would miss events, and more would find others."""
    rests = [(prefix, name.removeprefix(iri)) for prefix, iri in prefixes.items() if name.startswith(iri)]
    ways = {name, f"<{name}>", *(f"{prefix}:{rest}" for prefix, rest in rests if rest)}
    ways |= {rest for prefix, rest in rests if rest and not prefix}
    written = written_names(Iri(name), prefixes)
    assert len({*written}) == len(written)
    assert {*written} == {way for way in ways if _reads_as(way, name, prefixes)}


@pytest.mark.parametrize("prefixes", SEVERAL)
def test_normal_form(prefixes: dict[str, str]) -> None:
    """SQL makes one text of all ways of a name, another one of each other name, and none that a name has of what is no
    name.
    """
    rests = ["", "x", "x:y", "//x", "x y", "<x>", "x>", "x>y", "ü>", "x://y", *NAMES]
    texts = [*NAMES, *(f"{prefix}:{rest}" for prefix in [*prefixes, "unknown"] for rest in rests)]
    texts += ["", ":", "<", "<>", "<:>", "x", "x%y_z", *(f"<{one}>" for one in texts), *(f"<{one}" for one in texts)]
    form, meant = NormalForm(prefixes), [_read(text, prefixes) for text in texts]
    sql = form.sql("`name`")
    lifted = Lifted(sql, parse_expression(sql), pa.string())
    (found,) = DuckDbEngine().evaluate(pa.table({"name": texts}), values=[lifted]).values
    # The names of RDF are absolute.
    forms = {name: form.of(Iri(name)) for name in meant if name and ":" in name}
    assert len({*forms.values()}) == len(forms)
    for text, name, one in zip(texts, meant, found.to_pylist(), strict=True):
        assert one == forms[name] if name in forms else one not in forms.values(), text


def _read(text: str, prefixes: dict[str, str]) -> str | None:
    try:
        return name_of(text, prefixes).value
    except KnowledgeError:
        return None


def _reads_as(way: str, name: str, prefixes: dict[str, str]) -> bool:
    return _read(way, prefixes) == name
