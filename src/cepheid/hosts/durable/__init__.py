"""Hosts whose state survives crashes: in a directory of files or in a database."""
