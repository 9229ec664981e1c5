"""The hosts on Spark."""
