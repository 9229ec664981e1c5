"""The store in a folder of files."""
