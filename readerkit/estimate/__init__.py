"""Memory, communication, bubble, plan and lint: arithmetic with named conventions."""
