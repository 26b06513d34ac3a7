"""What everything is made of: anchors, names that git gives, formulas."""
