"""`cepheid explain`: what a pattern file looks for, and how it will run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from cepheid.cli.detect import measures_from
from cepheid.cli.failure import failures_reported, print_json


def explain(
    pattern: Annotated[Path, typer.Argument(help="A pattern file: YAML or JSON.", show_default=False)],
    *,
    events: Annotated[
        list[str] | None, typer.Option(help="Plan against this file's columns; repeat for several.")
    ] = None,
    key: Annotated[list[str] | None, typer.Option(help="A key column; repeat for several.")] = None,
    time: Annotated[
        str | None, typer.Option(help="The column of the event time. Default: the first timestamp.")
    ] = None,
    measure: Annotated[
        list[str] | None, typer.Option(metavar="NAME=SQL", help="A flat output column; repeat for several.")
    ] = None,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print the automaton as a Mermaid diagram only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Tell what a pattern looks for and how: its stages, conditions, window and skip strategy, and its automaton.

    With --events also the plan: which columns the host's SQL engine computes, what is left to scripts, all types, and
    which events are dropped before anything else.
    """
    measures = measures_from(measure or [])
    with failures_reported(as_json=as_json):
        from cepheid.cli.pattern_file import open_pattern, plan_for_files
        from cepheid.compile.diagram import automaton_mermaid, automaton_text
        from cepheid.compile.tables import compile_plan, relevance_text
        from cepheid.plan.explain import explain_pattern, explain_plan

        opened = open_pattern(pattern)
        diagram = automaton_mermaid(opened.pattern)
        if events:
            plan = plan_for_files(opened, events, key=key, time=time, measures=measures)
            text = f"{explain_plan(plan)}{relevance_text(compile_plan(plan))}\n"
        else:
            text = explain_pattern(opened.pattern)
        text = f"{text}\n{automaton_text(opened.pattern)}\n"
        if as_json:
            print_json({"ok": True, "exit_code": 0, "plan": text, "mermaid": diagram})
        else:
            sys.stdout.write(f"{diagram}\n" if mermaid else text)
