"""How long after its last event a match is emitted on a stream: a few events per second over a socket, with the
smallest trigger, compared with a query without state, and with one that writes one value of state.

A match is certain when the watermark is after its last event, which takes a later event and another micro-batch.

python benchmarks/stream_latency.py --rows 1000    # events
"""

from __future__ import annotations

import socket
import socketserver
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from measuring import machine, print_table, rows_wanted
from streaming import find_benchmarks, packed
from written_values import PassedOn

from cepheid import Pattern, detect
from cepheid.hosts.spark.session import local_session
from cepheid.hosts.spark.stream.ledger import SHARD

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

A_SECOND = 20
"""The number of events per second, at random times."""
WARM_UP = 15.0
"""The first seconds, whose events do not count."""
OPTIONS: dict[str, Any] = {"key": "source", "time": "at", "sequence": "number", "lateness": "0 seconds", "shards": 1}
PATTERN = Pattern.begin("a").where("number % 2 = 0").next("b").where("number % 2 = 1").within("1 minute")


class Trickle(socketserver.BaseRequestHandler):
    """Sends each event as a line with its number and its sending time in microseconds."""

    request: socket.socket
    events = 0

    def handle(self) -> None:
        random = np.random.default_rng(1)
        for number in range(self.events):
            time.sleep(random.exponential(1 / A_SECOND))
            self.request.sendall(f"{number},{time.time_ns() // 1000}\n".encode())
        time.sleep(5)


def nothing(events: DataFrame) -> DataFrame:
    return events


def value_written(events: DataFrame) -> DataFrame:
    """The events as `detect` packs them, through a shard that writes them into one value of state."""
    shards = packed(events, PATTERN, **OPTIONS).groupBy(SHARD)
    return shards.transformWithState(PassedOn(), "sent BIGINT", outputMode="append", timeMode="eventTime")


def matches(events: DataFrame) -> DataFrame:
    return detect(events, PATTERN, measures={"sent": "b.sent"}, **OPTIONS)


def latencies(session: SparkSession, events: int, query_of: Callable[[DataFrame], DataFrame]) -> np.ndarray:
    """The milliseconds from the sending of an event, or of the last event of a match, until the sink has its row."""
    taken: list[float] = []
    started = time.time()

    def take(rows: DataFrame, _: int) -> None:
        sent = [row[0] for row in rows.select("sent").collect()]
        now = time.time()
        taken.extend((now - at / 1e6) * 1000 for at in sent if at / 1e6 > started + WARM_UP)

    Trickle.events = events
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Trickle) as server, tempfile.TemporaryDirectory() as name:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        lines = session.readStream.format("socket").option("host", "127.0.0.1").option("port", server.server_address[1])
        parts = "CAST(split(value, ',')[{}] AS BIGINT)"
        stream = lines.load().selectExpr(f"{parts.format(0)} AS number", f"{parts.format(1)} AS sent")
        stream = stream.selectExpr("*", "timestamp_micros(sent) AS at", "'all' AS source")
        writer = (
            query_of(stream).writeStream.foreachBatch(take).option("checkpointLocation", str(Path(name) / "checkpoint"))
        )
        query = writer.start()
        query.awaitTermination(events // A_SECOND + 5)
        while query.status["isTriggerActive"]:
            time.sleep(0.01)  # after a stop during `take`, Spark searches Python's error with a regex that overflows
        query.stop()
        server.shutdown()
    return np.array(taken)


def main() -> None:
    events = rows_wanted(__doc__ or "", default=1_500)
    print(machine())
    find_benchmarks()
    session = local_session("benchmark", time_zone="UTC", settings={"spark.sql.shuffle.partitions": "1"})
    lines = []
    for name, query_of in {"no state": nothing, "a value a shard": value_written, "detect": matches}.items():
        taken = latencies(session, events, query_of)
        lines.append([name, len(taken), *(float(np.percentile(taken, share)) for share in (50, 99))])
    print_table(f"Latency of {A_SECOND} events a second", ["", "rows", "p50, ms", "p99, ms"], lines)
    session.stop()


if __name__ == "__main__":
    main()
