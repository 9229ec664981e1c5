"""A delivery to one subscriber, whatever fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from cepheid.hosts.durable.routing.line import Line
from cepheid.hosts.durable.routing.outlet import Read
from cepheid.hosts.durable.routing.sender import Undelivered
from cepheid.hosts.durable.routing.subscription import Letter, Subscription


@dataclass
class Faulty:
    """A target that fails on each letter as often as it is to, and refuses those with a negative number."""

    failures: dict[int, int]
    at_once: int
    gives_up: bool
    got: list[int] = field(default_factory=list)

    def send(self, letters: Sequence[Letter]) -> None:
        assert len(letters) <= self.at_once
        for done, letter in enumerate(letters):
            left = self.failures[letter.number]
            if left:
                self.failures[letter.number] = left - 1 if left > 0 else left
                raise Undelivered(f"letter {letter.number}", done=done, is_refused=left < 0)
            self.got.append(letter.number)

    def close(self) -> None:
        pass


class Numbers:
    """Letters with the even numbers."""

    def read(self, after: int, through: int, most: int) -> Read:
        rows = [*range(after + 1, through + 1)][:most]
        letters = [Letter(number, "p", "1", "match", f"id{number}", "{}") for number in rows if number % 2 == 0]
        return Read(letters, [], rows[-1] if rows else through)


@given(
    failures=st.lists(st.integers(-1, 4), max_size=20),
    at_once=st.integers(1, 4),
    attempts=st.integers(1, 4),
    gives_up=st.booleans(),
    looks=st.lists(st.integers(0, 30), max_size=10),
)
def test_in_order(failures: list[int], at_once: int, attempts: int, gives_up: bool, looks: list[int]) -> None:  # noqa: FBT001
    """Letters arrive in order, each once or as a dead letter, which is one that is refused or was tried often enough;
    and whenever one looks, everything up to the progress has arrived or is dead.
    """
    last = 2 * len(failures) + 1
    numbers = {2 * (i + 1): failures[i] for i in range(len(failures))}
    subscription = Subscription("s", ("*",), None, "x", None, 1, attempts, 0, pa.schema([]))
    target = Faulty(dict(numbers), at_once, gives_up)
    line = Line(subscription, Numbers(), target)
    line.reach(last)
    dead: list[int] = []
    steps = 0
    while not line.is_done:
        line.step()
        steps += 1
        if steps in looks:
            progress = line.progress
            dead += [one.letter.number for one in progress.dead]
            line.stored(progress)
            assert {number for number in numbers if number <= progress.through} == {*target.got, *dead}
    dead += [one.letter.number for one in line.progress.dead]
    assert line.progress.through == last
    given_up = {n for n, left in numbers.items() if left < 0 or (gives_up and left >= attempts)}
    assert sorted(dead) == sorted(given_up)
    assert target.got == sorted(numbers.keys() - given_up)


def test_failed_again() -> None:
    """A dead letter that has failed again, or has arrived, is not sent once more before that is stored."""
    subscription = Subscription("s", ("*",), None, "x", None, 1, 1, 0, pa.schema([]), delivered=4)
    target = Faulty({2: 1, 4: 0}, 1, gives_up=True)
    line = Line(subscription, Numbers(), target)
    again = [Letter(number, "p", "1", "match", f"id{number}", "{}", out_of_order=True) for number in (2, 4)]
    line.send_again(again)
    line.step()
    line.step()
    line.send_again(again)
    assert line.is_done
    progress = line.progress
    assert ([one.letter.number for one in progress.dead], [one.number for one in progress.sent_again]) == ([2], [4])
    line.stored(progress)
    line.send_again(again[:1])
    line.step()
    assert target.got == [4, 2]
