"""`cepheid explain`: what a pattern file looks for, and how it will run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cepheid.cli.detect import measures_from
from cepheid.cli.failure import failures_reported, print_json

if TYPE_CHECKING:
    from cepheid.cli.pattern_file import PatternFile


def explain(
    pattern: Annotated[Path, typer.Argument(help="A pattern file: YAML or JSON.", show_default=False)],
    *,
    events: Annotated[
        list[str] | None, typer.Option(help="Plan against this file's columns; repeat for several.")
    ] = None,
    key: Annotated[list[str] | None, typer.Option(help="A key column; repeat for several.")] = None,
    time: Annotated[str | None, typer.Option(help="The column of the event time; needed with --events.")] = None,
    measure: Annotated[
        list[str] | None, typer.Option(metavar="NAME=SQL", help="A flat output column; repeat for several.")
    ] = None,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print only the automaton, as a Mermaid diagram.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Tell what a pattern looks for: its stages, and its automaton as text or as a Mermaid diagram.

    With --events also the plan: which columns the host's SQL engine computes, what is left to scripts, and all types.
    """
    if events and time is None:
        raise typer.BadParameter("a plan needs the column of the event time", param_hint="--time")
    measures = measures_from(measure or [])
    with failures_reported(as_json=as_json):
        from cepheid.cli.pattern_file import open_pattern
        from cepheid.compile.automaton import automaton_text, build_automaton
        from cepheid.compile.diagram import mermaid_diagram
        from cepheid.plan.build import check_pattern
        from cepheid.plan.explain import explain_pattern

        opened = open_pattern(pattern)
        with opened.problems_located():
            check_pattern(opened.pattern)
            planned = _plan(opened, events, key or [], time, measures) if events and time else None
        automaton = build_automaton(opened.pattern)
        text, states, diagram = (
            planned or explain_pattern(opened.pattern),
            automaton_text(automaton),
            mermaid_diagram(automaton),
        )
        if as_json:
            print_json({"ok": True, "exit_code": 0, "plan": text, "automaton": states, "mermaid": diagram})
        else:
            sys.stdout.write(diagram if mermaid else f"{text}\n{states}\n{diagram}")


def _plan(opened: PatternFile, events: list[str], key: list[str], time: str, measures: dict[str, str] | None) -> str:
    from cepheid.cli.files import event_files, read_schema
    from cepheid.events import Schema
    from cepheid.plan.build import build_plan
    from cepheid.plan.explain import explain_plan

    schema = Schema(read_schema(event_files(events)), tuple(key), time)
    return explain_plan(build_plan(opened.pattern, schema, measures=measures))
