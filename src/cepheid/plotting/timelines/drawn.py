"""The marks of a timeline: one by one, or in steps of time where there are too many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cepheid.plotting.bins import MOST_MARKS, too_many
from cepheid.plotting.request import PlotRequest
from cepheid.plotting.timelines.in_steps import events_in_steps, open_matches, taken_in_steps
from cepheid.plotting.timelines.kinds import Kind
from cepheid.plotting.timelines.one_by_one import events_one_by_one, taken_one_by_one, threads, windows_one_by_one
from cepheid.plotting.timelines.scene import Scene


@dataclass(frozen=True)
class Drawn:
    """Everything that a timeline draws."""

    events: Kind
    taken: Kind
    windows: Kind
    threads: Kind

    @property
    def note(self) -> str | None:
        """What is aggregated, in words."""
        parts = [_EVENTS[self.has_spread](kind.steps.words) for kind in [self.events] if kind.steps]
        parts += [f"dots stand for the events of a stage in {kind.steps.words}" for kind in [self.taken] if kind.steps]
        parts += ["shading is darker where more matches are open"] if self.windows.steps else []
        return f"More than {MOST_MARKS:,} marks: {'; '.join(parts)}" if parts else None

    @property
    def has_spread(self) -> bool:
        return bool(self.events.rows) and "low" in self.events.rows[0]


_EVENTS = {
    True: "lines are means of {}, bands reach from the least to the greatest value".format,
    False: "grey is darker where more events are, in steps of {}".format,
}


def drawn(asked: PlotRequest, scene: Scene) -> Drawn:
    """The marks, of which there are about as many as `MOST_MARKS`."""
    events = scene.events.at((scene.events.row >= 0) & np.isfinite(scene.events.x))
    shown = np.flatnonzero((scene.taken.row >= 0) & np.isfinite(scene.taken.x))
    taken, stage = scene.taken.at(shown), [scene.stage[place] for place in shown.tolist()]
    many = too_many({"events": len(events.x), "taken": len(taken.x), "windows": len(scene.windows.begin)})
    return Drawn(
        events_in_steps(scene, events) if "events" in many else events_one_by_one(asked, scene, events),
        taken_in_steps(scene, taken, stage) if "taken" in many else taken_one_by_one(asked, scene, taken, stage),
        open_matches(scene) if "windows" in many else windows_one_by_one(asked, scene),
        Kind([]) if many or scene.are_panels else threads(scene, taken),
    )
