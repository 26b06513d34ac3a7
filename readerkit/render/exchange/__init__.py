"""What leaves a book: its notes and tours as other programs read them."""
