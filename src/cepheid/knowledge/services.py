"""The event ontology of Vaculín and Sycara for the execution of services, and a mapping of service logs to it.

The ontology has an event class for each start and end of an atomic, composite or simple process, for assignments,
evaluations, control constructs, grounding and failures. `services.ttl` says which of its names are the paper's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cepheid.knowledge.events.mapping import EventMapping, Individual, Node, Value, constant, node

SERVICES = Path(__file__).with_name("services.ttl")
"""The file of the ontology, for `Knowledge.read`."""
EVENT, PROCESS = "http://example.org/events.owl#", "http://www.daml.org/services/owl-s/1.1/Process.owl#"
SERVICE_PREFIXES: Mapping[str, str] = {"event": EVENT, "process": PROCESS}

_KINDS = ("AtomicProcess", "CompositeProcess", "SimpleProcess", "Sequence", "AnyOrder", "Choice", "IfThenElse")
_OTHERS = """
Event ProcessCallEvent AssignEvent InputAssignEvent OutputAssignEvent PreconditionEvalEvent ResultEvalEvent
ResultEffectEvent ResultOutputEvent ControlConstructEvent IfThenElseConditionEvent GroundingEvent WsdlGroundingEvent
ExceptionEvent PreconditionExceptionEvent GroundingExceptionEvent
"""
CLASSES = (*(f"{kind}{part}Event" for kind in _KINDS for part in ("Start", "End")), *_OTHERS.split())
"""The classes of events, without their prefix."""


def service_mapping(
    name: str,
    *,
    type: str = "type",  # noqa: A002 - the type of the event
    time: str | None = None,
    process: Individual | None = None,
    inputs: Mapping[str, str | Individual] | None = None,
    outputs: Mapping[str, str | Individual] | None = None,
    message: str | None = None,
) -> EventMapping:
    """The mapping of a log of service calls to the ontology, with whatever prefixes the knowledge has.

    Args:
        name: The name of an event, as in `EventMapping`: such as "http://shop.example/call/{call}/{type}".
        type: The column with one of `CLASSES`. Events with other types have no class.
        time: The column with the time, if filters ask for `timeStamp`.
        process: The process that is called, such as `individual("shop:{process}")`.
        inputs: The inputs by the names of their parameters: a column, or an individual. Each becomes a
            `ParameterValueBinding`; NULL gives none.
        outputs: The outputs by the names of their parameters, as inputs.
        message: The column with the message of a failure.
    """
    properties: dict[str, Value | list[Value]] = {}
    if time is not None:
        properties[f"{EVENT}timeStamp"] = time
    if process is not None:
        properties[f"{EVENT}process"] = process
    for direction, given in (("input", inputs), ("output", outputs)):
        if given:
            properties[EVENT + direction] = [_binding(parameter, value) for parameter, value in given.items()]
    if message is not None:
        properties[f"{EVENT}textMessage"] = message
    classes = {one: EVENT + one for one in CLASSES}
    return EventMapping(name, type=type, classes=classes, properties=properties)


def _binding(parameter: str, value: str | Individual) -> Node:
    return node(
        {
            "a": constant(f"{EVENT}ParameterValueBinding"),
            f"{EVENT}toParameter": constant(parameter),
            EVENT + ("dataValue" if isinstance(value, str) else "objectValue"): value,
        }
    )
