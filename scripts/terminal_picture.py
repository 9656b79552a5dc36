"""The picture of the README: commands and what they print, as an SVG.

    python scripts/terminal_picture.py -o docs/images/ask.svg

Indexes the bundled encyclopedia in a temporary folder and runs the commands there.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = 96
COMMANDS = (
    "quoth index atlas-2026.jsonl -o atlas.quoth",
    'quoth ask atlas.quoth "Who directed the film Seven Samurai?" --top-k 1',
    'quoth ask atlas.quoth "Who invented the telephone?" --top-k 1',
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    output = parser.parse_args().output
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    with tempfile.TemporaryDirectory() as folder:
        for sample in (ROOT / "samples").glob("*.jsonl"):
            (Path(folder) / sample.name).symlink_to(sample)
        for command in COMMANDS:
            console.print(Text(f"$ {command}", style="bold"))
            console.print(Text.from_ansi(printed(command, folder)), end="\n\n")
    picture = console.export_svg(title="quoth")
    # A picture asks no network for its letters.
    output.write_text(re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.S), encoding="utf-8")


def printed(command: str, folder: str) -> str:
    """The results that a command prints on a terminal."""
    shown = os.environ | {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS)}
    arguments = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(arguments, cwd=folder, env=shown, capture_output=True, text=True, check=True)
    return done.stdout.strip("\n")


if __name__ == "__main__":
    main()
