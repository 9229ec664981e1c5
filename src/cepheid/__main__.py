"""`python -m cepheid` is the command `cepheid`."""

from cepheid.cli.app import main

main()
