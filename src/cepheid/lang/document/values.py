"""The parts of pattern documents that stand for values of their own: conditions, parameters, taxonomies, versions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from cepheid.errors import PatternError
from cepheid.lang.document.marked_text import MarkedText, Value
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.literals import read_date, read_timestamp
from cepheid.lang.occurrences.expression import OccurrencePattern
from cepheid.lang.parameters import Parameter, ParameterValue, make_parameter
from cepheid.lang.stages.pattern import Condition, Pattern, Subtype
from cepheid.lang.taxonomy import Taxonomy, make_taxonomy

# Conditions


def with_conditions(pattern: Pattern, stage: dict[str, Any]) -> Pattern:
    """The pattern with what the keys `where` and `subtype` of its last stage say.

    The key `subtype` restricts the stage whatever `where` says: it is ANDed with the whole of it. So it is the last
    condition where there is an `or`, and else the first, as in `begin(…).subtype(…).where(…)`.
    """
    where = stage.get("where", [])
    items = [where] if isinstance(where, str) else list(where)
    if "subtype" in stage:
        last = any(isinstance(item, dict) and "or" in item for item in items)
        items.insert(len(items) if last else 0, {"subtype": stage["subtype"]})
    for item in items:
        match item:
            case {"or": text}:
                pattern = pattern.or_where(text)
            case {"subtype": type_}:
                pattern = pattern.subtype(type_)
            case _:
                pattern = pattern.where(item)
    return pattern


def condition_document(conditions: Sequence[Condition | Subtype]) -> dict[str, Value]:
    """The keys that `with_conditions` reads as these."""
    document: dict[str, Value] = {}
    rest = list(conditions)
    alternatives = any(isinstance(condition, Condition) and condition.alternative for condition in rest)
    if rest and isinstance(whole := rest[-1 if alternatives else 0], Subtype):
        document["subtype"] = whole.type
        del rest[-1 if alternatives else 0]
    items: list[Value] = [_condition_item(condition) for condition in rest]
    if items:
        document["where"] = items[0] if len(items) == 1 and isinstance(items[0], str) else items
    return document


def _condition_item(condition: Condition | Subtype) -> Value:
    if isinstance(condition, Subtype):
        return {"subtype": condition.type}
    value = condition_value(condition)
    return {"or": value} if condition.alternative else value


def condition_value(condition: Condition) -> Value:
    """SQL as text; of a function its name, which nothing reads: see `pattern_form`."""
    return condition.text if condition.function is None else {"function": condition.text}


# Parameters


def parameter_of(name: str, given: Any) -> Parameter:
    """The parameter of a document; PatternError where its value is none."""
    value: ParameterValue | None = given
    match given:
        case {"date": text}:
            value = _read("date", read_date, text)
        case {"timestamp": text}:
            value = _read("timestamp", read_timestamp, text)
        case {"decimal": text}:
            value = _read("decimal", _decimal, text)
    return make_parameter(name, value)


def parameters_of(document: dict[str, Any]) -> tuple[Parameter, ...]:
    """Those that the document declares."""
    return tuple(parameter_of(name, given) for name, given in document.get("parameters", {}).items())


def parameters_document(parameters: Sequence[Parameter]) -> dict[str, Value]:
    """The keys that `parameters_of` reads as these: none where there are none."""
    declared: dict[str, Value] = {parameter.name: parameter_document(parameter) for parameter in parameters}
    return {"parameters": declared} if declared else {}


def parameter_document(parameter: Parameter) -> Value:
    """What `parameter_of` reads as its value."""
    match parameter.value:
        case datetime() as time:
            return {"timestamp": time.replace(tzinfo=None).isoformat(" ") + ("Z" if time.tzinfo else "")}
        case date() as day:
            return {"date": day.isoformat()}
        case Decimal() as number:
            return {"decimal": f"{number:f}"}
        case value:
            return value


def _read(kind: str, read: Any, text: str) -> Any:
    try:
        return read(text)
    except ValueError as error:
        message = str(error)
        raise PatternError(message if repr(text) in message else f"not a {kind}: {text!r}: {message}") from None


def _decimal(text: str) -> Decimal:
    if not re.fullmatch(r"[-+]?[0-9]+(\.[0-9]*)?|[-+]?\.[0-9]+", text):
        raise ValueError(f"not a decimal: {text!r}. Write it as '12.50'")
    return Decimal(text)


# What all pattern documents begin with


def head_document(pattern: Pattern | OccurrencePattern | IntervalPattern) -> dict[str, Value]:
    """The keys name, version, parameters and taxonomy."""
    document: dict[str, Value] = {"name": pattern.name}
    if pattern.version is not None:
        document["version"] = version_document(pattern.version)
    document |= parameters_document(pattern.parameters)
    if pattern.types is not None:
        document["taxonomy"] = taxonomy_document(pattern.types)
    return document


def taxonomy_of(document: dict[str, Any]) -> Taxonomy:
    return make_taxonomy(document["column"], document.get("kinds", {}))


def taxonomy_document(taxonomy: Taxonomy) -> Value:
    """Several types that a type is a kind of are a list, one stands alone."""
    document: dict[str, Value] = {"column": taxonomy.column}
    if taxonomy.kinds:
        document["kinds"] = {kind: above[0] if len(above) == 1 else list(above) for kind, above in taxonomy.kinds}
    return document


def version_of(marked: MarkedText) -> str | None:
    """The version as it is written: 1.10 is not 1.1."""
    assert isinstance(marked.value, dict)
    version = marked.value.get("version")
    return version if version is None or isinstance(version, str) else marked.text[slice(*marked.spans["version",])]


def version_document(version: str) -> Value:
    return int(version) if re.fullmatch(r"0|[1-9][0-9]{0,17}", version) else version
