"""Pattern files: YAML or JSON documents ⇄ the same Pattern values as the fluent interface makes.

What a document may contain is said once, in `pattern.schema.json`: editors complete from it and the reader checks with
it. Its titles are the words of the messages. The reader adds only the places and what a schema cannot say (units of
time, a <= b).
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib.resources import files
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from cepheid.errors import PatternError, Problem, did_you_mean
from cepheid.lang.duration import format_duration, parse_duration
from cepheid.lang.expression import Span
from cepheid.lang.marked_text import MarkedText, Path, Value, dump_yaml, load_marked
from cepheid.lang.pattern import Condition, Contiguity, Pattern, Quantifier, Skip, Stage, check_times

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

_FLAGS = ("one_or_more", "optional", "consecutive", "longest")
_SHOWN = 60


def pattern_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of pattern documents."""
    schema: dict[str, Any] = json.loads(files("cepheid.lang").joinpath("pattern.schema.json").read_text("utf-8"))
    return schema


def read_pattern(path: str | pathlib.Path) -> Pattern:
    """The pattern in a YAML or JSON file.

    Raises:
        OSError: the file cannot be read.
        PatternError: it does not hold a pattern; all problems, with line and column.
    """
    return pattern_from_text(read_text(path), source=str(path))


def read_text(path: str | pathlib.Path) -> str:
    """The text of a pattern file.

    Raises:
        OSError: the file cannot be read.
        PatternError: it is not UTF-8.
    """
    content = pathlib.Path(path).read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise PatternError(Problem(f"a pattern file is UTF-8 text, this is not ({path}, line {line})")) from None


def pattern_from_text(text: str, *, source: str = "<text>") -> Pattern:
    """The pattern in a YAML or JSON document; `source` names it in messages.

    Raises:
        PatternError: all problems of the document, with line and column.
    """
    marked = load_marked(text, source=source)
    problems = [*marked.problems, *_structure_problems(marked), *_value_problems(marked)]
    if problems:
        raise PatternError(sorted(problems, key=lambda problem: problem.span or (0, 0)))
    return _pattern(cast("dict[str, Any]", marked.value))


def pattern_to_document(pattern: Pattern) -> dict[str, Value]:
    """The document that reads as `pattern`, with nothing in it that is the default anyway, except the name."""
    document: dict[str, Value] = {"name": pattern.name}
    if pattern.window is not None:
        document["within"] = format_duration(pattern.window)
    if pattern.skip_strategy is not Skip.NO_SKIP:
        document["skip"] = pattern.skip_strategy.value
    first, *later = pattern.stages
    document["stages"] = [
        _stage_document("begin", first),
        *(_stage_document(stage.contiguity.value, stage) for stage in later),
    ]
    return document


def pattern_to_yaml(pattern: Pattern) -> str:
    """The same document as YAML text."""
    return dump_yaml(pattern_to_document(pattern))


def located_in_document(problem: Problem, text: str, *, source: str) -> Problem:
    """A problem of the pattern that `text` was read as, placed in that document.

    A problem in a condition is placed by the condition's text, in the stage that `problem.where` names; where the file
    writes it in another way (quotes with escapes, folded lines), the whole condition is the place. A problem of a whole
    stage is placed at the stage's name; others stay as they are.
    """
    marked = load_marked(text, source=source)
    where = f"{source}, {problem.where}" if problem.where else source
    for name_span, path, value in _conditions(marked, problem.where or ""):
        if problem.text is None or value == problem.text:
            span = name_span if problem.text is None else _span_in(marked, path, problem)
            return Problem(problem.message, where=where, text=text, span=span, hint=problem.hint)
    return problem


def _conditions(marked: MarkedText, where: str) -> Iterator[tuple[Span, Path, Value]]:
    """The leaves of the stage that `where` begins with: the span of the stage's name, the leaf's path and value."""
    stages: Any = cast("dict[str, Any]", marked.value)["stages"]
    for index, stage in enumerate(stages):
        key = next(key for key in _name_keys() if key in stage)
        if where == f"stage {stage[key]!r}" or where.startswith(f"stage {stage[key]!r}, "):
            for path, value in _leaves(stage, ("stages", index)):
                yield marked.spans[("stages", index, key)], path, value


def _span_in(marked: MarkedText, path: Path, problem: Problem) -> Span:
    start, end = marked.spans[path]
    verbatim = marked.text.find(problem.text or "", start, end)
    if verbatim < 0 or problem.span is None:
        return start, end
    return verbatim + problem.span[0], verbatim + problem.span[1]


def _name_keys() -> tuple[str, ...]:
    return ("begin", *(contiguity.value for contiguity in Contiguity))


@cache
def _validator() -> Draft202012Validator:
    from jsonschema import Draft202012Validator  # a third of the time that `import cepheid` would take

    return Draft202012Validator(pattern_schema())


def _structure_problems(marked: MarkedText) -> Iterator[Problem]:
    for error in _validator().iter_errors(marked.value):
        yield from _structure_problem(error, marked)


def _structure_problem(error: ValidationError, marked: MarkedText) -> Iterator[Problem]:
    path, schema, value = tuple(error.absolute_path), cast("dict[str, Any]", error.schema), cast("Any", error.instance)
    match error.validator:
        case "additionalProperties":
            yield from _unknown_keys(error, path, marked)
        case "required":
            missing = next(key for key in schema["required"] if key not in value)
            yield marked.problem(f"{_called(path)} needs the key {missing!r}", _place(path, marked))
        case "oneOf":
            if isinstance(value, dict):  # of another type: said already
                yield marked.problem(_misnamed(path, value), _place(path, marked))
        case _:
            yield _wrong_value(error, path, marked)


def _misnamed(path: Path, stage: dict[str, Any]) -> str:
    given = [repr(key) for key in _name_keys() if key in stage]
    if given:
        return f"{_called(path)} has more than one name: {', '.join(given)}"
    needed = "'begin: NAME'" if path[-1] == 0 else "'next: NAME', 'followed_by: NAME' or 'followed_by_any: NAME'"
    return f"{_called(path)} has no name: add {needed}"


def _unknown_keys(error: ValidationError, path: Path, marked: MarkedText) -> Iterator[Problem]:
    known = list(cast("dict[str, Any]", error.schema)["properties"])
    for key in cast("dict[str, Any]", error.instance):
        if key not in known:
            hint = did_you_mean(key, known)
            allowed = "" if hint.startswith("Known here") else f" Known here: {', '.join(known)}"
            span = marked.key_spans.get((*path, key)) or _place(path, marked)
            yield marked.problem(f"{_called(path)} has no key {key!r}", span, hint + allowed)


def _wrong_value(error: ValidationError, path: Path, marked: MarkedText) -> Problem:
    title = cast("dict[str, Any]", error.schema)["title"]
    if error.validator == "not":
        return marked.problem(f"{_called(path)} is {title}", marked.key_spans.get(path) or _place(path, marked))
    message = f"{_called(path)} must be {title}, got {_shown(error.instance)}"
    return marked.problem(message, _place(path, marked), _hint(error))


def _hint(error: ValidationError) -> str | None:
    schema, value = cast("dict[str, Any]", error.schema), error.instance
    if error.validator == "enum" and isinstance(value, str):
        hint = did_you_mean(value, schema["enum"])
        return hint if hint.startswith("Did") else None
    if "string" in schema.get("type", ()) and isinstance(value, bool | int | float):
        return "If it is meant as text, put it in quotes."
    return None


def _called(path: Path) -> str:
    """What a user calls the part of the document at `path`."""
    match path:
        case ():
            return "a pattern"
        case ("stages", int(index)):
            return f"stage {index + 1}"
        case (*_, str(key), int(index)):
            return f"item {index + 1} of {key!r}"
    return repr(path[-1])


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _place(path: Path, marked: MarkedText) -> Span:
    """The span of the part at `path`, or of the nearest part around it that has one."""
    while path not in marked.spans:
        path = path[:-1]
    return marked.spans[path]


def _value_problems(marked: MarkedText) -> Iterator[Problem]:
    """What the schema cannot say; only of parts whose structure is right."""
    document = marked.value
    if not isinstance(document, dict):
        return
    length = document.get("within")
    if _validator().evolve(schema=pattern_schema()["properties"]["within"]).is_valid(length):
        yield from _refused(partial(parse_duration, str(length)), ("within",), marked)
    stages = document.get("stages")
    for index, stage in enumerate(stages if isinstance(stages, list) else ()):
        match stage:
            case {"times": [int(least), int(most)]} if least >= 0 and most >= 1:
                times = partial(check_times, least, most)
                yield from _refused(times, ("stages", index, "times"), marked)


def _refused(make: Callable[[], object], path: Path, marked: MarkedText) -> Iterator[Problem]:
    try:
        make()
    except PatternError as error:
        for problem in error.problems:
            yield marked.problem(problem.message, _place(path, marked), problem.hint)


def _leaves(value: Value, path: Path) -> Iterator[tuple[Path, Value]]:
    match value:
        case dict():
            yield from chain.from_iterable(_leaves(part, (*path, key)) for key, part in value.items())
        case list():
            yield from chain.from_iterable(_leaves(part, (*path, index)) for index, part in enumerate(value))
        case _:
            yield path, value


def _pattern(document: dict[str, Any]) -> Pattern:
    first, *later = document["stages"]
    pattern = _with_stage(Pattern.begin(first["begin"], name=document.get("name", "pattern")), first)
    for stage in later:
        contiguity = next(contiguity for contiguity in Contiguity if contiguity.value in stage)
        pattern = _with_stage(getattr(pattern, contiguity.value)(stage[contiguity.value]), stage)
    if "within" in document:
        pattern = pattern.within(document["within"])
    return pattern.skip(Skip(document.get("skip", Skip.NO_SKIP.value)))


def _with_stage(pattern: Pattern, stage: dict[str, Any]) -> Pattern:
    where = stage.get("where", [])
    for condition in [where] if isinstance(where, str) else where:
        pattern = pattern.where(condition) if isinstance(condition, str) else pattern.or_where(condition["or"])
    if "times" in stage:
        times = stage["times"] if isinstance(stage["times"], list) else [stage["times"]]
        pattern = pattern.times(*map(int, times))  # a JSON Schema takes 2.0 for an integer, and so do we
    for flag in _FLAGS:
        if stage.get(flag):
            pattern = getattr(pattern, flag)()
    return pattern


def _stage_document(key: str, stage: Stage) -> dict[str, Value]:
    document: dict[str, Value] = {key: stage.name}
    conditions: list[Value] = [_condition_document(condition) for condition in stage.conditions]
    if conditions:
        document["where"] = conditions[0] if len(conditions) == 1 else conditions
    return {**document, **_quantifier_document(stage.quantifier)}


def _condition_document(condition: Condition) -> Value:
    return {"or": condition.text} if condition.alternative else condition.text


def _quantifier_document(quantifier: Quantifier) -> dict[str, Value]:
    document: dict[str, Value] = {}
    if (times := quantifier.times) is not None:
        if times.maximum is None:
            document["one_or_more"] = True
        else:
            document["times"] = times.minimum if times.minimum == times.maximum else [times.minimum, times.maximum]
    flags: dict[str, Value] = {flag: True for flag in _FLAGS[1:] if getattr(quantifier, flag)}
    return {**document, **flags}
