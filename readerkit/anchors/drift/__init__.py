"""Where lines of one revision stand in another, and how sure that is."""
