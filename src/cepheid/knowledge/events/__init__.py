"""Events as individuals of an ontology."""
