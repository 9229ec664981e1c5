"""Opens the events of a command line on the host that it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings

from cepheid.cli.failure import require_installed
from cepheid.cli.files import event_files, read_events, read_events_on_spark, read_schema
from cepheid.cli.options import EventOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console


@contextmanager
def opened_events(options: EventOptions, errors: Console, *, columns_only: bool = False) -> Iterator[Any]:
    """An Arrow table or, with `--on spark`, a DataFrame whose session ends with the block.

    With `columns_only` the table may have no rows. A DataFrame always has all rows, as Spark reads them only on demand.
    """
    files = event_files(options.files)
    times, given = options.times, options.text_format
    if options.on == "spark":
        with spark_session("--on spark", options.time_zone, errors) as session:
            with doing("Reading events", errors):
                frame = read_events_on_spark(session, files, times=times, given=given)
            yield frame
    elif columns_only:
        yield read_schema(files, times=times, given=given).empty_table()
    else:
        with doing("Reading events", errors):
            events = read_events(files, times=times, given=given)
        yield events


@contextmanager
def spark_session(
    what: str, time_zone: str, errors: Console, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """The Spark session of this process, which `what` needs. If there is none, a local one is started for the block and
    stopped after it.
    """
    require_installed(what, "pyspark", "pandas", extra="spark")
    from pyspark.sql import SparkSession as Session

    from cepheid.hosts.spark.session import local_session

    was_active = Session.getActiveSession() is not None
    with doing("Starting Spark", errors):
        session = local_session("cepheid", time_zone=time_zone, settings=settings)
    try:
        yield session
    finally:
        if not was_active:
            _stop(session)


def _stop(session: SparkSession) -> None:
    """Stops the session. If its Java process ends by itself, as after a SIGTERM to all processes of the command, there
    is nothing to stop.
    """
    from py4j.protocol import Py4JError

    with suppress(Py4JError, ConnectionError), catch_warnings(category=RuntimeWarning, action="ignore"):
        session.stop()


def doing(what: str, errors: Console) -> AbstractContextManager[Any]:
    """Shows `what` during the block, if `errors` is a terminal."""
    return errors.status(what) if errors.is_terminal else nullcontext()
