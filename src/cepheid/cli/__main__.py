"""`python -m cepheid.cli` is the command `cepheid`."""

from cepheid.cli.app import main

main()
