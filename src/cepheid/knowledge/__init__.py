"""What events mean: ontologies, the facts that follow from them, and filters that ask for these facts."""
