"""What follows from facts by the rules of OWL 2 RL, and since when."""
