"""`python -m quoth` is the command `quoth`."""

from quoth.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
