"""What the points of a building say for days: every five minutes a value of each, with faults to be found.

Rooms are simulated: people and the air outside change the temperature, and a box opens its damper the more, the warmer
its rooms are. At night the dampers are closed. Now and then a damper stays closed while a radiator heats: these are the
faults. At other times something heats while the damper can open, or the damper stays closed and nothing heats. The same
seed gives the same values.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from examples.building_model import DAMPER, TEMPERATURE, Building

Numbers = npt.NDArray[np.float64]

BEGIN = int(datetime(2026, 3, 2, tzinfo=UTC).timestamp())
"""A Monday."""
STEP, STEPS_A_DAY = 300, 288
LOST = 0.001
"""The share of readings that are lost."""


class Disturbance(NamedTuple):
    """What happens to the zone of a box for some steps."""

    box: int
    begin: int
    end: int
    closed: bool
    """Whether the damper stays closed, whatever it should do."""
    heats: bool


@dataclass(frozen=True)
class Recording:
    """The readings of a building for some days."""

    building: Building
    days: int = 7
    seed: int = 1

    @property
    def steps(self) -> int:
        return self.days * STEPS_A_DAY

    @property
    def disturbances(self) -> list[Disturbance]:
        """For each day some boxes, each once, during office hours: faults are closed and heat."""
        random = np.random.default_rng(self.seed)
        count = len(self.building.box_names)
        found = []
        for day in range(self.days):
            for number, box in enumerate(random.permutation(count)[: max(3, count // 7)].tolist()):
                begin = day * STEPS_A_DAY + int(random.integers(9 * 12, 15 * 12))
                closed, heats = number % 3 != 1, number % 3 != 2
                found.append(Disturbance(box, begin, begin + int(random.integers(8, 22)), closed, heats))
        return found


def readings(recording: Recording) -> pa.Table:
    """The readings by time, without those that were lost: `point`, `at` and `value`."""
    random = np.random.default_rng(recording.seed + 1)
    points = recording.building.points
    values = _usual(recording, random)
    temperature, damper = _simulated(recording, random)
    values[:, _places(recording.building, TEMPERATURE)] = temperature
    values[:, _places(recording.building, DAMPER)] = damper
    offsets = _offsets(recording.building, random)
    order = np.argsort(offsets, kind="stable")
    kept = random.random(values.size) >= LOST
    at = (BEGIN + np.arange(recording.steps)[:, None] * STEP + offsets[order]).ravel()[kept] * 1_000_000
    names = pa.array([name for name, _ in points]).take(pa.array(order))
    each = np.broadcast_to(np.arange(len(points)), values.shape).ravel()[kept]
    return pa.table(
        {
            "point": names.take(pa.array(each)),
            "at": pa.array(at, pa.timestamp("us", "UTC")),
            "value": values[:, order].ravel()[kept],
        }
    )


def _places(building: Building, kind: str) -> list[int]:
    return [place for place, (_, one) in enumerate(building.points) if one.name == kind]


def _offsets(building: Building, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """The second of each step at which a point is read: commands after sensors."""
    offsets = random.integers(0, STEP // 2, len(building.points))
    offsets[_places(building, DAMPER)] += STEP // 2
    return offsets


def _usual(recording: Recording, random: np.random.Generator) -> Numbers:
    """Values that follow the time of day, for each step and point."""
    kinds = [kind for _, kind in recording.building.points]
    normal, swing, noise = (np.array([kind[field] for kind in kinds], np.float64) for field in (2, 3, 4))
    shape = (recording.steps, len(kinds))
    return np.round(normal + swing * _afternoon(recording)[:, None] + noise * random.standard_normal(shape), 1)


def _afternoon(recording: Recording) -> Numbers:
    """For each step, how much of the day's swing there is: 0 by night, 1 at three o'clock."""
    hour = np.arange(recording.steps) % STEPS_A_DAY / 12
    return np.clip(np.sin((hour - 7) * np.pi / 16), 0, None)


def _simulated(recording: Recording, random: np.random.Generator) -> tuple[Numbers, Numbers]:
    """The temperatures of rooms and the commands of dampers, for each step."""
    building = recording.building
    box_of = np.array([room.box for room in building.rooms])
    rooms_of = np.bincount(box_of)
    people = random.uniform(0.05, 0.11, len(box_of))
    closed, heated = (np.zeros((recording.steps, len(rooms_of)), bool) for _ in range(2))
    for one in recording.disturbances:
        closed[one.begin : one.end, one.box] = one.closed
        heated[one.begin : one.end, one.box] = one.heats
    outside = 7 + 6 * _afternoon(recording)
    works = _afternoon(recording) > 0
    inside = np.full(len(box_of), 21.0)
    temperatures, commands = np.empty((recording.steps, len(box_of))), np.empty((recording.steps, len(rooms_of)))
    for step in range(recording.steps):
        mean = np.bincount(box_of, inside) / rooms_of
        wide = np.clip(20 + 40 * (mean - 22), 20, 100) if works[step] else np.zeros(len(rooms_of))
        command = np.where(closed[step], 0, np.round(wide))
        temperatures[step], commands[step] = inside, command
        leaks = 0.003 * (outside[step] - inside)
        heats = np.where(heated[step][box_of], 0.2, np.where(inside < 20.5, 0.05, 0))
        cools = 0.0002 * command[box_of] * (15 - inside)
        inside = inside + leaks + heats + cools + (people if works[step] else 0)
    return np.round(temperatures + random.normal(0, 0.015, temperatures.shape), 1), commands
