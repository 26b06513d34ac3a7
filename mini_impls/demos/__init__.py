"""What each mini shows when it is run by itself, beside one process."""
