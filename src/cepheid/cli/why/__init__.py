"""The command `cepheid why`."""
