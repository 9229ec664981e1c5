"""Streaming queries whose set of patterns changes while they run."""
