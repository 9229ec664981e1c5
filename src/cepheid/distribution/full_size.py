"""The document's sizes, run message by message: 10,000 inputs, 100 control threads, 1,000 originals.

The messages are those of the simulation of rates with the same seed. Each original has a minute of its own in a cycle
of as many minutes; the event time is in that minute. All messages of a second arrive within it, in random order.
"""

from __future__ import annotations

from dataclasses import dataclass

from cepheid.distribution import messages
from cepheid.distribution.aggregates import Partial
from cepheid.distribution.control import Control, Watch
from cepheid.distribution.lists import Listed, circulated
from cepheid.distribution.network import Network
from cepheid.distribution.parameters import Parameter, Timeframe
from cepheid.distribution.rates.simulation import SETTING, Setting, targets
from cepheid.distribution.setup import set_up, standby_ids
from cepheid.distribution.standbys import Standby

_SERVICES = 10


@dataclass(frozen=True)
class FullRun:
    """What a run came to."""

    events: int
    means: dict[str, Partial]
    """What the services added, by service object."""
    expected: dict[str, Partial]
    """The same, computed from the events without any distribution."""
    requests: int
    """How many copies were requested, each with one message to the original and one to the standby."""
    releases: int
    peaks: tuple[int, ...]
    """For each second, the most events that an original or standby was sent."""
    copies_left: int
    """References that standbys still hold for no control thread; there should be none."""
    waiting: int
    """Events that still wait for parameters; there should be none."""


def full_size(seed: int, *, standbys: int = 200, setting: Setting = SETTING) -> FullRun:
    """Runs the network for `setting.seconds`; each input sends an event a second."""
    network = _network(seed, standbys, setting)
    expected: dict[str, Partial] = {}
    peaks = []
    for second, target in enumerate(targets(seed, setting)):
        for number, original in enumerate(target.tolist()):
            speed = float((number * 7 + second * 13) % 120)
            network.send([_event(number, original, speed)])
            of = f"id{original:04}"
            expected[of] = expected.get(of, Partial(0.0, 0)).plus(speed, 1)
        network.run()
        peaks.append(max(count for to, count in network.arrived.items() if to[0] in "ds"))
        if second % 60 == 59:
            network.send_on()
        network.tick()
        network.run()
    network.send_on()
    network.run()
    return _ended(network, expected, tuple(peaks))


def _network(seed: int, standbys: int, setting: Setting) -> Network:
    originals = [f"d{number:04}" for number in range(setting.originals)]
    controls = [f"p{number:03}" for number in range(setting.controls)]
    cycle = setting.originals
    rows = {standby: Listed(standby, setting.controls) for standby in standby_ids(standbys)}
    lists = {one: tuple(rows[standby] for standby in own) for one, own in circulated([*rows], originals).items()}
    threads = set_up(
        inputs={f"in{number:05}": controls[number % setting.controls] for number in range(setting.inputs)},
        lists=dict.fromkeys(controls, lists),
        para0=Parameter("para0", tuple(Timeframe(n, n, one) for n, one in enumerate(originals)), cycle),
        parameters={
            one: Parameter(f"para{n}", (Timeframe(n, n, f"id{n:04}"),), cycle) for n, one in enumerate(originals)
        },
        standbys=[*rows],
        services={f"id{number:04}": f"r{number % _SERVICES}" for number in range(setting.originals)},
        watch=Watch(setting.capacity, setting.thresholds),
    )
    return Network(threads, seed=seed)


def _event(number: int, original: int, speed: float) -> messages.Message:
    name = f"in{number:05}"
    return messages.event(name, car=name, time=60.0 * original, speed=speed)


def _ended(network: Network, expected: dict[str, Partial], peaks: tuple[int, ...]) -> FullRun:
    memories = [thread.memory for thread in network.threads.values()]
    in_use = [control.in_use for control in memories if isinstance(control, Control)]
    standbys = [standby for standby in memories if isinstance(standby, Standby)]
    values = [control for _, _, control in network.control_messages]
    return FullRun(
        events=sum(partial.number for partial in expected.values()),
        means=network.totals(),
        expected=expected,
        requests=values.count("set"),
        releases=values.count("flush"),
        peaks=peaks,
        copies_left=sum(sum(standby.counts.values()) for standby in standbys)
        - sum(len(ids) for used in in_use for ids in used.values()),
        waiting=sum(len(events) for standby in standbys for events in standby.waiting.values()),
    )
