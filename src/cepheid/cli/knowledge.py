"""`cepheid knowledge`: what ontologies say, what follows from it, and questions to both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cepheid.cli import options as o
from cepheid.cli.failure import EXIT_CODES, failures_reported, require_installed
from cepheid.cli.groups import CommandGroup

if TYPE_CHECKING:
    from cepheid.knowledge.knowledge import Knowledge

knowledge = typer.Typer(
    name="knowledge",
    cls=CommandGroup,
    help="Check ontologies and instances, and ask what follows from them.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Files = Annotated[
    list[Path],
    typer.Argument(help="Ontologies and instances: .ttl, .nt, .rdf or .owl.", show_default=False),
]
Prefixes = Annotated[
    list[str] | None,
    typer.Option(
        "--prefix",
        metavar="NAME=IRI",
        help="A prefix for names, or =IRI for names without one; repeat for several. Default: those of the files.",
    ),
]


@knowledge.command(epilog=EXIT_CODES)
def check(files: Files, *, prefix: Prefixes = None, as_json: o.AsJson = False) -> None:
    """Read files, infer what follows by OWL 2 RL, and list what is ignored. A contradiction is a problem.

    Ignored are axioms outside of OWL 2 RL, imports (nothing is fetched), SHACL shapes and SWRL rules.
    """
    prefixes = _pairs(prefix, "--prefix", "ex=http://example.org/")
    with failures_reported(as_json=as_json):
        from cepheid.cli.host.shown import say

        known = _read(files, prefixes)
        figures = {
            "facts": len(known.facts),
            "following": len(known.closure.facts) - len(set(known.facts)),
            "classes": len(known.classes),
            "properties": len(known.properties),
        }
        shown = ", ".join(f"{name}: {figure:,}" for name, figure in figures.items())
        lines = [f"ignored: {one.axiom}: {one.reason}" for one in known.ignored]
        listed = [{"axiom": one.axiom, "reason": one.reason} for one in known.ignored]
        say({**figures, "ignored": listed}, "\n".join([shown, *lines]), as_json=as_json)


@knowledge.command(epilog=EXIT_CODES)
def ask(
    files: Files,
    filter: Annotated[  # noqa: A002 - it is one
        str,
        typer.Argument(help="As 'Book(?c) ^ hasPrice(?c, ?p) ^ greaterThan(?p, 1000)'.", show_default=False),
    ],
    *,
    variables: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Print the values of these variables, separated by commas, as a table."),
    ] = None,
    bind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=IRI",
            help="The individual that a variable is, by its whole name or as prefix:name; repeat for several.",
        ),
    ] = None,
    prefix: Prefixes = None,
    as_json: o.AsJson = False,
) -> None:
    """Ask whether a semantic filter holds by what files say and what follows, or for which values."""
    prefixes = _pairs(prefix, "--prefix", "ex=http://example.org/")
    bindings = _pairs(bind, "--bind", "c=http://example.org/dune")
    with failures_reported(as_json=as_json):
        import pyarrow as pa

        from cepheid.cli.host.shown import say, show

        known = _read(files, prefixes)
        if variables is None:
            holds = known.holds(filter, bindings)
            say({"holds": holds}, "holds" if holds else "does not hold", as_json=as_json)
            return
        names = [one.strip().removeprefix("?") for one in variables.split(",")]
        found = known.solutions(filter, names, bindings)
        columns = {name: pa.array([one[i] for one in found], pa.string()) for i, name in enumerate(names)}
        show(pa.table(columns), None, as_json=as_json, if_none="no values make the filter true")


def _read(files: list[Path], prefixes: dict[str, str]) -> Knowledge:
    """The knowledge in the files, with their prefixes and these.

    Raises:
        OSError: a file cannot be read.
        KnowledgeError: a file has an error, or the facts contradict each other.
        Unavailable: pyoxigraph is missing.
    """
    require_installed("knowledge", "pyoxigraph", extra="semantic")
    from cepheid.knowledge.knowledge import Knowledge
    from cepheid.knowledge.reading import format_of, prefixes_of

    for path in files:
        path.open("rb").close()
    theirs: dict[str, str] = {}
    for path in reversed(files):  # the first file's come first
        theirs |= prefixes_of(path.read_bytes(), format_of(path), str(path))
    return Knowledge.read(files, prefixes=theirs | prefixes)


def _pairs(texts: list[str] | None, option: str, example: str) -> dict[str, str]:
    """`name=iri` texts by name."""
    pairs = {}
    for text in texts or []:
        name, equals, iri = text.partition("=")
        if not equals or not iri:
            raise typer.BadParameter(f"{text!r} is not NAME=IRI, as in '{example}'", param_hint=option)
        pairs[name.removeprefix("?")] = iri
    return pairs
