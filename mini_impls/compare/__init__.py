"""Runs a mini beside its upstream on the same work and records what both did.

The only place that imports upstream code: torch's as it is installed, Megatron's from a
directory written from verified blobs.
"""
