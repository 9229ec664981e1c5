"""`cepheid host backup` and `restore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cepheid.cli import options as o
from cepheid.cli.failure import failures_reported
from cepheid.cli.host.opened import opened
from cepheid.cli.host.options import StoreUrl, url_of
from cepheid.cli.host.shown import say


def backup(
    store: StoreUrl,
    file: Annotated[Path, typer.Argument(metavar="BACKUP", help="The new file.", show_default=False)],
    *,
    as_json: o.AsJson = False,
) -> None:
    """Copy all that a host has stored to a new file, also while it runs: feeds wait until that is done."""
    with failures_reported(as_json=as_json), opened(store) as host:
        host.backup(file)
        say({"backup": str(file)}, f"copied to {file}", as_json=as_json)


def restore(
    file: Annotated[Path, typer.Argument(metavar="BACKUP", help="What backup has written.", show_default=False)],
    store: StoreUrl,
    *,
    as_json: o.AsJson = False,
) -> None:
    """Make a store from a backup of one of the same kind. A store that is there already is left as it is."""
    from cepheid.host import restore_host

    with failures_reported(as_json=as_json):
        restore_host(file, url_of(store))
        say({"restored": store}, f"restored {store}", as_json=as_json)
