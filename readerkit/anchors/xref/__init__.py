"""Names, where they are defined, and who uses them."""
