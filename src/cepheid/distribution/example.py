"""The document's example: mean speeds of cars for each ten minutes, with two control threads and two originals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cepheid.distribution.control import Watch
from cepheid.distribution.lists import ANY, listed
from cepheid.distribution.parameters import Parameter, Timeframe
from cepheid.distribution.setup import by_hash, set_up, standby_ids
from cepheid.distribution.threads import Thread

PARA0 = Parameter("para0", (Timeframe(0, 29, "d31"), Timeframe(30, 59, "d32")))
"""T1 and T2, and the original of each."""
PARA1 = Parameter("para1", (Timeframe(0, 9, "id11"), Timeframe(10, 19, "id12"), Timeframe(20, 29, "id13")))
PARA2 = Parameter("para2", (Timeframe(30, 39, "id21"), Timeframe(40, 49, "id22"), Timeframe(50, 59, "id23")))
SERVICES = {"id11": "r41", "id12": "r42", "id13": "r43", "id21": "r44", "id22": "r41", "id23": "r42"}
"""The thread of each service object."""
INPUTS = ("in11", "in12", "in13", "in14")

FIG_14 = {"p21": {ANY: ("s001", "s002")}, "p22": {ANY: ("s003", "s004")}}
"""Each control thread has its own standbys."""
FIG_17 = {"p21": {ANY: ("s001", "s002", "s003", "s004")}, "p22": {ANY: ()}}
FIG_22 = {"p21": {ANY: ("s001", "s002")}, "p22": {ANY: ("s001", "s002")}}
"""One list for each control thread; all have the same standbys."""
FIG_23 = {control: {"d31": ("s001",), "d32": ("s002",)} for control in ("p21", "p22")}
"""One list for each control thread and original."""
FIG_24 = {control: {"d31": ("s001", "s002"), "d32": ("s002", "s001")} for control in ("p21", "p22")}
"""The same, each original with its own order."""
FIG_26 = {"p21": {ANY: ("s001", "s002")}, "p22": {ANY: ("s002", "s003")}}
"""Lists that share a standby."""


def example(
    lists: Mapping[str, Mapping[str, Sequence[str]]],
    *,
    standbys: int = 4,
    inputs: Sequence[str] = INPUTS,
    watch: Watch | None = None,
    reuse: bool = True,
) -> dict[str, Thread]:
    """The threads of the example, with these destination lists."""
    return set_up(
        inputs=by_hash(inputs, tuple(lists)),
        lists=listed(lists),
        para0=PARA0,
        parameters={"d31": PARA1, "d32": PARA2},
        standbys=standby_ids(standbys),
        services=SERVICES,
        watch=watch,
        reuse=reuse,
    )
