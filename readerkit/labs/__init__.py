"""The labs of phase 35: what is handed in, and what holds it to account."""

PHASE = 35
"""Of the course: whose labs, quiz and definition of done these are."""
