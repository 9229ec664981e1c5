"""A stream of readings that is stopped half-way and started again: glucose rises by 50 within half an hour."""

from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession
from tests.tasks.data import BOKEH

from cepheid import Pattern, Skip, detect

here, spark = Path.cwd(), SparkSession.builder.getOrCreate()
rise = (
    Pattern.begin("low").where("glucose < 120")
    .followed_by("high").where("glucose > low.glucose + 50")
    .within("30 minutes").skip(Skip.past_last_event())
)  # fmt: skip


def run():
    readings = spark.readStream.schema("datetime TIMESTAMP, glucose LONG").parquet(str(here / "readings"))
    matches = detect(readings, rise, time="datetime", lateness="10 minutes", measures={"from": "low.glucose"})
    query = matches.writeStream.option("checkpointLocation", str(here / "checkpoint")).trigger(availableNow=True)
    query.start(str(here / "matches"), format="parquet").awaitTermination()


readings = pd.read_csv(BOKEH / "CGM.csv.gz", usecols=["datetime", "glucose"], parse_dates=["datetime"])
(here / "readings").mkdir()
for number, part in enumerate((readings[:20_000], readings[20_000:])):
    part.to_parquet(here / "readings" / f"{number}.parquet", coerce_timestamps="us")
    run()
matches = spark.read.parquet(str(here / "matches")).toPandas()
