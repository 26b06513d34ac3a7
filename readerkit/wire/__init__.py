"""What editors and assistants ask of a book over a pipe."""
