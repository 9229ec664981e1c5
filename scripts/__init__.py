"""What is run by hand or by make; tests take what they share with them from here."""
