"""The former place of `cepheid.hosts.spark.kafka`, for one release."""

from cepheid.hosts.spark.kafka import connector_jars, with_jars

__all__ = ["connector_jars", "with_jars"]
