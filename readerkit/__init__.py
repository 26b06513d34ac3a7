"""Read the code that trains large models, beside a small version that runs."""

__version__ = "0.1.0"
