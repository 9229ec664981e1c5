"""New Python processes that work for this one, and how they have ended."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

from cepheid.errors import WorkerFailed

_CODE = "import sys; sys.path[:] = sys.argv[1:]; from {module} import main; main({given})"


def start_python(
    module: str, *given: int | str, stdin: int, stdout: int | IO[bytes] | None = None, pass_fds: tuple[int, ...] = ()
) -> subprocess.Popen[bytes]:
    """A new process that calls the module's `main` with the given values.

    It is a new interpreter, not a fork: a fork would have locks that no thread gives back. Unlike a process of
    `multiprocessing`, it does not import the user's script, which so needs no `if __name__ == "__main__"`. It imports
    from where this process does: `python -m` would import from the current folder, too, and first of all.

    Raises:
        WorkerFailed: no process can be started.
    """
    code = _CODE.format(module=module, given=", ".join(map(repr, given)))
    command = [sys.executable, "-c", code, *(path or str(Path.cwd()) for path in sys.path)]
    try:
        return subprocess.Popen(command, stdin=stdin, stdout=stdout, pass_fds=pass_fds)  # noqa: S603 - of this package
    except OSError as error:
        raise WorkerFailed(f"a worker process cannot be started: {error}") from error


def how_it_ended(process: subprocess.Popen[bytes], memory: int | None = None) -> str:
    """In words, for a process that has ended by itself or by a signal. `memory`: the bytes that it may allocate."""
    code = process.returncode
    if code >= 0:
        return f"worker process {process.pid} ended with exit code {code}; its output on standard error says why"
    name = signal.Signals(-code).name
    reason = ""
    if name == "SIGKILL":
        reason = ", as the system does where memory runs out: use fewer workers"
    elif memory is not None:
        reason = f", as happens where a library cannot allocate more: it may have {memory:,} bytes (worker_memory)"
    return f"worker process {process.pid} was ended by {name}{reason}"
