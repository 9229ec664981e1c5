"""The command line: one file per command; a command only calls the library."""
