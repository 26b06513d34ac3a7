"""The reading site: gathered, built, published and served."""
