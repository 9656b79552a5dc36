"""The command `quoth`, also as `python -m quoth`: how a signal ends it, even during its imports.

Knows: SIGTERM and SIGHUP end a command as Ctrl-C does, so that temporary folders are removed and a training run saves a
checkpoint. Does not know: the commands.
"""

import signal
import sys

INTERRUPTED = 130


class Ended(KeyboardInterrupt):
    """A signal to end arrived. A plain KeyboardInterrupt in some imports makes CPython end itself by SIGINT."""


def main() -> int:
    """Run the command line of this process and return its exit code."""
    received: list[int] = []

    def stop(number: int, _: object) -> None:
        received.append(number)
        raise Ended

    for each in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(each) is signal.SIG_DFL:  # nohup has it ignored
            signal.signal(each, stop)
    try:
        from quoth.cli.main import main as run

        code = run()
    except KeyboardInterrupt:
        print("quoth: interrupted; everything committed so far is kept", file=sys.stderr, flush=True)
        code = INTERRUPTED
    return 128 + received[0] if received and code == INTERRUPTED else code


if __name__ == "__main__":
    raise SystemExit(main())
