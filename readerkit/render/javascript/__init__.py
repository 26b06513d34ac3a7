"""Python to JavaScript: what the estimates compute, for a page that asks no server."""
