"""Reads and writes single parts of pattern documents: parameters, taxonomies, versions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Protocol

from cepheid.errors import PatternError
from cepheid.lang.document.marked_text import MarkedText, Value
from cepheid.lang.literals import interval_fields, read_date, read_length, read_timestamp
from cepheid.lang.parameters import GivenValue, Parameter, SingleValue, make_parameter
from cepheid.lang.taxonomy import Taxonomy, make_taxonomy

# Parameters


def parameter_of(name: str, given: Any) -> Parameter:
    """The parameter with the value that a document gives; PatternError if the value is not valid."""
    value: GivenValue | None = [_value_of(item) for item in given] if isinstance(given, list) else _value_of(given)
    return make_parameter(name, value)


def _value_of(given: Any) -> SingleValue | None:
    value: SingleValue | None = given
    match given:
        case {"date": text}:
            value = _read("date", read_date, text)
        case {"timestamp": text}:
            value = _read("timestamp", read_timestamp, text)
        case {"interval": text}:
            value = _read("length of time", read_length, text)
        case {"decimal": text}:
            value = _read("decimal", _decimal, text)
    return value


def parameters_of(document: dict[str, Any]) -> tuple[Parameter, ...]:
    """The parameters that the document declares."""
    return tuple(parameter_of(name, given) for name, given in document.get("parameters", {}).items())


def parameters_document(parameters: Sequence[Parameter]) -> dict[str, Value]:
    """The keys from which `parameters_of` reads these parameters; empty if there are no parameters."""
    declared: dict[str, Value] = {parameter.name: parameter_document(parameter) for parameter in parameters}
    return {"parameters": declared} if declared else {}


def parameter_document(parameter: Parameter) -> Value:
    """The value from which `parameter_of` reads the parameter."""
    if isinstance(parameter.value, tuple):
        return [_value_document(item) for item in parameter.value]
    return _value_document(parameter.value)


def _value_document(value: SingleValue | None) -> Value:
    match value:
        case datetime() as time:
            return {"timestamp": time.replace(tzinfo=None).isoformat(" ") + ("Z" if time.tzinfo else "")}
        case date() as day:
            return {"date": day.isoformat()}
        case timedelta() as length:
            return {"interval": interval_fields(length)}
        case Decimal() as number:
            return {"decimal": f"{number:f}"}
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


class Headed(Protocol):
    """A pattern of any kind."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str | None: ...
    @property
    def parameters(self) -> Sequence[Parameter]: ...
    @property
    def types(self) -> Taxonomy | None: ...


def head_document(pattern: Headed) -> dict[str, Value]:
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
    """The taxonomy's document: a type that is a kind of several types has a list of them, any other a single name."""
    document: dict[str, Value] = {"column": taxonomy.column}
    if taxonomy.kinds:
        document["kinds"] = {kind: above[0] if len(above) == 1 else list(above) for kind, above in taxonomy.kinds}
    return document


def version_of(marked: MarkedText) -> str | None:
    """The version as written: 1.10 is not 1.1."""
    assert isinstance(marked.value, dict)
    version = marked.value.get("version")
    return version if version is None or isinstance(version, str) else marked.text[slice(*marked.spans["version",])]


def version_document(version: str) -> Value:
    return int(version) if re.fullmatch(r"0|[1-9][0-9]{0,17}", version) else version
