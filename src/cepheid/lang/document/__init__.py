"""Pattern files: their text, their values, and what is wrong in them."""
