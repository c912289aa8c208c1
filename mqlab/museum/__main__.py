"""`mqlab museum`, or `python -m mqlab.museum`."""

from mqlab.museum.command import main

if __name__ == "__main__":
    raise SystemExit(main())
