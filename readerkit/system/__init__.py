"""Processes, files and a line of status, with the precautions that they need."""
