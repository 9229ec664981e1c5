"""The set-up (S20 to S23): threads of all stages, with their plug-ins and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cepheid.distribution.control import Control, Watch
from cepheid.distribution.inputs import Input, hashed
from cepheid.distribution.lists import Lists
from cepheid.distribution.messages import Stage
from cepheid.distribution.originals import Original
from cepheid.distribution.parameters import Parameter
from cepheid.distribution.services import Service
from cepheid.distribution.standbys import Standby
from cepheid.distribution.threads import Thread


def standby_ids(count: int) -> tuple[str, ...]:
    """S20: the ids of so many standbys, s001 and so on."""
    return tuple(f"s{number:03}" for number in range(1, count + 1))


def by_hash(inputs: Sequence[str], controls: Sequence[str]) -> dict[str, str]:
    """The control thread of each input, by the hash of the input's id."""
    return {id_: controls[hashed(id_) % len(controls)] for id_ in inputs}


def set_up(
    *,
    inputs: Mapping[str, str],
    lists: Mapping[str, Lists],
    para0: Parameter,
    parameters: Mapping[str, Parameter],
    standbys: Sequence[str],
    services: Mapping[str, str],
    watch: Watch | None = None,
    reuse: bool = True,
) -> dict[str, Thread]:
    """All threads by their ids.

    `inputs` names the control thread of each input, `lists` the destination lists of each control thread, `parameters`
    those of each original, and `services` the thread of each service object.
    """
    originals = tuple(parameters)
    threads = [
        *(Thread(one, Stage.INPUT, {"speed": "check"}, Input(control)) for one, control in inputs.items()),
        *(
            _control(one, Control(para0, originals, len(lists), own, number, watch, reuse))  # S21, S22
            for number, (one, own) in enumerate(lists.items())
        ),
        *(_original(one, Original(parameter, services)) for one, parameter in parameters.items()),  # S23
        *(_standby(one, Standby(services)) for one in standbys),  # S23
        *(Thread(one, Stage.SERVICE, {"count": "add"}, Service()) for one in sorted({*services.values()})),
    ]
    return {thread.id: thread for thread in threads}


def _control(name: str, memory: Control) -> Thread:
    # The original is chosen before the event is sent there.
    return Thread(name, Stage.CONTROL, {"eventTime": "e_prc1", "speed": "plg_1"}, memory)


def _original(name: str, memory: Original) -> Thread:
    return Thread(name, Stage.ORIGINAL, {"control": "plg_2", "speed": "e_prc2 of originals"}, memory)


def _standby(name: str, memory: Standby) -> Thread:
    return Thread(name, Stage.STANDBY, {"control": "plg_3", "speed": "e_prc2 of copies"}, memory)
