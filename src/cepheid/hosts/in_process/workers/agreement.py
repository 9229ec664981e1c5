"""Whether slices that assumed what is open at their begin agree with the slice before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cepheid.hosts.in_process.workers.division import Task
from cepheid.hosts.in_process.workers.messages import Done, Failed


def checked(tasks: Sequence[Task], results: Mapping[int, Done | Failed]) -> tuple[list[Task], list[int]]:
    """The tasks, with those certain that assumed what the slice before them certainly leaves open, and with the first
    of each key that did not. The latter's numbers follow: it must be repeated, knowing what is open.

    A task after one that certainly failed does not matter any more, and may have no result.
    """
    tasks, again = [*tasks], list[int]()
    for number, task in enumerate(tasks):
        result = results.get(number)
        if task.is_certain:
            if isinstance(result, Failed):
                break
            continue
        if not tasks[number - 1].is_certain or number - 1 in again:
            continue
        before = results[number - 1]
        assert isinstance(before, Done)
        assert before.open is not None
        tasks[number] = task.knowing(before.open.after)
        if not (isinstance(result, Done) and result.open and np.array_equal(result.open.before, before.open.after)):
            again.append(number)
    return tasks, again
