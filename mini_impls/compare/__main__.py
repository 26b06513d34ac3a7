"""`python -m mini_impls.compare NAME`: a mini beside its upstream."""

from readerkit.system.garbage import kept

if __name__ == "__main__":
    with kept():  # torch, above all
        from mini_impls.compare.command import main
    raise SystemExit(main())
