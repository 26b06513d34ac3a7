"""What commands, comparisons, labs and tools work on: the book, caches, records."""
