"""Whether what the book says is so: each claim held against what it speaks of.

Values to values: from a claim, and the verified source, records and programs that it
names, to a verdict with what was found and where.
"""
