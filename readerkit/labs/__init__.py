"""The labs of phase 35: what is handed in, and what holds it to account."""
