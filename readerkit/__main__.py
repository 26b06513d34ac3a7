"""Run the toolkit as ``python -m readerkit``."""

from readerkit.cli import main

if __name__ == "__main__":
    main()
