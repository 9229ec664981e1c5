"""The protocol of kinds of patterns, for code that works with all kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from cepheid.errors import Problem
from cepheid.lang.pictures.box import Box
from cepheid.lang.pictures.html import html_of, text_html
from cepheid.lang.pictures.shown import Shown

if TYPE_CHECKING:
    import pyarrow as pa

    from cepheid.compile.step_in_words import StepInWords
    from cepheid.events.batch import Schema
    from cepheid.events.openings import FinalEvents
    from cepheid.lang.consistency import Consistency
    from cepheid.lang.document.marked_text import Value
    from cepheid.matchers.counts import ReadCounts
    from cepheid.matchers.parts import Part
    from cepheid.matchers.protocols import (
        FiniteMatcher,
        NearMatcher,
        ObservedMatcher,
        PatternRunner,
        RowsReader,
        ServiceMatcher,
        ShardMatcher,
        ShardRunner,
        TracedMatcher,
    )
    from cepheid.matchers.shared.events import Share
    from cepheid.matchers.shipped_events import ShippedEvents
    from cepheid.output.funnel import Funnel
    from cepheid.plan.division import TimeSlices
    from cepheid.plan.engine import SqlEngine
    from cepheid.plan.lifted import OutputName
    from cepheid.plan.needed import NeededBit
    from cepheid.plan.pattern_request import PatternRequest, PlanOptions
    from cepheid.plan.plan_set import PlanSet, Words
    from cepheid.plan.tiers import Side, Tier

LateBy: TypeAlias = Literal["start", "end"]
"""The time of an event that decides whether it is late; "start" for an event with a single time."""


@dataclass(frozen=True, repr=False)
class Explanation(Shown):
    """What a pattern looks for and how it will run; `str` gives the text, and a notebook shows the picture above it."""

    text: str
    """The output of `cepheid explain`."""
    diagram: str | None
    """Mermaid; None if it cannot be drawn without the events' columns."""
    picture: Box

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return html_of(self.picture) + text_html(self.text)


class CompiledSet(Protocol):
    """The plans of all patterns of a call, ready to run."""

    @property
    def relevant_to(self) -> Sequence[Words | None]:
        """For each pattern, bits of the shared mask: an event with none of them does not matter. None: all matter."""


@dataclass(frozen=True)
class ServiceOptions:
    """The options of a matcher in the user's own service."""

    columns: pa.Schema
    """The columns of incoming events."""
    lateness: timedelta | None
    """How far an event may be before the latest one; None: as far as the caller has not advanced time."""
    late_by: LateBy = "start"
    consistency: Consistency | None = None
    """None: the pattern's consistency. For a pattern without one: only certain matches, and no column for changes."""
    open_for: timedelta | None = None
    """How long an event may be open, where rows open and close events; None: any time."""
    changes: str | None = None
    """The column that says what rows do, where they revise and withdraw events."""
    drops: bool = False
    """Whether rows and events that cannot be used are dropped there and counted; otherwise they are an error."""
    rows: RowsReader | None = None
    """Where rows open and close events: what reads them."""
    share: Share | None = None
    """With several patterns of intervals: the pattern's share in the events that all hold."""
    frequencies: Mapping[str, float] | None = None
    """Event type → the number of its events, in any unit."""
    time_resolution: str | None = None
    """How event times are cut. A snapshot fits only where they are cut in the same way."""
    buffer: int | None = None
    """For intervals: how many of the latest events are not late, in place of a lateness."""


class Family(Protocol):
    """A kind of pattern. What is given here is what most kinds have and do."""

    kind: str
    """The name of the kind in documents, ledgers and messages."""
    pattern: type
    noun: str
    """What messages call a pattern of the kind, with its article."""
    has_ends: bool = False
    """Whether events have a start and an end; otherwise they have one time."""
    in_order: bool = True
    """Whether the finite matcher needs events sorted by key and time; otherwise it takes them in any order."""
    sorted_by: tuple[str, ...] = ()
    """The columns by which the rows of finite input are sorted; none: they are in the order of keys and emission."""
    outputs: tuple[OutputName, ...]
    """The outputs that can be requested."""
    always_in_one_table: bool = False
    """Whether the rows of a stream always start with `kind` and `pattern`."""
    shares_events: bool = False
    """Whether the patterns of a stream share the events that they hold. They are then in the same shards."""
    last_columns: tuple[str, ...]
    """Columns that come after all others if several patterns have their own columns."""
    lacks: Mapping[str, str] = MappingProxyType({})
    """Arguments of `detect` that the kind does not support, each with the reason. The docs show them in a table."""
    named_in_one_table: bool = False
    """Whether matches of several patterns have by default the columns of a call with `outputs`."""
    drains: bool = False
    """Whether a live matcher can go on with what is open and start nothing more."""
    lists_open: bool = False
    """Whether open partial matches can be listed."""
    explains_misses: bool = False
    """Whether `why` says what became of each event that may start a match."""
    counts: type[ReadCounts]
    """The type of the counts for finite input."""

    # Patterns and plans

    def check(self, pattern: Any, measures: Mapping[str, str] | None) -> list[Problem]:
        """The pattern's problems that do not depend on the events."""

    def advice(self, given: object) -> str | None:  # noqa: ARG002
        """How to make a pattern of this kind from `given`, which is not one yet; None if that is not possible."""
        return None

    def types(self, pattern: Any) -> Iterable[str]:
        """The types of events that the pattern names, without its restricted types and those that are warned of."""

    def endless(self, pattern: Any) -> Any:
        """The pattern for unbounded input, with the defaults that such input needs."""
        return pattern

    def build(
        self,
        patterns: Sequence[PatternRequest[Any]],
        schema: Schema,
        engine: SqlEngine,
        options: PlanOptions,
    ) -> PlanSet[Any]:
        """The plans of patterns over the same events.

        Raises:
            SchemaError, PatternError, LimitExceeded: the message has all problems.
        """

    def warnings(self, plan: Any) -> Iterable[str]:  # noqa: ARG002
        """Warnings about what works, but perhaps not as intended."""
        return ()

    def needed_bits(self, plan: Any) -> Iterable[NeededBit]:
        """The bits of single events without which there is no match, or no event for a stage."""

    def ends_with_absence(self, pattern: Any) -> bool:  # noqa: ARG002
        """Whether an event that comes after the last one of a match may forbid the match."""
        return True

    def needs_two_events(self, pattern: Any) -> bool:  # noqa: ARG002
        """Whether it is certain that each match has two events or more."""
        return False

    def certain_from(self, plan: Any, matches: pa.Table) -> pa.ChunkedArray:  # noqa: ARG002
        """The times (TIMESTAMP in UTC) from which matches of finite input are certain; NULL: once it has ended."""
        return matches.column("detected_at")

    def steps_in_words(self, pattern: Any) -> Iterable[StepInWords]:  # noqa: ARG002
        """What the pattern does at each kind of event; nothing where that is not said."""
        return ()

    def correlations(self, plan: Any) -> Mapping[str, str]:  # noqa: ARG002
        """Columns of open partial matches, as SQL, for the attributes of earlier events that conditions equate with one
        of the current event; without those that the plan promotes already.
        """
        return {}

    def growth(self, plan: Any, late_by: LateBy) -> Iterable[str]:
        """What is retained forever on unbounded input, one sentence per cause."""

    def never_certain(self, plan: Any, late_by: LateBy) -> list[Problem]:  # noqa: ARG002
        """Why no match would ever be certain on unbounded input; empty if matches may be."""
        return []

    def never_certain_as_of(self, plan: Any) -> list[Problem]:  # noqa: ARG002
        """Why no match would be certain at any time at which finite input ends; empty if matches may be."""
        return []

    def document(self, pattern: Any) -> dict[str, Value]:
        """The pattern in JSON values, with names in place of functions."""

    def names_of_functions(self, pattern: Any) -> list[str]:  # noqa: ARG002
        """The names of the pattern's conditions in Python."""
        return []

    def explain(self, pattern: Any, plan: Any | None) -> Explanation:
        """What the pattern means and, with the plan, how it runs."""

    def remarks(self, pattern: Any, plan: Any | None) -> list[str]:
        """The warnings shown by `cepheid explain` and `cepheid check`."""

    # Finite input

    def compile(self, plans: Any) -> CompiledSet:
        """The plans, ready to run."""

    def row_schemas(self, plans: Any) -> list[pa.Schema]:
        """The columns of each pattern's rows."""

    def finite(self, compiled: Any, until: int | None) -> FiniteMatcher:
        """The matcher for finite input. Time ends at `until` (microseconds); None: the input is complete."""

    def uncompiled(self, compiled: Any) -> Sequence[str]:  # noqa: ARG002
        """The names of the kernels that are not in the disk cache yet, where `plain` can find the matches meanwhile."""
        return ()

    def compile_kernel(self, name: str) -> None:  # noqa: ARG002
        """Puts the kernel of this name into the disk cache; only for kinds with `uncompiled` kernels."""
        raise AssertionError(f"{self.noun} has no such kernel")

    def plain(self, compiled: Any, until: int | None) -> FiniteMatcher:  # noqa: ARG002
        """As `finite`, by a step that need not be compiled; only for kinds with `uncompiled` kernels."""
        raise AssertionError(f"{self.noun} has no plain step")

    def observed(self, compiled: Any, until: int | None, events: int | None = None) -> ObservedMatcher:  # noqa: ARG002
        """The matcher for `why`; only for kinds that explain misses. `events` is the number of events to come, if it is
        known.
        """
        raise AssertionError(f"{self.noun} is not observed")

    def empty_funnel(self, pattern: Any, read: Mapping[str, int]) -> Funnel:  # noqa: ARG002
        """The funnel of events that start nothing; `read` has the counts of the events read."""
        raise AssertionError(f"{self.noun} has no funnel")

    def traced(self, compiled: Any, until: int | None) -> TracedMatcher:  # noqa: ARG002
        """The matcher for the steps of one key; only for kinds that explain misses."""
        raise AssertionError(f"{self.noun} is not traced")

    def changes(self, pattern: Any) -> Sequence[Any]:  # noqa: ARG002
        """The changes with which near misses are found; `text` says each in words."""
        raise AssertionError(f"{self.noun} is not changed")

    def untried_changes(self, pattern: Any) -> Mapping[str, str]:  # noqa: ARG002
        """Further changes, which are not tried, in words, each with the reason."""
        raise AssertionError(f"{self.noun} is not changed")

    def near_patterns(self, pattern: Any, changes: Sequence[Any], *, complete: bool) -> list[Any]:  # noqa: ARG002
        """The patterns that `near` runs for these changes. `complete`: the input is."""
        raise AssertionError(f"{self.noun} has no near misses")

    def near(self, compiled: Any, changes: Sequence[Any], until: int | None) -> NearMatcher:  # noqa: ARG002
        """The matcher that finds near misses, for the compiled patterns of `near_patterns`."""
        raise AssertionError(f"{self.noun} has no near misses")

    def parts(self, compiled: Any) -> Sequence[Part]:
        """What `finite` does, in parts for several processes."""

    def sliced(self, compiled: Any, width: int, until: int | None) -> FiniteMatcher:  # noqa: ARG002
        """As `finite`, for events that are divided into time slices of this width (microseconds), which are the last
        sub-key.
        """
        raise AssertionError(f"{self.noun} has no time slices")

    def time_slices(self, plans: Any, *, settled: bool = False) -> TimeSlices | str:
        """How the events of one key are divided by time; or why they are not. If `settled`, only slices that settle
        will do, which read events of known times.
        """

    def tiers(self, plans: Any) -> Sequence[Tier]:  # noqa: ARG002
        """The tiers in which a pattern without key can be found; none if all events must be in one sequence."""
        return ()

    def sub_keys(self, plans: Any) -> Sequence[Side]:  # noqa: ARG002
        """Values that extend the key, as all events of a match have the same ones; none if the whole key is needed."""
        return ()

    def start_window(self, plan: Any) -> int | str:
        """Microseconds after which a partial match has ended, if those of a key can be divided by their first events;
        otherwise the reasons why they cannot.
        """

    def tier_schema(self, plans: Any, number: int, shipped: ShippedEvents) -> pa.Schema:  # noqa: ARG002
        """The columns of the rows of the tier with this number, which is one of several."""
        raise AssertionError(f"{self.noun} has no tiers")

    def tier_matcher(self, plans: Any, number: int, shipped: ShippedEvents, until: int | None) -> FiniteMatcher:  # noqa: ARG002
        """The matcher of the tier with this number."""
        raise AssertionError(f"{self.noun} has no tiers")

    def ties_matter(self, plans: Any) -> bool:
        """Whether matches may depend on the order of events with equal times."""

    # Unbounded input

    def runner(self, plan: Any, late_by: LateBy) -> PatternRunner:
        """The pattern in the form that is sent to the workers of a stream."""

    def sharing(
        self,
        plans: Any,  # noqa: ARG002
        runners: Sequence[Any],  # noqa: ARG002
        columns: pa.Schema,  # noqa: ARG002
        *,
        only_relevant: bool,  # noqa: ARG002
    ) -> ShardRunner[ShardMatcher]:
        """The runner of shards that have all of the patterns; asked only if these share events. `columns` are those
        of the events of all patterns. With `only_relevant`, a pattern gets only the events that can matter to it.
        """
        raise AssertionError(f"several patterns of {self.noun} do not share events")

    def marking_starts(self, runner: Any) -> tuple[PatternRunner, int]:  # noqa: ARG002
        """The runner for events that a host has marked, if they may start partial matches, and the bit of the mask for
        that. It is asked only if there is a `start_window`.
        """
        raise AssertionError(f"{self.noun} cannot be divided by start")

    def opened_by_rows(self, runner: Any, *, drops: bool, open_for: timedelta | None) -> PatternRunner:  # noqa: ARG002
        """The runner for rows that open and close events. With `drops`, rows and events that cannot be used are
        dropped; an event is open for at most `open_for`. Only for kinds whose events have ends.

        Raises:
            PatternError: a condition or a measure needs what no row has.
        """
        raise AssertionError(f"{self.noun} has no events that rows open")

    def final_events(
        self,
        rows: pa.Table,  # noqa: ARG002
        times: Sequence[pa.ChunkedArray],  # noqa: ARG002
        schema: Schema,  # noqa: ARG002
        changes: str,  # noqa: ARG002
        *,
        drops: bool,  # noqa: ARG002
    ) -> FinalEvents:
        """The events that are left after rows that insert, revise and withdraw them; see `final_events` of intervals.
        Only for kinds whose events have ends.

        Raises:
            EventError: a row cannot be used, or an event is not closed.
        """
        raise AssertionError(f"{self.noun} has no events that rows revise")

    def live_outputs(self, plan: Any) -> tuple[str, ...]:
        """The kinds of rows of a stream: outputs, and RETRACTIONS."""
        outputs: tuple[str, ...] | None = plan.outputs
        return outputs or ()

    def compatibility(self, runner: Any, zone: str) -> dict[str, Any]:
        """The values on which it depends whether a checkpoint fits, in JSON. Local times are read in `zone`."""

    def rows_reader(self, schema: Schema, options: ServiceOptions, is_held: Callable[[bytes], bool]) -> RowsReader:  # noqa: ARG002
        """What reads rows that open and close events. `is_held` says whether a matcher needs the event with this id.
        Only for kinds whose events have ends.
        """
        raise AssertionError(f"{self.noun} has no events that rows open")

    def service(self, plan: Any, options: ServiceOptions, zone: str) -> ServiceMatcher:
        """The matcher for the user's own service."""


RETRACTIONS = "retractions"
"""A kind of row of patterns in real time."""
