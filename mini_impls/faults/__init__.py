"""Minis with one deliberate fault each: what goes wrong, and which lines prevent it.

A mini's file stays clean: a fault is a few lines of it, named by an anchor, and the
lines that take their place in a copy. Right and faulty copy run the same work on real
ranks; what differs between them is measured, never told.
"""
