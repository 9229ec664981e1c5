"""What `detect` gave with several outputs, one table an output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.detect import is_spark
from cepheid.errors import SchemaError
from cepheid.plan.stages.plan import OutputName
from cepheid.requests.arguments import checked_outputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NEEDED = {"kind", "match_id", "match_start", "detected_at", "event"}


def split(rows: DataFrame, *outputs: OutputName) -> tuple[DataFrame, ...]:
    """The rows of each of these outputs, in the columns that it has.

    Args:
        rows: What `detect` gave on Spark with `outputs` or of several patterns, or of intervals on a stream; all of it,
            or a micro-batch in foreachBatch.
        outputs: "matches" (of intervals insertions and retractions), "timeouts" or "late".

    Returns:
        A DataFrame for each of `outputs`, in their order. Matches and timeouts have all columns but `event`; late
        events have kind, pattern, match_id, the key columns, detected_at and event.

    Raises:
        SchemaError: the rows are no DataFrame of Spark or have not the columns of several outputs, or an output is
            unknown or none is named.
    """
    faults: list[str] = []
    wanted = checked_outputs(outputs, faults)
    if not is_spark(rows) or not _NEEDED.issubset(rows.columns):
        faults.append(f"rows: a Spark DataFrame is expected that detect gave with outputs=…, got {rows!r:.200}")
    if faults:
        raise SchemaError("\n".join(faults))
    from cepheid.hosts.spark.split import rows_of_output

    return tuple(rows_of_output(rows, output) for output in wanted)
