"""Numbers, nouns and names as messages and pages say them."""
