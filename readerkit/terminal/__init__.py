"""What is shown and asked on a terminal."""
