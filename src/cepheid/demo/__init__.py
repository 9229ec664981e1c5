"""The example that `cepheid demo` runs: delays that propagate through a day of one aircraft's flights."""
