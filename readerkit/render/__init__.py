"""From pages of a book to what a reader sees."""
