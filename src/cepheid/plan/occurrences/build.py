"""Pattern of occurrences + schema → plan. All problems of a pattern are found here, and reported at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from cepheid.errors import LimitExceeded, PatternError, Problem
from cepheid.events.batch import Schema
from cepheid.events.time import has_one_offset
from cepheid.knowledge.question import with_answers
from cepheid.lang.duration import microseconds
from cepheid.lang.expression import Call
from cepheid.lang.occurrences import expression as algebra
from cepheid.lang.occurrences.expression import Occurrence, has_delays
from cepheid.lang.occurrences.pattern import OccurrencePattern, Policy
from cepheid.lang.semantic import SemanticFilter
from cepheid.lang.sql.parser import parse_expression
from cepheid.plan.condition_bits import MAX_CONDITIONS
from cepheid.plan.conditions import resolve
from cepheid.plan.conditions.asked_types import ask_types, check_boolean
from cepheid.plan.conditions.lift import Lifting
from cepheid.plan.conditions.never import never_true
from cepheid.plan.conditions.parameters import Parameters
from cepheid.plan.conditions.resolve import Apply, Column, Node, Resolver, Shape, Source
from cepheid.plan.conditions.script import Script
from cepheid.plan.engine import SqlEngine
from cepheid.plan.measures import build_measures, measure_problems, resolve_measures, running_problems
from cepheid.plan.nameless import nameless
from cepheid.plan.occurrences.check import (
    OUTPUT,
    check_depth,
    costly,
    event_faults,
    occurrence_problems,
    with_types,
)
from cepheid.plan.occurrences.conditions import (
    VariableTexts,
    event_condition,
    names_of,
    of_current_event,
    variable_condition,
)
from cepheid.plan.occurrences.constants import Kind
from cepheid.plan.occurrences.lifted import LiftedTexts, lifted_texts
from cepheid.plan.occurrences.plan import OccurrencePlan, Operator
from cepheid.plan.occurrences.plans import OccurrencePlans
from cepheid.plan.occurrences.semantic import (
    PlannedFilter,
    PlannedType,
    Semantics,
    SemanticTexts,
    outputs_problems,
)
from cepheid.plan.occurrences.types import Chain, misread_types, type_chains
from cepheid.plan.occurrences.variables import scopes_of
from cepheid.plan.pattern_request import PatternRequest, PlanOptions
from cepheid.plan.plan_set import plan_parts, plans_or_problems
from cepheid.plan.problems import names_beside, refusal, schema_faults
from cepheid.plan.semantics.filters import mapping_problems
from cepheid.plan.semantics.inert import NotLifted


def build_occurrence_plans(
    patterns: Sequence[PatternRequest[OccurrencePattern]], schema: Schema, engine: SqlEngine, options: PlanOptions
) -> OccurrencePlans:
    """The plans of patterns over the same events; for `options.named` see OccurrencePlans.

    Raises:
        SchemaError: the key, time, sequence or columns are missing or not usable; one message with all such faults.
        PatternError: lists the faults of the schema, if any, then all problems of the patterns and measures.
        LimitExceeded: the patterns ask for more than MAX_CONDITIONS types.
    """
    faults = schema_faults(schema, options)
    if schema.time is None:
        faults.append("time: occurrences have a start and an end, so event times are needed: name the column of times")
    delays = any(has_delays(one.pattern.expression) for one in patterns)
    for pattern, measures, _ in patterns:
        if measures is None:
            found = event_faults(pattern, schema, options.chosen(schema), with_delays=delays)
            faults += [fault for fault in found if fault not in faults]
    plans, problems = plans_or_problems(
        patterns,
        lambda one, first_slot: _plan_or_problems(
            one, schema, engine, options, sound=not faults, first_slot=first_slot
        ),
        named=options.named,
    )
    if problems or faults:
        raise refusal(problems, faults)
    return OccurrencePlans.of(plans, named=options.named)


def _plan_or_problems(
    asked: PatternRequest[OccurrencePattern],
    schema: Schema,
    engine: SqlEngine,
    options: PlanOptions,
    *,
    sound: bool,
    first_slot: int,
) -> OccurrencePlan | list[Problem]:
    pattern, measures = asked.pattern, asked.measures
    if deep := check_depth(pattern):
        return deep
    found = _Resolved(pattern, schema.columns, schema.time or "", measures or {})
    found.problems += outputs_problems(pattern, options.outputs)
    if measures is not None:
        found.problems += measure_problems(measures, [*OUTPUT, *names_beside(schema, options)])
        if options.rows_per == "event":
            found.problems += running_problems(measures, "measures of occurrences are those of the whole occurrence")
    columns = with_answers(schema.columns, found.lifted.questions)
    types = ask_types(engine, found.nodes, columns, found.problems)
    if found.problems or not sound:
        return found.problems
    names, one_offset = names_of(found.scopes.names), has_one_offset(engine.time_zone)
    built = _Builder(found, Lifting(types, one_offset, names, folds_elapse=True, first_slot=first_slot))
    root = built.row(pattern.expression)
    semantics = built.semantics()
    given = build_measures(built.lifting, found.measures, engine, built.problems)
    if built.problems:
        return built.problems
    policy = pattern.chosen or Policy.UNRESTRICTED
    recent = policy is Policy.RECENT
    return OccurrencePlan(
        pattern=pattern,
        **plan_parts(schema, built.lifting, options, found.lifted.questions),
        operators=tuple(built.rows),
        root=root,
        variables=tuple(found.scopes.each),
        time_value=built.time_value,
        measures=None if measures is None else given,
        columns=with_types(pattern, options.chosen(schema)),
        policy=policy,
        semantics=semantics,
        answers=found.lifted.answers,
        by_operator=recent and not built.scripted,
        warnings=(
            *nameless(pattern),
            *misread_types(pattern),
            *(found.semantic.warnings if pattern.knowledge is not None else never_true(found.own_conditions)),
            *(map(costly, built.scripted[:1]) if recent else ()),
        ),
    )


def check_occurrences(pattern: OccurrencePattern, measures: Mapping[str, str] | None = None) -> list[Problem]:
    """The problems that do not depend on the events: syntax, types, variables, the policy."""
    if deep := check_depth(pattern):
        return deep
    problems = measure_problems(measures or {}, OUTPUT)
    return problems + _Resolved(pattern, None, "", measures or {}).problems


class _Resolved:
    """The pattern's texts with their names resolved; `problems` lists what is wrong with them."""

    def __init__(
        self, pattern: OccurrencePattern, columns: pa.Schema | None, time: str, measures: Mapping[str, str]
    ) -> None:
        self.pattern, self.columns, self.time = pattern, columns, time
        self.problems: list[Problem] = []
        self.scopes = scopes_of(pattern.expression, self.problems)
        self.problems += occurrence_problems(pattern, self.scopes, [] if columns is None else columns.names)
        self.problems += mapping_problems(pattern.knowledge, pattern.mapping, columns)
        self.chains = type_chains(pattern, columns, self.problems)
        self.parameters = Parameters(pattern.parameters)
        self.semantic = SemanticTexts(pattern, self.scopes.names, self.problems)
        self.types = {name: self._type_condition(chain) for name, chain in self.chains.items()}
        self.meanings = {
            name: meaning
            for name, chain in self.chains.items()
            if chain.sql is None and (meaning := self._meaning(chain)) is not None
        }
        """What the events of a type must mean, in a pattern with knowledge. Empty if SQL on their columns says it."""
        self._read_other_types()
        self.conditions = {number: self._condition(number) for number in range(len(self.scopes.conditions))}
        self.grows: str | None = None
        """Why what is known grows with the events; None: SQL on their columns says what events mean."""
        self.lifted = LiftedTexts({}, {}, ())
        if pattern.knowledge is not None and columns is not None and not self.problems:
            self._lift(columns)
        visible = frozenset(number for number, s in enumerate(self.scopes.each) if s.in_output)
        texts = VariableTexts(self.parameters, self.scopes.names, visible, self.time)
        self.measures = resolve_measures(self.scopes.names, measures, columns, texts, self.problems)
        self.problems += self.parameters.unused()

    @property
    def nodes(self) -> list[Node]:
        """All resolved conditions and measures."""
        conditions = [node for node in self.conditions.values() if isinstance(node, Node)]
        types = [part for node in self.types.values() if node is not None for part in resolve.written_parts(node)]
        return [*types, *conditions, *(one.node for one in self.measures)]

    @property
    def own_conditions(self) -> list[Node]:
        """Those that are written in the pattern, in SQL."""
        types = {one.name for one in self.pattern.restricted}
        restrictions = [
            part
            for name in types & self.types.keys()
            if (node := self.types[name]) is not None
            for part in resolve.written_parts(node)
        ]
        return [*restrictions, *(node for node in self.conditions.values() if isinstance(node, Node))]

    def _condition(self, number: int) -> Node | PlannedFilter | None:
        written = self.scopes.conditions[number]
        what = "minus_if" if written.of_minus else "condition"
        alike = [one for one in self.scopes.conditions if one.of_minus == written.of_minus]
        where = what if len(alike) == 1 else f"{what} {alike.index(written) + 1}"
        if isinstance(written.condition, SemanticFilter):
            return self.semantic.filter(written.condition, written.visible, where)
        source = Source(written.condition, where)
        texts = VariableTexts(self.parameters, self.scopes.names, written.visible, self.time)
        return variable_condition(source, self.columns, texts, self.problems)

    def _lift(self, columns: pa.Schema) -> None:
        """Puts SQL in place of what events mean, where that is possible."""
        filters = {number: one for number, one in self.conditions.items() if isinstance(one, PlannedFilter)}
        try:
            lifted = self.lifted = lifted_texts(self.pattern, self.meanings, filters, self.scopes, columns)
        except NotLifted as reason:
            self.grows = str(reason)
            return
        columns = with_answers(columns, lifted.questions)
        for name, sql in lifted.types.items():
            own = Resolver(Source(sql, f"type {name!r}"), columns, (), 0, self.problems).resolve(parse_expression(sql))
            others = self.types[name]
            self.types[name] = own if others is None else _conjunction(own, others)
        self.meanings = {}
        for number, sql in lifted.conditions.items():
            texts = VariableTexts(self.parameters, self.scopes.names, self.scopes.conditions[number].visible, self.time)
            self.conditions[number] = variable_condition(Source(sql, "condition"), columns, texts, self.problems)

    def _meaning(self, chain: Chain) -> PlannedType | None:
        return self.semantic.type(chain.base, chain.restricted)

    def _type_condition(self, chain: Chain) -> Node | None:
        """The condition that an event is of the type: its type is one of those in the chain, and all restrictions are
        true for it. None if there are problems, or only what the event means counts.
        """
        parts = []
        if chain.sql is not None:
            source = Source(chain.sql, "taxonomy")
            parts.append(Resolver(source, self.columns, (), 0, self.problems).resolve(parse_expression(chain.sql)))
        for restricted in chain.restricted:
            if isinstance(restricted.condition, SemanticFilter):
                if self.pattern.knowledge is None:
                    self.semantic.filter(restricted.condition, (), f"type {restricted.name!r}")
                continue
            texts = VariableTexts(self.parameters, (), frozenset(), self.time)
            part = event_condition(restricted, restricted.condition, texts, self.columns, self.problems)
            if part is None:
                return None
            parts.append(part)
        return _conjunction(*parts) if parts else None

    def _read_other_types(self) -> None:
        """Reads the conditions of types that no leaf asks for, so that their parameters count as used."""
        asked = {restricted.name for chain in self.chains.values() for restricted in chain.restricted}
        for one in self.pattern.restricted:
            if one.name not in asked and not isinstance(one.condition, SemanticFilter):
                self.parameters.parse(Source(one.condition, f"type {one.name!r}"), self.problems)


def _conjunction(*nodes: Node) -> Node:
    """The conditions, AND-ed; all are about one event."""
    parts = tuple(part for node in nodes for part in resolve.written_parts(node))
    if len(parts) == 1:
        return parts[0]
    call = Call("and", tuple(map(resolve.tree_of, parts)), (0, 0))  # the AND is in no text
    return Apply(call, parts, None)


@dataclass
class _Builder:
    """Makes the table of operators; equal operators become one row."""

    found: _Resolved
    lifting: Lifting
    rows: list[Operator] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    _known: dict[Operator, int] = field(default_factory=dict)
    scripted: list[str] = field(default_factory=list)
    """The conditions about several events, which become scripts."""
    _conditions: int = 0
    """The number of conditions met so far, in the order of `Scopes.conditions`."""

    def row(self, expression: Occurrence) -> int:
        """The row of the expression, added after those of its operands."""
        match expression:
            case algebra.Leaf(type_):
                made = self._leaf(type_)
            case algebra.Both(left, right) | algebra.Either(left, right) | algebra.Then(left, right):
                made = Operator(_PAIRS[type(expression)], self.row(left), self.row(right))
            case algebra.Without(left, right, condition):
                rows = self.row(left), self.row(right)
                made = Operator(Kind.WITHOUT, *rows)
                if condition is not None:
                    made = self._conditional(made, condition)
            case algebra.Within(of, length):
                made = Operator(Kind.WITHIN, self.row(of), number=microseconds(length))
            case algebra.Delayed(of, delay):
                made = Operator(Kind.DELAYED, self.row(of), number=microseconds(delay))
            case algebra.Filtered() if (bound := self._bound_event(expression)) is not None:
                return bound
            case algebra.Bound(of, variable):
                return self._bound(self.row(of), variable)
            case algebra.Filtered(of, condition):
                made = self._conditional(Operator(Kind.FILTERED, self.row(of)), condition)
            case _:
                raise AssertionError(expression)
        return self._added(made)

    def _added(self, made: Operator) -> int:
        if made not in self._known:
            self._known[made] = len(self.rows)
            self.rows.append(made)
        return self._known[made]

    def _bound(self, row: int, variable: str) -> int:
        number = self.found.scopes.number(variable)
        # An expression that can fail is only computed for events of the type.
        if self.rows[row].kind is Kind.LEAF and self.rows[row].number >= 0 and not self.problems:
            bits = [lifted for _, lifted in self.lifting.bits.values()]
            self.lifting.guards[number] = bits[self.rows[row].number]
        return self._added(Operator(Kind.BOUND, row, number=number))

    def _bound_event(self, expression: Occurrence) -> int | None:
        """The row of an event with conditions on that event alone, which are treated as if they restricted its type. If
        a condition is not on one event, returns None and does nothing.
        """
        filters, inner = 0, expression
        while isinstance(inner, algebra.Filtered):
            filters, inner = filters + 1, inner.of
        if not (isinstance(inner, algebra.Bound) and isinstance(inner.of, algebra.Leaf)):
            return None
        conditions = [self.found.conditions[self._conditions + i] for i in range(filters)]
        nodes = [node for node in conditions if isinstance(node, Node)]
        parts = [part for node in nodes if (part := of_current_event(node)) is not None]
        meanings = [(inner.variable, one.atoms) for one in conditions if isinstance(one, PlannedFilter)]
        if len(parts) + len(meanings) < filters:
            return None
        self._conditions += filters
        leaf = self._leaf(inner.of.type, *parts)
        if meanings:
            assert leaf.type is not None
            leaf = replace(leaf, type=replace(leaf.type, filters=(*leaf.type.filters, *meanings)))
        return self._bound(self._added(leaf), inner.variable)

    def _leaf(self, type_: str, *more: Node) -> Operator:
        """The events of the type for which the conditions are true."""
        node = self.found.types[type_]
        parts = [*more] if node is None else [node, *more]
        bit = self._bit(type_, _conjunction(*parts)) if parts else -1
        return Operator(Kind.LEAF, number=bit, type=self.found.meanings.get(type_))

    def _conditional(self, made: Operator, condition: algebra.Condition) -> Operator:
        """The operator with the next condition."""
        number, self._conditions = self._conditions, self._conditions + 1
        node = self.found.conditions[number]
        text = condition.text if isinstance(condition, SemanticFilter) else condition
        self.scripted.append(text)
        if isinstance(node, PlannedFilter):
            return replace(made, filter=node, text=text)
        assert node is not None, number
        return replace(made, script=self._script(node), text=text)

    def _bit(self, type_: str, node: Node) -> int:
        """The bit of the events for which the condition of the type is true."""
        try:
            for part in resolve.written_parts(node):
                check_boolean(self.lifting, part)
            # No variable has the number after the last, so this condition guards nothing.
            condition = self.lifting.condition(node, len(self.found.scopes.names))
        except PatternError as error:
            self.problems += error.problems
            return 0
        assert condition.bit is not None, type_
        assert condition.script is None, type_
        if len(self.lifting.bits) > MAX_CONDITIONS:
            raise LimitExceeded(f"a pattern can have at most {MAX_CONDITIONS} different types. Split it into several")
        return condition.bit

    def _script(self, node: Node) -> Script | None:
        try:
            check_boolean(self.lifting, node)
            return self.lifting.lower(node, guarded=False)
        except PatternError as error:
            self.problems += error.problems
            return None

    def semantics(self) -> Semantics | None:
        """What a host needs to know what events mean; None if the pattern has no knowledge."""
        pattern, columns = self.found.pattern, self.found.columns
        if pattern.knowledge is None or pattern.mapping is None or self.found.grows is None:
            return None
        numbers = []
        for name in pattern.mapping.columns:
            source = Source(f"`{name.replace('`', '``')}`", "mapping")
            node = Resolver(source, columns, (), 0, self.problems).resolve(parse_expression(source.text))
            assert isinstance(node, Column), name
            numbers.append((name, self.lifting.column(node)))
        return Semantics(pattern.knowledge, pattern.mapping, self.found.grows, tuple(numbers))

    @property
    def time_value(self) -> int | None:
        key: Shape = ("coalesce", ("name", self.found.time))
        found = self.lifting.values.get(key)
        return None if found is None else found[0]


_PAIRS: Mapping[type[Occurrence], Kind] = {
    algebra.Both: Kind.BOTH,
    algebra.Either: Kind.EITHER,
    algebra.Then: Kind.THEN,
}
