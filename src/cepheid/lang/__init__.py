"""What the user writes: frozen values with no behaviour beyond what they are."""
