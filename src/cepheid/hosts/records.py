"""The former place of `cepheid.hosts.spark.records`, for one release."""

from cepheid.hosts.spark.records import file_events, json_events
from cepheid.hosts.spark.records import with_malformed as telling

__all__ = ["file_events", "json_events", "telling"]
