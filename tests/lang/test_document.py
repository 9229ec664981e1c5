"""Pattern files: their meaning, what is refused and where, and that the published schema agrees with the reader."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from tests.lang.strategies import patterns

from cepheid.errors import PatternError, Problem
from cepheid.lang.documents import (
    located_in_document,
    pattern_from_text,
    pattern_schema,
    pattern_to_document,
    pattern_to_yaml,
    read_pattern,
)
from cepheid.lang.stages.pattern import Pattern, Skip

LATE_CHAIN = """\
name: late_chain
within: 12 hours
skip: past_last_event
stages:
  - begin: late
    where: arr_delay > 45
  - next: legs
    where: dep_delay > 30
    one_or_more: true
    consecutive: true
    longest: true
"""
late_chain = (
    Pattern.begin("late", name="late_chain")
    .where("arr_delay > 45")
    .next("legs")
    .where("dep_delay > 30")
    .one_or_more()
    .consecutive()
    .longest()
    .within("12 hours")
    .skip(Skip.past_last_event())
)


def read(document: str) -> tuple[Pattern | None, tuple[Problem, ...]]:
    try:
        return pattern_from_text(document), ()
    except PatternError as error:
        return None, error.problems


def problems_of(document: str) -> list[str]:
    with pytest.raises(PatternError) as caught:
        pattern_from_text(document, source="p.yaml")
    return [str(problem).splitlines()[0] for problem in caught.value.problems]


def test_yaml_document_reads_as_the_pattern_of_the_fluent_interface() -> None:
    """A document and the corresponding calls make equal patterns."""
    assert pattern_from_text(LATE_CHAIN) == late_chain


def test_printed_yaml_is_pleasant() -> None:
    """A pattern is written as a person would write it: no defaults, no quotes, no anchors."""
    assert pattern_to_yaml(late_chain) == LATE_CHAIN


def test_conditions_quantifiers_and_alternatives() -> None:
    """Lists of conditions are ANDed, `or` is ORed, `times` is a number or a pair, and a flag that
    is false has no effect.
    """
    document = """
        stages:
          - begin: a
            where: [x > 1, y > 2, {or: z = 3}]
            times: 2
          - followed_by: b
            times: [0, 3]
            longest: false
          - followed_by_any: c
            one_or_more: true
            optional: true
          - next: d
            times_or_more: 2
            one_or_more: false
    """
    expected = (
        Pattern.begin("a")
        .where("x > 1")
        .where("y > 2")
        .or_where("z = 3")
        .times(2)
        .followed_by("b")
        .times(0, 3)
        .followed_by_any("c")
        .one_or_more()
        .optional()
        .next("d")
        .times_or_more(2)
    )
    assert pattern_from_text(document) == expected


def test_groups_negations_and_windows() -> None:
    """A list of stages instead of a name is a group; windows of loops stand beside their counts."""
    document = """\
name: pattern
within: 1 hour
skip:
  to_first: b
  error_on_miss: true
stages:
  - begin:
      - begin: a
        where: x > 1
      - not_followed_by: n
        where: x < 0
      - followed_by:
          - begin: b
          - next: c
        times:
          count: [2, 4]
          window: 10 seconds
        optional: true
    times_or_more: 2
    consecutive: true
    until: x = 9
  - followed_by: d
    one_or_more:
      window: 1 minute
    greedy: true
    allow_combinations: true
    within_previous: 5 minutes
  - not_next: e
"""
    inner = Pattern.begin("b").next("c")
    group = Pattern.begin("a").where("x > 1").not_followed_by("n").where("x < 0").followed_by(inner)
    group = group.times(2, 4, window="10 seconds").optional()
    expected = Pattern.begin(group).times_or_more(2).consecutive().until("x = 9").followed_by("d")
    expected = expected.one_or_more(window="1 minute").greedy().allow_combinations().within_previous("5 minutes")
    expected = expected.not_next("e").within("1 hour").skip(Skip.to_first("b", error_on_miss=True))
    assert pattern_from_text(document) == expected
    assert pattern_to_yaml(expected) == document


@pytest.mark.parametrize(
    ("written", "skip"),
    [
        ("no_skip", Skip.no_skip()),
        ("to_next", Skip.to_next()),
        ("past_last_event", Skip.past_last_event()),
        ("{to_first: a}", Skip.to_first("a")),
        ("{to_last: a, error_on_miss: true}", Skip.to_last("a", error_on_miss=True)),
    ],
)
def test_skip_strategies(written: str, skip: Skip) -> None:
    """Each strategy is written as its name, or as a mapping from its name to the stage."""
    assert pattern_from_text(f"skip: {written}\nstages: [{{begin: a}}]").skip_strategy == skip


@given(patterns())
def test_documents_preserve_patterns(pattern: Pattern) -> None:
    """A pattern written as a document and read again is equal, through YAML and both spellings of JSON; the schema
    accepts the document.
    """
    document = pattern_to_document(pattern)
    assert pattern_from_text(pattern_to_yaml(pattern)) == pattern
    for ascii_only in (True, False):
        assert pattern_from_text(json.dumps(document, ensure_ascii=ascii_only, indent="\t")) == pattern
    Draft202012Validator(pattern_schema()).validate(document)


KEYS = """begin next followed_by not_next where subtype times times_or_more one_or_more optional longest until
within_previous window count or name within skip to_first error_on_miss version parameters taxonomy column kinds date
timestamp decimal"""
keys = st.sampled_from(KEYS.split())
scalars = st.sampled_from(["a", " ", "1 hour", "no_skip", "0 hours", "12 ours", 0, 1, 2, 2.0, 1.5, True, False, None])
values = st.recursive(
    scalars, lambda part: st.lists(part, max_size=3) | st.dictionaries(keys, part, max_size=3), max_leaves=6
)


@st.composite
def mutated_documents(draw: st.DrawFn) -> Any:
    """Documents of patterns with up to three parts replaced, removed or added."""
    document: Any = json.loads(json.dumps(pattern_to_document(draw(patterns()))))
    for _ in range(draw(st.integers(1, 3))):
        part, holder, chosen = document, document, None
        while isinstance(part, dict | list) and part and (chosen is None or draw(st.booleans())):
            holder = part
            chosen = draw(st.sampled_from(sorted(part) if isinstance(part, dict) else range(len(part))))
            part = holder[chosen]
        if chosen is None:
            continue
        if draw(st.booleans()):
            holder[chosen] = draw(values)
        elif draw(st.booleans()):
            del holder[chosen]
        elif isinstance(holder, dict):
            holder[draw(keys)] = draw(values)
    return document


BEYOND_THE_SCHEMA = (
    "not a length of time",
    "a length of time must be",
    "times(",
    "where: a group",
    "subtype: a group",
    "not a date",
    "not a timestamp",
    "not a decimal",
)


@given(mutated_documents())
def test_schema_and_reader_agree(document: Any) -> None:
    """The reader accepts and refuses the same documents as the schema, except for units of time, `a <= b`, conditions
    of groups and the texts of dates and decimals.
    """
    valid = Draft202012Validator(pattern_schema()).is_valid(document)
    pattern, problems = read(json.dumps(document))
    if pattern is None:
        assert not valid or all(problem.message.startswith(BEYOND_THE_SCHEMA) for problem in problems)
    else:
        assert valid
        assert pattern_from_text(pattern_to_yaml(pattern)) == pattern


@given(st.text() | st.text("{}[]:,-#&*!|>'\"%@`\t\n ab1.?\\"))
def test_any_text_is_read_or_refused(document: str) -> None:
    """For any text, the reader gives a pattern or raises a PatternError that can be printed."""
    pattern, problems = read(document)
    assert pattern is not None or all(str(problem) for problem in problems)


def test_schema_is_valid_and_every_part_has_a_title() -> None:
    """The published schema is a valid JSON Schema, and each part has the title that messages use."""
    schema = pattern_schema()
    Draft202012Validator.check_schema(schema)
    for part in (*schema["properties"].values(), *schema["$defs"].values()):
        assert part["title"]


def test_all_problems_are_reported_with_their_places() -> None:
    """Unknown keys, wrong types, wrong quantifiers and a wrong duration are reported together, in
    the order of the file.
    """
    document = """\
within: 12 ours
skip: past_last_evnt
stages:
- begin: a
  wher: x > 1
  times: 0
- next: 1
  times: [3, 1]
  where: [{or: x}, 5, " "]
- followed_by: c
  times: 2
  one_or_more: true
- followed_by:
  - begin: d
    one_or_more: {window: 5}
  - begin: e
    times: {count: [2, 1], window: 3 ours}
  times_or_more: 1.5
- not_next: [{begin: f}]
  within_previous: 0 days
  until: [x]
foo: 1
"""
    known = (
        "Known here: begin, next, followed_by, followed_by_any, not_next, not_followed_by, where, begin_without, "
        "subtype, until, one_or_more,"
    )
    call = "times(n) with n at least 1, or times(a, b) with 0 <= a <= b and b at least 1"
    times = "a whole number of at least 1, a list [a, b] with 0 <= a <= b and b at least 1, or a parameter, '$NAME'"
    least = "a whole number of at least 1, or a parameter, '$NAME'"
    units = "Write a whole number and a unit, as in '12 hours'; units: "
    units += "microseconds (us, µs), milliseconds (ms), seconds (s, sec), minutes (min), hours (h), days (d), weeks"
    length = f"a length of time: whole numbers with units ({units.partition('units: ')[2]}), as in '12 hours' or "
    skips = "no_skip, to_next, past_last_event, 'to_first: STAGE' or 'to_last: STAGE'"
    item = "SQL text, 'semantic: FILTER', 'or: CONDITION' or 'subtype: TYPE'"
    later = "'next: NAME', 'followed_by: NAME', 'followed_by_any: NAME', 'not_next: NAME' or 'not_followed_by: NAME'"
    assert problems_of(document) == [
        f"not a length of time: '12 ours'. {units} (p.yaml, line 1, column 9)",
        f"'skip' must be {skips}, got 'past_last_evnt' (p.yaml, line 2, column 7)",
        "stage 1 has no key 'wher' (p.yaml, line 5, column 3)",
        f"'times' must be {times}, got 0 (p.yaml, line 6, column 10)",
        "'next' must be text that is not empty, or a list of stages, got 1 (p.yaml, line 7, column 9)",
        f"times(3, 1) is not possible: write {call} (p.yaml, line 8, column 10)",
        "item 1 of 'where' has no key 'or' (p.yaml, line 9, column 12)",
        f"item 2 of 'where' must be {item}, got 5 (p.yaml, line 9, column 20)",
        f"item 3 of 'where' must be {item}, got ' ' (p.yaml, line 9, column 23)",
        "'one_or_more' is left out where 'times' is given, as a stage has one quantifier (p.yaml, line 12, column 3)",
        f"'window' must be {length}'1 minute 30 seconds'; or a parameter, '$NAME', got 5 (p.yaml, line 15, column 27)",
        f"'begin' is for the first stage: a later one is {later} (p.yaml, line 16, column 5)",
        f"times(2, 1) is not possible: write {call} (p.yaml, line 17, column 20)",
        f"not a length of time: '3 ours'. {units} (p.yaml, line 17, column 36)",
        f"'times_or_more' must be {least}, got 1.5 (p.yaml, line 18, column 18)",
        '\'not_next\' must be text that is not empty, got [{"begin": "f"}] (p.yaml, line 19, column 13)',
        "a length of time must be positive, got '0 days' (p.yaml, line 20, column 20)",
        "'until' must be SQL text that is not empty, or 'semantic: FILTER', got [\"x\"] (p.yaml, line 21, column 10)",
        "a pattern has no key 'foo' (p.yaml, line 22, column 1)",
    ]
    with pytest.raises(PatternError, match=f"Did you mean 'where'\\? {known}"):
        pattern_from_text(document)
    with pytest.raises(PatternError, match="Did you mean 'past_last_event'\\?"):
        pattern_from_text(document)


STAGE = "stages: [{begin: a}]"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("", "there is no pattern here: the text is empty (p.yaml, column 1)"),
        ("# nothing\n", "there is no pattern here: the text is empty (p.yaml, line 1, column 1)"),
        (
            "- a",
            (
                "a pattern must be a mapping with the keys name, version, parameters, taxonomy, knowledge, mapping, "
                "within, max_gap, skip and stages"
            ),
        ),
        ("name: a", "a pattern needs the key 'stages' (p.yaml, column 1)"),
        (
            f"parameters: {{x: []}}\n{STAGE}",
            "'x' must be a list of at least one value, got [] (p.yaml, line 1, column 17)",
        ),
        (
            f"parameters: {{x: [1, {{data: 3}}]}}\n{STAGE}",
            "item 2 of 'x' has no key 'data' (p.yaml, line 1, column 22)",
        ),
        (
            f"parameters: {{x: [1, null]}}\n{STAGE}",
            (
                "item 2 of 'x' must be a number, text, true, false, 'date: TEXT', 'timestamp: TEXT', 'decimal: TEXT' "
                "or 'interval: TEXT'"
            ),
        ),
        ("stages: []", "'stages' must be a list of at least one stage, got [] (p.yaml, column 9)"),
        ("stages: [a]", "stage 1 must be a mapping with a name: 'begin: NAME', 'next: NAME', …, got 'a' (p.yaml, col"),
        (
            'stages: [{begin: ""}]',
            "'begin' must be text that is not empty, or a list of stages, got '' (p.yaml, column 18)",
        ),
        ("stages: [{begin: []}]", "'begin' must be a list of at least one stage, got [] (p.yaml, column 18)"),
        ("stages: [{begin: [{}]}]", "stage 1.1 has no name: add 'begin: NAME' (p.yaml, column 19)"),
        ("stages: [{begin: [{begin: a}, b]}]", "stage 1.2 must be a mapping with a name: 'begin: NAME', 'next: NAME'"),
        ("stages: [{begin: a, one_or_more: {}}]", "'one_or_more' needs the key 'window' (p.yaml, column 34)"),
        ("stages: [{begin: a, times: {window: 1 day}}]", "'times' needs the key 'count' (p.yaml, column 28)"),
        ("stages: [{begin: a, times: {count: 1, of: 2}}]", "'times' has no key 'of' (p.yaml, column 39)"),
        ("stages: [{begin: a, times_or_more: {}}]", "'times_or_more' needs the key 'count' (p.yaml, column 36)"),
        ("stages: [{begin: a, one_or_more: 1}]", "'one_or_more' must be true, false or a mapping with a window, got 1"),
        (
            "stages: [{begin: a, times: 2, times_or_more: 2}]",
            "'times_or_more' is left out where 'times' is given, as a stage has one quantifier (p.yaml, column 31)",
        ),
        (
            "stages: [{begin: a, times_or_more: 2, one_or_more: {window: 1 day}}]",
            "'one_or_more' is left out where 'times_or_more' is given, as a stage has one quantifier (p.yaml, col",
        ),
        (STAGE + "\nskip: {}", "'skip' must be a mapping with one of to_first and to_last, got {} (p.yaml, line 2"),
        (
            STAGE + "\nskip: {to_first: a, to_last: a}",
            "'skip' must be a mapping with one of to_first and to_last, got {",
        ),
        (STAGE + "\nskip: {to_last: a, to_next: b}", "'skip' has no key 'to_next' (p.yaml, line 2, column 20)"),
        (
            STAGE + "\nskip: {to_first: 1}",
            "'to_first' must be text that is not empty, got 1 (p.yaml, line 2, column 18)",
        ),
        (
            STAGE + "\nskip: 1",
            "'skip' must be no_skip, to_next, past_last_event, 'to_first: STAGE' or 'to_last: STAGE', got",
        ),
        ("stages: [{}]", "stage 1 has no name: add 'begin: NAME' (p.yaml, column 10)"),
        (
            "stages: [{next: a}]",
            "'next' is for later stages: the first stage is 'begin: NAME' (p.yaml, column 11)",
        ),
        (
            "stages: [{begin: a}, {begin: b}]",
            "'begin' is for the first stage: a later one is 'next: NAME', 'followed_by: NAME', 'followed_by_any: NAME'",
        ),
        (
            "stages: [{begin: a}, {where: x}]",
            "stage 2 has no name: add 'next: NAME', 'followed_by: NAME', … (p.yaml, column 22)",
        ),
        (
            "stages: [{begin: a}, {next: b, followed_by: c}]",
            "stage 2 has more than one name: 'next', 'followed_by' (p.yaml, column 22)",
        ),
        (
            "stages: [{begin: a, where: }]",
            "'where' must be SQL text, 'semantic: FILTER', or a list of conditions, got nothing (p.yaml, col",
        ),
        ("stages: [{begin: a, optional: 1}]", "'optional' must be true or false, got 1 (p.yaml, column 31)"),
        (STAGE + "\nwithin: 0 hours", "a length of time must be positive, got '0 hours' (p.yaml, line 2, column 9)"),
        (
            STAGE + f"\nwithin: {'9' * 20} weeks",
            "a length of time must be 36525000 days at most, which are 100,000 years (p.yaml, line 2, column 9)",
        ),
        (STAGE + "\nname: a\nname: b", "the key 'name' is here twice, first on line 2 (p.yaml, line 3, column 1)"),
        (STAGE + "\n[a]: b", "a key must be text (p.yaml, line 2, column 1)"),
        ("stages: &a [*a]", "not YAML: anchors and aliases are not supported: write the value out (p.yaml, column 9)"),
        (STAGE + "\nname: !!python/name:os.system", "the tag 'tag:yaml.org,2002:python/name:os.system' is not read"),
        (STAGE + "\nname: !!int x", "the tag 'tag:yaml.org,2002:int' is not read: leave it out (p.yaml, line 2, col"),
        ("[" * 5000, "not YAML: nested deeper than 20 levels (p.yaml, column 21)"),
        ("stages:\n\t- begin: a", "found character '\\t' that cannot start any token (p.yaml, line 2, column 1)"),
        ("stages:\n- begin: a\n  where: x: y", "not YAML: mapping values are not allowed here (p.yaml, line 3, col"),
        ("stages: [a,\n", "expected the node content, but found '<stream end>' (p.yaml, line 2, column 1)"),
        ("name: \x07", "not YAML: the character #x0007 is not allowed (p.yaml, column 7)"),
        (STAGE + "\nname: " + "9" * 5000, "a number of 5000 digits is not read (p.yaml, line 2, column 7)"),
        ('{"name": "\\ud83d", "stages": [{"begin": "a"}]}', "half of a surrogate pair is not text (p.yaml, column 10)"),
    ],
)
def test_refused_documents(document: str, message: str) -> None:
    """Each mistake is reported with its line and column."""
    assert message in problems_of(document)[0]


def test_the_syntax_of_conditions_is_checked_with_the_rest() -> None:
    """Problems of the document and the syntax of all its conditions are reported together."""
    document = """\
within: 12 ours
stages:
- begin: a
  where: x >
  begin_without: {name: w, within: 1 hour, where: x + }
- followed_by:
  - begin: b
    where: [y = 1, {or: (y = 2}, {semantic: not SQL}, {subtype: no SQL either}, 'y > $limit +']
  until: y >>> > 1
"""
    expected = "a value is expected, but the text ends here"
    assert [problem.partition(". ")[0] for problem in problems_of(document)] == [
        "not a length of time: '12 ours'",
        f"{expected} (p.yaml, line 4, column 12)",
        f"{expected} (p.yaml, line 5, column 53)",
        ") is expected, but the text ends here (p.yaml, line 8, column 30)",
        "a value is expected, found '>' (p.yaml, line 9, column 14)",
    ]


def test_hints() -> None:
    """Quotes are suggested where a number or boolean stands for text, and where YAML misreads punctuation."""
    with pytest.raises(PatternError, match=r"If it is meant as text, put it in quotes."):
        pattern_from_text("stages: [{begin: 1}]")
    with pytest.raises(PatternError, match=r"Text with ': ' or ' #' in it must be in quotes."):
        pattern_from_text("stages:\n- begin: a\n  where: x: y")
    with pytest.raises(PatternError, match=r"Text that begins with this character must be in quotes."):
        pattern_from_text("stages:\n- begin: a\n  where: `delay` > 1")
    with pytest.raises(PatternError, match=r"YAML indents with spaces, not tabs."):
        pattern_from_text("stages:\n\t- begin: a")


def test_malformed_json_is_reported_as_json(tmp_path: Path) -> None:
    """A .json file must follow JSON's rules; the message has the line of the mistake."""
    path = tmp_path / "p.json"
    path.write_text('{\n  "stages": [,]\n}')
    with pytest.raises(PatternError) as caught:
        read_pattern(path)
    assert str(caught.value).startswith(f"not JSON: expecting value ({path}, line 2, column 14)")


def test_files_are_utf8(tmp_path: Path) -> None:
    """A byte order mark is ignored; other encodings are refused with the line."""
    path = tmp_path / "p.yaml"
    path.write_text(LATE_CHAIN, encoding="utf-8-sig")
    assert read_pattern(path) == late_chain
    path.write_bytes("name: a\nskip: é".encode("latin-1"))
    with pytest.raises(PatternError, match=r"a pattern file must be UTF-8 text, this one is not \(.*p.yaml, line 2\)"):
        read_pattern(path)


def test_problems_in_conditions_are_placed_in_the_file() -> None:
    """A problem at a span of a condition has that span in the file; in a quoted text, the span of the whole text."""
    problem = Problem("unknown column 'arr_dlay'", where="stage 'late'", text="arr_dlay > 45", span=(0, 8))
    placed = located_in_document(problem, LATE_CHAIN.replace("arr_delay", "arr_dlay"), source="p.yaml")
    assert str(placed).splitlines() == [
        "unknown column 'arr_dlay' (p.yaml, stage 'late', line 6, column 12)",
        "      where: arr_dlay > 45",
        "             ^^^^^^^^",
    ]
    quoted = 'stages: [{begin: late, where: "arr_dlay \\x3e 45"}]'
    assert "(p.yaml, stage 'late', column 31)" in str(located_in_document(problem, quoted, source="p.yaml"))
    twice = "stages: [{begin: late, where: x > 1}, {next: legs, where: x > 1}]"
    problem = Problem("unknown column 'x'", where="stage 'legs', where", text="x > 1", span=(0, 1))
    assert "(p.yaml, stage 'legs', where, column 59)" in str(located_in_document(problem, twice, source="p.yaml"))


def test_other_problems_of_a_pattern_are_placed_at_its_stage() -> None:
    """A problem of a stage is located at the stage's name; one of the whole pattern has no location."""
    placed = located_in_document(Problem("longest needs a loop", where="stage 'legs'"), LATE_CHAIN, source="p.yaml")
    assert str(placed).startswith("longest needs a loop (p.yaml, stage 'legs', line 7, column 11)")
    placed = located_in_document(Problem("no stage named 'x'", where="skip"), LATE_CHAIN, source="p.yaml")
    assert str(placed).startswith("no stage named 'x' (p.yaml, skip, line 3, column 7)")
    assert located_in_document(Problem("no place"), LATE_CHAIN, source="p.yaml") == Problem("no place")


def test_problems_in_groups_are_placed_there() -> None:
    """A problem of a stage in a group is located at that stage, one of the group at its key, and one of `until` not at
    `where`.
    """
    document = """\
stages:
  - begin: a
  - next:
      - begin: b
        where: x > 1
        until: x > 1
      - next: c
    until: y > 1
"""

    def place_of(problem: Problem) -> str:
        return str(located_in_document(problem, document, source="p.yaml")).splitlines()[0]

    assert place_of(Problem("!", where="stage 'c'")) == "! (p.yaml, stage 'c', line 7, column 15)"
    assert place_of(Problem("!", where="group (b, c)")) == "! (p.yaml, group (b, c), line 3, column 5)"
    condition = Problem("!", where="stage 'b', until", text="x > 1", span=(0, 1))
    assert place_of(condition) == "! (p.yaml, stage 'b', until, line 6, column 16)"
    condition = Problem("!", where="stage 'b', where", text="x > 1", span=(0, 1))
    assert place_of(condition) == "! (p.yaml, stage 'b', where, line 5, column 16)"
    condition = Problem("!", where="group (b, c), until", text="y > 1", span=(4, 5))
    assert place_of(condition) == "! (p.yaml, group (b, c), until, line 8, column 16)"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "a pattern document is text, got None"),
        (b"stages: []", "a pattern document is text, got bytes: b'stages: []'\nread_pattern(path) reads a file."),
        (
            PurePosixPath("p.yaml"),
            "a pattern document is text, got PurePosixPath: PurePosixPath('p.yaml')\nread_pattern(path) reads a file.",
        ),
    ],
)
def test_only_text_is_a_document(given: Any, message: str) -> None:
    with pytest.raises(PatternError) as caught:
        pattern_from_text(given)
    assert str(caught.value) == message
