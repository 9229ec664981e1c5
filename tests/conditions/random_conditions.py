"""Random conditions of a stage after a stage `a`, over the columns of `tests.conditions.pairs`."""

from __future__ import annotations

import random

# No operand is NULL itself: then it depends on Spark's optimizer whether the other one is evaluated and may fail.
# A column in angle brackets is the current event's or stage a's.
_FORMS: dict[str, list[str]] = {
    "number": [
        *("<n>", "<n>", "<b>", "<b>", "<x>", "<x>", "<p>", "<f>"),
        *("0", "2", "-1", "1.5", "0.25", "1e2D", "9007199254740993L"),
        *("({number} + {number})", "({number} - {number})", "({number} * {number})", "({number} / {number})"),
        *("({number} % {number})", "({number} div {number})", "(- {number})", "abs({number})", "sqrt({number})"),
        *("coalesce({number}, {number})", "nullif({number}, {number})", "if({truth}, {number}, {number})"),
        "CASE WHEN {truth} THEN {number} WHEN {truth} THEN {number} ELSE {number} END",
        "CASE {number} WHEN {number} THEN {number} WHEN {number} THEN {number} END",
        *("least({number}, {number})", "greatest({number}, {number}, {number})"),
        *("cast({number} as double)", "cast({number} as bigint)", "cast(<n> as decimal(12, 2))"),
        *("length(<s>)", "year(<d>)", "datediff(<d>, date '2024-01-01')", "cast(<digits> as int)"),
        *(
            "datediff({day}, {day})",
            "datediff(<t>, <d>)",
            "timestampdiff(HOUR, <t>, <t>)",
            "timestampdiff(DAY, <u>, <d>)",
        ),
    ],
    "truth": [
        *("<m>", "{comparison}", "{comparison}", "{comparison}", "{comparison}"),
        *("({truth} AND {truth})", "({truth} OR {truth})", "(NOT {truth})", "({truth} <=> {truth})"),
        *("({truth} = {truth})", "if({truth}, {truth}, {truth})", "true"),
        *("(<m> = cast({truth} as string))", "(<m> IN (cast(<m> as string), {truth}))"),
    ],
    "comparison": [
        *("({number} > {number})", "({number} <= {number})", "({number} = {number})", "({number} <> {number})"),
        *("({number} <=> {number})", "({number} IS NULL)", "({number} IS NOT NULL)"),
        *("({number} BETWEEN {number} AND {number})", "({number} NOT BETWEEN {number} AND {number})"),
        *("({number} IN ({number}, {number}, 3))", "({number} NOT IN ({number}, 1))"),
        *("({text} = {text})", "({text} < {text})", "({text} <=> {text})", "({text} IN ({text}, 'a', NULL))"),
        *("({text} BETWEEN {text} AND {text})", "(<s> LIKE 'a%')", "({text} IS NULL)"),
        *("({day} >= '2024-02-29')", "({day} IN ('1970-01-01', {day}))", "({day} > {moment})", "({clock} <= {day})"),
        *("(abs(<digits>) > {number})", "(- <digits> < {number})"),
        *("({moment} > cast(<d> as string) + interval 5 hours)", "({moment} - {day} > {day} - {clock})"),
        *("({moment} > '2024-03-01 12:00:00')", "({moment} BETWEEN '1900-01-01' AND {moment})"),
        *("({clock} <=> '2024-03-01T12:00:00')", "({number} > <digits>)"),
        *("({day} >= {day})", "({day} <=> {day})", "({day} IN ({day}, date '2024-02-29'))"),
        *("({moment} < {moment})", "({moment} = {moment})", "({moment} BETWEEN {moment} AND {moment})"),
        *("({clock} > {clock})", "({clock} <=> {clock})"),
        *("({span} < {span})", "({span} = {span})", "({span} IS NULL)", "({span} BETWEEN {span} AND {span})"),
    ],
    "text": [
        *("<s>", "<s>", "'a'", "'é'", "upper(<s>)", "substring(<s>, 1, 1)", "coalesce({text}, {text})"),
        *("if({truth}, {text}, {text})", "least({text}, {text})", "greatest({text}, {text})"),
    ],
    "day": [
        *("<d>", "<d>", "date '2024-02-29'", "date_add(<d>, 1)", "coalesce({day}, {day})", "greatest({day}, {day})"),
        *("(<d> + interval 1 day)", "(<d> - interval '2' day)", "(<d> + interval 1 month)", "(<d> - 1)"),
    ],
    "moment": [
        *("<t>", "<t>", "timestamp '2024-03-01 12:00:00'", "({moment} + {span})", "({moment} - {span})"),
        *("coalesce({moment}, {moment})", "coalesce(<t>, '2024-03-01')"),
        *("(<t> + interval 1 month)", "(<t> - interval '1-2' year to month)", "(<d> + interval 5 hours)"),
    ],
    "clock": ["<u>", "<u>", "timestamp_ntz '2024-03-01 12:00:00'", "({clock} - {span})", "coalesce({clock}, {clock})"],
    "span": [
        *("interval 2 hours", "interval '1' day", "interval '0.000001' second", "({moment} - {moment})"),
        *("({clock} - {clock})", "coalesce({span}, {span})", "({span} + {span})", "({day} - {day})"),
    ],
}


def random_condition(source: random.Random, depth: int = 4) -> str:
    """Not an AND: its parts about the current event alone would be computed first, so that the others would fail more
    rarely.
    """
    while "{truth} AND" in (form := source.choice(_FORMS["truth"] + _FORMS["comparison"])):
        pass
    return _written(form, depth, source)


def _written(text: str, depth: int, source: random.Random) -> str:
    """The form with each pair of braces replaced by a random text; below `depth` 0, forms without
    braces where possible.
    """
    while "{" in text:
        start, end = text.index("{"), text.index("}")
        forms = _FORMS[text[start + 1 : end]]
        plain = [form for form in forms if "{" not in form]
        chosen = source.choice(forms if depth > 1 or not plain else plain)
        text = text[:start] + _written(chosen, depth - 1, source) + text[end + 1 :]
    while "<" in text and (start := _column(text)) >= 0:
        text = text[:start] + source.choice(["", "a."]) + text[start + 1 :].replace(">", "", 1)
    return text


def _column(text: str) -> int:
    """The position of a column in angle brackets, -1 if there is none."""
    return next((i for i, c in enumerate(text) if c == "<" and text[i + 1 : i + 2].isalpha()), -1)
