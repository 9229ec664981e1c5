"""Crashes and recoveries of share prices, found in one pass on Spark."""

from pyspark.sql import SparkSession
from tests.tasks.data import BOKEH

from cepheid import Pattern, detect

spark = SparkSession.builder.getOrCreate()
stocks = spark.read.csv(str(BOKEH / "stocks.csv.gz"), header=True, inferSchema=True)
patterns = {
    "crash": Pattern.begin("before").followed_by("fall").where("Low < 0.8 * before.Close").within("5 days"),
    "recovery": Pattern.begin("before").followed_by("rise").where("High > 1.25 * before.Close").within("5 days"),
}
matches = detect(stocks, patterns, key="Ticker", time="Date").toPandas()
