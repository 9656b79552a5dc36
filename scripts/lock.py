"""Bring the lock files up to date: what their packages require is added, and the hashes of all that is pinned.

    pip install uv
    python scripts/lock.py

Change a pin (`name==version`) in one of the lock files, or add one, then run this: pins stay as they are, missing
packages are added at their newest version, and every release's hashes are listed, for all platforms. A package that is
pinned in a file that comes before is not repeated, unless it is needed on more platforms.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
AFTER = {"": (), "-torch": ("",), "-tests": ("", "-torch"), "-docs": ("",)}
"""The kinds of lock files, and the kinds that are installed before each."""
NOT_PINNED = re.compile(r"(nvidia|cuda)-|triton=")
"""What PyTorch's CUDA builds require: the last step of making an environment installs it where it is required."""
PIN = re.compile(r"^[\w.-]+==[^\\\n]+", re.MULTILINE)


def pins(file: Path) -> list[str]:
    """The pins of a lock file, with their markers."""
    return [found.group().strip() for found in PIN.finditer(file.read_text(encoding="utf-8"))]


def compiled(wanted: list[str]) -> dict[str, str]:
    """By name, version and platforms, the lines of everything that is required, hashes included."""
    with tempfile.TemporaryDirectory() as folder:
        (source := Path(folder) / "wanted.in").write_text("\n".join(wanted), encoding="utf-8")
        platforms = ["--universal", "--python-version", "3.11.5"]
        form = ["--generate-hashes", "--no-annotate", "--no-header", "-q"]
        done = subprocess.run(["uv", "pip", "compile", str(source), *platforms, *form], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    blocks = re.split(r"\n(?=\S)", done.stdout.strip())
    return {block.partition(" \\")[0]: block for block in blocks if not NOT_PINNED.match(block)}


def write(file: Path, blocks: dict[str, str]) -> None:
    """Replace what follows the file's comment."""
    comment = re.match(r"(#.*\n)*", file.read_text(encoding="utf-8"))
    assert comment
    file.write_text(comment.group() + "\n".join(blocks.values()) + "\n", encoding="utf-8")


def main() -> None:
    files = {kind: ROOT / f"requirements{kind}.lock" for kind in AFTER}
    made: dict[str, dict[str, str]] = {}
    for kind, before in AFTER.items():
        every = compiled([pin for part in (*before, kind) for pin in pins(files[part])])
        there = {block for part in before for block in made[part].values()}
        made[kind] = {pin: block for pin, block in every.items() if block not in there}
        write(files[kind], made[kind])


if __name__ == "__main__":
    main()
