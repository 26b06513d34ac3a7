"""What comparisons recorded, and what it says of a line."""
