"""The command `quoth`, also as `python -m quoth`; told in one line where it is interrupted during its imports."""

import sys


def main() -> int:
    """Run the command line of this process and return its exit code."""
    try:
        from quoth.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        print("quoth: interrupted; everything committed so far is kept", file=sys.stderr, flush=True)
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
