"""The manual pages of 64 commands as documents, for the questions in `benchmarks/questions/man_*.jsonl`.

    python -m benchmarks.man_pages > man.jsonl

Needs `man` and `col`, and the pages (Debian: `apt-get install man-db bsdextrautils wget vim zip unzip`).
"""

from __future__ import annotations

import json
import os
import subprocess

COMMANDS = """tar cp mv rm dd df du find grep gzip ls sed ssh head tail sort uniq wc cut paste tr cat tee touch mkdir
    rmdir ln chmod chgrp chown stat file diff patch kill nice nohup sleep date whoami uname env printf echo test expr
    seq shuf split md5sum sha256sum base64 xargs make man less awk git wget vim bzip2 xz zip unzip"""


def page(command: str) -> str:
    """A command's manual page, at most 100 characters wide, without hyphens at line ends."""
    man = ["man", "-P", "cat", "--no-justification", "--no-hyphenation", "1", command]
    shown = subprocess.run(man, env=os.environ | {"MANWIDTH": "100"}, capture_output=True, check=True).stdout
    return subprocess.run(["col", "-bx"], input=shown, capture_output=True, check=True).stdout.decode()


if __name__ == "__main__":
    for command in COMMANDS.split():
        print(json.dumps({"id": command, "title": command, "text": page(command)}))
