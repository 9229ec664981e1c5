"""What the user writes: frozen values without behaviour of their own."""
