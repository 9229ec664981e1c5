"""How a task is done, in whichever process or thread."""

from __future__ import annotations

from dataclasses import asdict

from cepheid.errors import ConditionError, EventError, LimitExceeded, SkipError, in_pattern
from cepheid.hosts.in_process.workers.division import Task
from cepheid.hosts.in_process.workers.gathered import find_gathered
from cepheid.hosts.in_process.workers.messages import Counted
from cepheid.hosts.in_process.workers.one_slice import AddRows, find_in_slice
from cepheid.hosts.in_process.workers.spooled_events import SpooledEvents
from cepheid.matchers.finite import OrderedMatcher
from cepheid.matchers.parts import GatheredPart, Part

EXPECTED = (ConditionError, EventError, LimitExceeded, SkipError)
"""How tasks may fail."""


def do_task(part: Part, task: Task, events: SpooledEvents, add: AddRows) -> Counted:
    """Adds the rows of a task as they are found: a table for each pattern of the part, several times.

    Raises:
        ConditionError, LimitExceeded, SkipError: as a detector, with the pattern's name in the message.
    """
    with in_pattern(part.pattern or "", named=part.pattern is not None):
        if isinstance(part, GatheredPart):
            gathered = find_gathered(part, task, events)
            add([gathered.rows])
            return Counted(asdict(gathered.found))
        if task.slice is not None:
            return find_in_slice(part, task, events, add)
        detector = part.detector()
        matcher, ties = OrderedMatcher(detector, until=task.until), 0
        for ordered in events.read(task.first, task.end):
            add(matcher.run([ordered]))
            ties += ordered.ties
        add(matcher.end())
        return Counted(asdict(detector.found) | {"ties": ties})
