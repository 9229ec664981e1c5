"""The problems of a pattern file: its structure, checked against the published schema, and values that a schema cannot
check.

Messages are made of the schema's titles. This module adds the places, and checks what a schema cannot express (units of
time, a <= b).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast

from cepheid.errors import PatternError, Problem, closest, did_you_mean
from cepheid.lang.document.marked_text import MarkedText, Path
from cepheid.lang.document.values import parameter_of, taxonomy_of
from cepheid.lang.duration import parse_duration
from cepheid.lang.expression import Span

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

NAME_KEYS = ("begin", "next", "followed_by", "followed_by_any", "not_next", "not_followed_by")
"""The keys of a stage that hold its name or, for a group, its stages."""
_SHOWN = 60
PATTERN_SCHEMA = "stages/schema.json"


def pattern_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of pattern documents."""
    return schema_of(PATTERN_SCHEMA)


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema in the file with this path below `cepheid/lang`."""
    schema: dict[str, Any] = json.loads(files("cepheid.lang").joinpath(name).read_text("utf-8"))
    return schema


def in_order(problems: Sequence[Problem]) -> list[Problem]:
    """The problems in the order of their places."""
    return sorted(problems, key=lambda problem: problem.span or (0, 0))


@cache
def _validator(schema: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator  # would take a third of the time of `import cepheid`

    return Draft202012Validator(schema_of(schema))


def structure_problems(marked: MarkedText, schema: str) -> Iterator[Problem]:
    """The places where the document violates the schema in that file. Missing keys come last, because an unknown key
    may be the misspelling of one.
    """
    errors = _validator(schema).iter_errors(marked.value)
    known = schema_of(schema)["properties"]
    for error in sorted(errors, key=lambda error: error.validator == "required"):
        yield from _structure_problem(error, marked, known)


def _structure_problem(error: ValidationError, marked: MarkedText, known: Collection[str]) -> Iterator[Problem]:
    """The problems of one violation; `known` are the keys of a whole document."""
    path, schema, value = tuple(error.absolute_path), cast("dict[str, Any]", error.schema), cast("Any", error.instance)
    match error.validator:
        case "additionalProperties":
            yield from _unknown_keys(error, path, marked)
        case "required":
            missing = next(key for key in schema["required"] if key not in value)
            unknown = next((key for key in value if key not in schema.get("properties", known)), None)
            span = marked.key_spans.get((*path, unknown or "")) or place(path, marked)
            yield marked.problem(f"{_called(path)} needs the key {missing!r}", span)
        case "oneOf" if _is_stage(path):
            if isinstance(value, dict):  # otherwise its type is wrong, which is already reported
                yield marked.problem(_misnamed(path, value), place(path, marked))
        case _:
            yield _wrong_value(error, path, marked)


def _is_stage(path: Path) -> bool:
    match path:
        case (*_, str(key), int()):
            return key == "stages" or key in NAME_KEYS
    return False


def _misnamed(path: Path, stage: dict[str, Any]) -> str:
    given = [repr(key) for key in NAME_KEYS if key in stage]
    if given:
        return f"{_called(path)} has more than one name: {', '.join(given)}"
    needed = "'begin: NAME'" if path[-1] == 0 else "'next: NAME', 'followed_by: NAME', …"
    return f"{_called(path)} has no name: add {needed}"


def _unknown_keys(error: ValidationError, path: Path, marked: MarkedText) -> Iterator[Problem]:
    known = list(cast("dict[str, Any]", error.schema)["properties"])
    for key in cast("dict[str, Any]", error.instance):
        if key not in known:
            allowed = f" Known here: {', '.join(known)}" if closest(key, known) else ""
            span = marked.key_spans.get((*path, key)) or place(path, marked)
            yield marked.problem(f"{_called(path)} has no key {key!r}", span, did_you_mean(key, known) + allowed)


def _wrong_value(error: ValidationError, path: Path, marked: MarkedText) -> Problem:
    title = cast("dict[str, Any]", error.schema)["title"]
    if error.validator == "not":
        return marked.problem(f"{_called(path)} is {title}", marked.key_spans.get(path) or place(path, marked))
    message = f"{_called(path)} must be {title}, got {_shown(error.instance)}"
    return marked.problem(message, place(path, marked), _hint(error))


def _hint(error: ValidationError) -> str | None:
    schema, value = cast("dict[str, Any]", error.schema), error.instance
    if error.validator == "enum" and isinstance(value, str):
        return did_you_mean(value, schema["enum"]) if closest(value, schema["enum"]) else None
    if "string" in schema.get("type", ()) and isinstance(value, bool | int | float):
        return "If it is meant as text, put it in quotes."
    return None


def _called(path: Path) -> str:
    """The name of the part at `path` in messages. `stage 2.1` is the first stage of the group that is stage 2."""
    match path:
        case ():
            return "a pattern"
        case (*_, str(), int()) if _is_stage(path):
            return f"stage {'.'.join(str(part + 1) for part in path if isinstance(part, int))}"
        case (*_, str(key), int(index)):
            return f"item {index + 1} of {key!r}"
    return repr(path[-1])


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def place(path: Path, marked: MarkedText) -> Span:
    """The span of the part at `path`, or of the nearest part around it that has one."""
    while path not in marked.spans:
        path = path[:-1]
    return marked.spans[path]


def shared_problems(marked: MarkedText, schema: str) -> Iterator[Problem]:
    """The problems in the parts that documents of all kinds have: their structure, the taxonomy and the parameters."""
    yield from marked.problems
    yield from structure_problems(marked, schema)
    if isinstance(marked.value, dict):
        yield from taxonomy_problems(marked.value, marked)
        yield from parameter_problems(marked.value, marked)


def taxonomy_problems(document: dict[str, Any], marked: MarkedText) -> Iterator[Problem]:
    """The problems of the taxonomy, if its structure is valid."""
    if is_valid(taxonomy := document.get("taxonomy"), "taxonomy"):
        assert isinstance(taxonomy, dict)
        yield from refused(partial(taxonomy_of, taxonomy), ("taxonomy", "kinds"), marked)


def parameter_problems(document: dict[str, Any], marked: MarkedText) -> Iterator[Problem]:
    """The problems of the parameters whose structure is valid."""
    parameters = document.get("parameters")
    for name, given in parameters.items() if isinstance(parameters, dict) else ():
        if is_valid(given, "parameter"):
            yield from refused(partial(parameter_of, name, given), ("parameters", name), marked)


def parameter_span(problem: Problem, marked: MarkedText) -> Span | None:
    """The place where the parameter is declared that the problem is about; None if it is not about a declared
    parameter.
    """
    declared = marked.value.get("parameters") if isinstance(marked.value, dict) else None
    for name in declared if isinstance(declared, dict) else ():
        if problem.where == f"parameter {name!r}":
            return marked.key_spans["parameters", name]
    return None


def duration_problems(holder: dict[str, Any], path: Path, key: str, marked: MarkedText) -> Iterator[Problem]:
    """The problems of the length of time under `key`, if its structure is valid."""
    length = holder.get(key)
    if is_valid(length, "duration") and "$" not in str(length):  # otherwise it is a parameter
        yield from refused(partial(parse_duration, str(length)), (*path, key), marked)


def is_valid(value: object, part: str, schema: str = PATTERN_SCHEMA) -> bool:
    """Whether the value is valid for this part of the schema."""
    return _validator(schema).evolve(schema=schema_of(schema)["$defs"][part]).is_valid(value)


def refused(make: Callable[[], object], path: Path, marked: MarkedText) -> Iterator[Problem]:
    """The problems that `make` raises, placed at `path`."""
    try:
        make()
    except PatternError as error:
        for problem in error.problems:
            yield marked.problem(problem.message, place(path, marked), problem.hint)


def text_problems(read: Callable[[str], object], text: object, path: Path, marked: MarkedText) -> Iterator[Problem]:
    """The problems that `read` raises for the text at `path`, each with its place in the document."""
    if not isinstance(text, str) or not text:  # already reported
        return
    try:
        read(text)
    except PatternError as error:
        for problem in error.problems:
            yield marked.problem(problem.message, span_of_text(problem, path, marked), problem.hint)


def span_of_text(problem: Problem, path: Path, marked: MarkedText) -> Span:
    """The place in the document of a problem of the text at `path`. The document may break the lines of that text
    differently. If it writes the text with escapes, the place is the whole text.
    """
    start, end = marked.spans[path]
    places = [place for place in range(start, end) if not marked.text[place].isspace()]
    if problem.text is None or problem.span is None:
        return start, end
    found = "".join(marked.text[place] for place in places).find("".join(problem.text.split()))
    if found < 0:
        return start, end
    first, after = (found + len("".join(problem.text[:offset].split())) for offset in problem.span)
    first = min(first, len(places) - 1)
    return places[first], places[max(first, after - 1)] + 1
