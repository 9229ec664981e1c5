"""The former place of `cepheid.hosts.spark.session`, for one release."""

from cepheid.hosts.spark.session import local_session

__all__ = ["local_session"]
