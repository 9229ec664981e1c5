"""The command line: one command per file, no meaning of its own."""
