"""What people write: the model of each file, its vocabulary, and how one is read."""
