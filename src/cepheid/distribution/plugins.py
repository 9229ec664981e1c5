"""The plug-ins by their ids."""

from __future__ import annotations

from collections.abc import Mapping

from cepheid.distribution import control, inputs, originals, services, standbys
from cepheid.distribution.threads import Plugin

PLUGINS: Mapping[str, Plugin] = {
    "check": inputs.check,
    "e_prc1": control.choose_original,
    "plg_1": control.distribute,
    "plg_2": originals.send_copies,
    "plg_3": standbys.copy_or_release,
    "e_prc2 of originals": originals.measure,
    "e_prc2 of copies": standbys.measure,
    "add": services.add,
}
