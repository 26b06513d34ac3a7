"""Small, complete implementations that run on real process groups, one idea a file."""
