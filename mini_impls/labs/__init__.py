"""Measurements of the labs: a mini at several sizes, written down as JSON."""
