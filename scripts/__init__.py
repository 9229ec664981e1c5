"""Programs that make or a developer runs. Tests import the parts that they share with them."""
