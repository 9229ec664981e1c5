"""The pictures of the simulation of rates."""

from __future__ import annotations

from cepheid.distribution.lists import Order
from cepheid.distribution.rates.comparison import SCHEMES, SEEDS
from cepheid.distribution.rates.pictures import PICTURES
from cepheid.distribution.rates.schemes import EachAlone
from cepheid.distribution.rates.simulation import Setting, counted, run

SMALL = Setting(inputs=300, controls=5, originals=20, capacity=20, hot=2, seconds=20, hot_for=10, judged_after=5)


def test_equal_runs_give_equal_pictures() -> None:
    """Each picture is a PNG, and the same runs give the same bytes."""
    outcome = run(EachAlone(10, Order.RANDOM, SMALL), counted(1, SMALL), SMALL)
    outcomes = dict.fromkeys(SCHEMES, dict.fromkeys(SEEDS, outcome))
    for draw in PICTURES.values():
        picture = draw(outcomes)
        assert picture.startswith(b"\x89PNG")
        assert picture == draw(outcomes)
