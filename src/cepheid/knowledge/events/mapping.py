"""How events become individuals of an ontology."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EventMapping:
    """How the columns of an event become its name and its facts."""

    name: str
    """The column with the name (IRI) of the event's individual."""
    turtle: str | None = None
    """The column with the event's facts as Turtle. Nodes without a name are the event's own."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, each once."""
        return tuple(dict.fromkeys(one for one in (self.name, self.turtle) if one is not None))

    @property
    def brings_any_facts(self) -> bool:
        """Whether events may say anything of anything; otherwise only the mapped properties of themselves."""
        return self.turtle is not None
