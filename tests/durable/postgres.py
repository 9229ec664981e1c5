"""A real PostgreSQL server for tests, in a folder of its own, on a Unix socket."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def find_programs() -> Path | None:
    """The folder with initdb and postgres; None if there is no server."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    found = shutil.which("initdb")
    return debian[0].parent if debian else (Path(found).parent if found else None)


LOG_FILE = 1 << 20
"""The bytes in each file of the server's log."""


class Server:
    """A running server; `url(name)` makes a new, empty database. It does not wait for the disk: what it has written
    outlives its own death all the same, and no test ends the machine.
    """

    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs, self.folder, self.data = programs, folder, folder / "data"
        # The server refuses to run as root.
        self.user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        if os.geteuid() == 0:
            shutil.chown(folder, self.user)
        how = ("--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", f"--wal-segsize={LOG_FILE >> 20}")
        self._run("initdb", "--pgdata", str(self.data), *how)

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(self.programs / "postgres", "-D", self.data, "-k", self.folder),
                    *("-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=50"),
                ],
                stdout=log,
                stderr=log,
                user=self.user,
                cwd=self.folder,
            )
        until = time.monotonic() + 60
        while subprocess.run(self._command("pg_isready", "-q"), check=False).returncode:
            assert time.monotonic() < until, (self.folder / "log").read_text("utf-8")
            assert self.process.poll() is None, (self.folder / "log").read_text("utf-8")
            time.sleep(0.05)

    def kill(self) -> None:
        """Ends the server as a crash does: all of its processes get SIGKILL at one moment, and it recovers when it
        starts.
        """
        self.process.send_signal(signal.SIGSTOP)  # so that it starts no further process meanwhile
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text("ascii")
        for process in (*map(int, children.split()), self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.process.wait()

    def stop_at_once(self) -> None:
        """Ends the server without a checkpoint, as `pg_ctl stop --mode immediate` does."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(60)

    def stop(self) -> None:
        """Ends the server, whoever is still connected."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)

    @contextmanager
    def full_disk(self, process: int) -> Iterator[None]:
        """Within the block no file can grow, when that process of the server writes it, beyond what its log needs."""
        self._limit(process, str(LOG_FILE))
        try:
            yield
        finally:
            self._limit(process, "unlimited")

    def _limit(self, process: int, size: str) -> None:
        command = ["prlimit", "--pid", str(process), f"--fsize={size}:unlimited"]
        subprocess.run(command, check=True, user=self.user)  # only the same user may do this

    def url(self, name: str) -> str:
        subprocess.run(self._command("createdb", name), check=True)
        return self.address(name)

    def address(self, name: str) -> str:
        return f"postgresql:///{name}?host={self.folder}&user=postgres"

    def _command(self, program: str, *rest: str) -> list[str]:
        return [str(self.programs / program), "--host", str(self.folder), "--username", "postgres", *rest]

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        subprocess.run(command, check=True, capture_output=True, user=self.user, cwd=self.folder)


@contextmanager
def running_server(folder: Path) -> Iterator[Server]:
    """A server that runs within the block."""
    programs = find_programs()
    assert programs is not None
    server = Server(programs, folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
