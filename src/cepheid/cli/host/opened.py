"""Opens the host of a command line: the one that runs, or else its store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from cepheid.cli.failure import FileProblem
from cepheid.cli.host.options import url_of

if TYPE_CHECKING:
    from cepheid.hosts.durable.remote.messages import AnyHost


@contextmanager
def opened(store: str, *, makes: bool = False) -> Iterator[AnyHost]:
    """The host that another process runs on the store; if none runs, the store itself for the block. Only a command
    that `makes` stores makes one.

    Raises:
        FileProblem: there is no store.
        StoreError: it cannot be opened.
    """
    from cepheid.host import open_host
    from cepheid.hosts.durable.open_store import path_of
    from cepheid.hosts.durable.remote.client import connect

    url = url_of(store)
    host: AnyHost | None = connect(url)
    if host is None:
        path = path_of(url)
        if not makes and path is not None and not path.exists():
            raise FileProblem(f"there is no store {path}: make it with `cepheid host input`")
        host = open_host(url, allow=None)
    with closing(host):
        yield host
