"""Patterns of the event algebra: immutable values, and the calls that make new ones from them.

The algebra is Vaculín and Sycara's algebra for semantic monitoring, whose operators are Carlson and Lisper's. An
occurrence is a set of events with a start and an end; it may contain temporal events such as "ten seconds after that".
An expression says which occurrences there are. As with patterns of stages, names and texts are only collected here;
they are checked when a pattern meets a schema (`cepheid.plan.occurrences.build`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from cepheid.errors import PatternError
from cepheid.lang.argument_advice import TYPES
from cepheid.lang.arguments import pattern_name, shown
from cepheid.lang.known_arguments import known_arguments, known_calls
from cepheid.lang.occurrences.expression import (
    Condition,
    Occurrence,
    RestrictedType,
    given_condition,
    type_name,
)
from cepheid.lang.occurrences.parser import parse_occurrences
from cepheid.lang.occurrences.picture import picture_of
from cepheid.lang.occurrences.printer import calls_text
from cepheid.lang.occurrences.variables import variable_name
from cepheid.lang.parameters import GivenValue, Parameter, with_values
from cepheid.lang.pictures.box import Box
from cepheid.lang.pictures.drawn import Drawn
from cepheid.lang.semantic import check_knowledge
from cepheid.lang.taxonomy import Taxonomy, make_taxonomy

if TYPE_CHECKING:
    from cepheid.knowledge.events.mapping import EventMapping
    from cepheid.knowledge.knowledge import Knowledge


class Policy(Enum):
    """Which of a pattern's occurrences are emitted."""

    UNRESTRICTED = "unrestricted"
    """All occurrences."""
    RECENT = "recent"
    """One for each end time: the occurrence that starts last."""
    SNOOP_RECENT = "snoop_recent"
    CHRONICLE = "chronicle"
    CONTINUOUS = "continuous"
    CUMULATIVE = "cumulative"
    """The last four are Snoop's contexts. They say which occurrences an operator stores while it waits, and which it
    uses up.
    """

    @property
    def is_context(self) -> bool:
        return self not in (Policy.UNRESTRICTED, Policy.RECENT)


@known_calls
@dataclass(frozen=True)
class OccurrencePattern(Drawn):
    """An expression and how it is detected. Start with `OccurrencePattern.of`; every call returns a new pattern."""

    expression: Occurrence
    name: str = "pattern"
    """Part of every match_id, so that the matches of two patterns never have the same id."""
    chosen: Policy | None = None
    """Set by `policy`. None: unrestricted for finite input, recent for input that does not end."""
    types: Taxonomy | None = None
    """Set by `taxonomy`."""
    restricted: tuple[RestrictedType, ...] = ()
    """Set by `restrict`, or declared in the text."""
    parameters: tuple[Parameter, ...] = ()
    """Set by `with_parameters` and by pattern files, each name once."""
    knowledge: Knowledge | None = None
    """Set by `of`: what semantic filters ask, and what types are kinds of."""
    mapping: EventMapping | None = None
    """Set by `of`: how events are individuals. There if and only if there is knowledge."""
    version: str | None = None
    """For people who store versions of patterns; it is not part of match_id."""

    def __repr__(self) -> str:
        return calls_text(self)

    @property
    def picture(self) -> Box:
        """The pattern as boxes, which a notebook shows."""
        return picture_of(self)

    @staticmethod
    @known_arguments(TYPES)
    def of(
        expression: Occurrence | str, *, knowledge: Knowledge | None = None, mapping: EventMapping | None = None
    ) -> OccurrencePattern:
        """The pattern of an expression, or of its text in the notation of `cepheid.lang.occurrences.parser`.

        Args:
            expression: In a text with knowledge, conditions in brackets are semantic filters; `[sql: …]` is SQL.
            knowledge: What semantic filters ask. The types of leaves are then classes.
            mapping: How events are individuals; given if and only if knowledge is.

        Raises:
            PatternError: the text is not valid; with the places of the problems.
        """
        check_knowledge(knowledge, mapping)
        if isinstance(expression, str):
            declared = parse_occurrences(expression, semantic=knowledge is not None)
            return OccurrencePattern(
                declared.expression, restricted=declared.restricted, knowledge=knowledge, mapping=mapping
            )
        if not isinstance(expression, Occurrence):
            raise PatternError(
                f"an expression such as event('a') >> event('b'), or its text, is expected, got {shown(expression)}"
            )
        return OccurrencePattern(expression, knowledge=knowledge, mapping=mapping)

    def named(self, name: str) -> OccurrencePattern:
        return replace(self, name=pattern_name(name))

    def policy(self, policy: Policy | str) -> OccurrencePattern:
        """Sets which occurrences are emitted: a `Policy`, or its name."""
        known = [one.value for one in Policy]
        if isinstance(policy, str) and policy in known:
            policy = Policy(policy)
        if not isinstance(policy, Policy):
            raise PatternError(f"policy: {policy!r} is not known; allowed are {', '.join(map(repr, known))}")
        return replace(self, chosen=policy)

    def taxonomy(self, column: str, kinds: Mapping[str, str | Sequence[str]] | None = None) -> OccurrencePattern:
        """Names the column that holds the type of each event, and gives for a type the types that it is a kind of."""
        return replace(self, types=make_taxonomy(column, kinds or {}))

    def with_parameters(self, /, **values: GivenValue) -> OccurrencePattern:
        """Gives each `$name` in conditions and measures its value, as `Pattern.with_parameters` does."""
        return replace(self, parameters=with_values(self.parameters, values))

    def restrict(self, name: str, base: str, condition: Condition, *, variable: str | None = None) -> OccurrencePattern:
        """Declares a restricted type `name`: the events of `base` for which `condition` is true."""
        made = RestrictedType(
            type_name(name),
            type_name(base),
            given_condition(condition),
            None if variable is None else variable_name(variable),
        )
        return replace(self, restricted=(*self.restricted, made))
