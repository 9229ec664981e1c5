"""The rules of knowledge as tables of numbers."""
