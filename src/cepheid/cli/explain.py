"""`cepheid explain`: what a pattern file looks for, and how it will run."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from cepheid.cli import options as o
from cepheid.cli.failure import failures_reported, print_json
from cepheid.plan.limits import Limits


def explain(
    pattern: o.PatternPath,
    *,
    events: o.OptionalEvents = None,
    key: o.Key = None,
    time: o.OptionalTime = None,
    no_time: o.NoTime = False,
    sequence: o.Sequence = None,
    columns: o.Columns = None,
    measure: o.Measure = None,
    outputs: o.Outputs = None,
    max_partial_matches: o.MaxPartialMatches = None,
    max_matches_per_event: o.MaxMatchesPerEvent = o.MOST_MATCHES,
    on_limit: o.OnLimitReached = "raise",
    parameter: o.GivenParameters = None,
    time_zone: o.TimeZone = "UTC",
    null_text: o.NullTexts = None,
    on: o.On = "process",
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print the automaton as a Mermaid diagram only.")] = False,
    as_json: o.AsJson = False,
) -> None:
    """Tell what a pattern looks for and how: its stages, conditions, window and skip strategy, and its automaton.

    With --events also the plan: which columns the host's SQL engine computes, what is left to scripts, all types, and
    which events are dropped before anything else.
    """
    measures, parameters = o.measures_from(measure), o.parameters_from(parameter)
    limits = Limits(max_partial_matches, max_matches_per_event, on_limit)
    files, asked_for = events or [], o.outputs_from(outputs)
    options = o.EventOptions(
        files, time, key, sequence, columns, measures, time_zone, null_text, on, no_time, asked_for, limits
    )
    with failures_reported(as_json=as_json):
        from cepheid.cli.pattern_file import open_pattern, plan_for
        from cepheid.compile.compiled import compile_plan, relevance_text
        from cepheid.compile.diagram import automaton_mermaid, automaton_text
        from cepheid.compile.form import form_text
        from cepheid.errors import PatternError
        from cepheid.plan.build import check_pattern
        from cepheid.plan.explain import explain_pattern, explain_plan, pattern_warnings
        from cepheid.plan.parameters import with_nulls

        opened = open_pattern(pattern, parameters)
        if not events and (problems := check_pattern(with_nulls(opened.pattern), measures)):
            with opened.problems_located():
                raise PatternError(problems)
        diagram = automaton_mermaid(opened.pattern)
        if events:
            compiled = compile_plan(plan_for(opened, options))
            text = f"{explain_plan(compiled.plan)}{relevance_text(compiled)}\n{form_text(compiled)}\n"
        else:
            text = explain_pattern(opened.pattern)
        text = f"{text}\n{automaton_text(opened.pattern)}\n"
        if as_json:
            warnings = list(pattern_warnings(opened.pattern))
            print_json({"ok": True, "exit_code": 0, "plan": text, "mermaid": diagram, "warnings": warnings})
        else:
            sys.stdout.write(f"{diagram}\n" if mermaid else text)
