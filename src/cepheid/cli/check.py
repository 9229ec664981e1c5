"""`cepheid check`: whether this is a pattern, and whether it fits these events."""

from __future__ import annotations

import sys

from cepheid.cli import options as o
from cepheid.cli.failure import failures_reported, print_json


def check(
    pattern: o.PatternPath,
    *,
    events: o.OptionalEvents = None,
    key: o.Key = None,
    time: o.OptionalTime = None,
    no_time: o.NoTime = False,
    start: o.Start = None,
    end: o.End = None,
    type_: o.TypeColumn = None,
    sequence: o.Sequence = None,
    columns: o.Columns = None,
    measure: o.Measure = None,
    outputs: o.Outputs = None,
    parameter: o.GivenParameters = None,
    time_zone: o.TimeZone = "UTC",
    null_text: o.NullTexts = None,
    on: o.On = "process",
    as_json: o.AsJson = False,
) -> None:
    """Report all problems of a pattern file, with their lines and columns.

    Without --events, what needs no columns is checked: the document, the SQL of the conditions, the stages they name.
    """
    measures, parameters = o.measures_from(measure), o.parameters_from(parameter)
    options = o.EventOptions(
        files=events or [],
        time=time,
        key=key,
        sequence=sequence,
        columns=columns,
        measures=measures,
        time_zone=time_zone,
        null_texts=null_text,
        on=on,
        no_time=no_time,
        outputs=o.outputs_from(outputs),
        start=start,
        end=end,
        type=type_,
    )
    with failures_reported(as_json=as_json):
        from cepheid.cli.pattern_file import open_pattern, plan_for, problems_without_events
        from cepheid.errors import PatternError

        opened = open_pattern(pattern, parameters)
        if events:
            plan_for(opened, options)
        elif problems := problems_without_events(opened, measures):
            with opened.problems_located():
                raise PatternError(problems)
        if as_json:
            print_json({"ok": True, "exit_code": 0, "problems": []})
        elif sys.stdout.isatty():
            sys.stdout.write(f"{pattern}: no problems\n")
