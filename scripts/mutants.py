"""Change the code in one place at a time, and count the changes that a test notices: mutation testing by mutmut.

    make mutants                                                        every module of [tool.mutmut], hours
    make mutants MUTANTS=src/quoth/answers/ranking.py                one of them
    make mutants MUTANTS="--sample 30"                                  30 mutants of each, drawn by chance

What lives is listed; `.venv/bin/python -m mutmut show NAME` prints it. Without --sample, an interrupted run resumes.
The mutants, and what became of them, are in mutants/.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

from mutmut.configuration import config
from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.stats import status_by_exit_code
from mutmut.utils.format_utils import get_mutant_name

ROOT = Path(__file__).parents[1]
LIVE = ("survived", "no tests")


def names(file: Path) -> list[str]:
    """The mutants of a module."""
    found = mutate_file_contents(str(file), file.read_text(encoding="utf-8")).mutant_names
    return [get_mutant_name(file, name) for name in found]


def run(chosen: list[str], processes: int) -> int:
    """Test mutants, also in the programs that tests start; without network."""
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    environment = {**os.environ, **offline, "PYTHONPATH": str(ROOT / "mutants" / "src")}
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(processes), *chosen]
    # It has to be there before Python starts, which ignores a missing path from then on.
    (ROOT / "mutants" / "src").mkdir(parents=True, exist_ok=True)
    with (ROOT / "mutants" / "run.log").open("w", encoding="utf-8") as log:
        return subprocess.run(command, env=environment, stdout=log, stderr=log, check=False).returncode


def report(file: Path, chosen: set[str]) -> None:
    """The share of a module's mutants that were killed, and the names of those that live."""
    codes = json.loads((ROOT / "mutants" / f"{file}.meta").read_text(encoding="utf-8"))["exit_code_by_key"]
    tested = {name: status_by_exit_code[code] for name, code in codes.items() if name in chosen and code is not None}
    live = [name for name, status in tested.items() if status in LIVE]
    killed = len(tested) - len(live)
    share = killed / max(len(tested), 1)
    print(f"{file}: {killed} of {len(tested)} killed, {share:.0%}", dict(Counter(tested.values())), flush=True)
    for name in live:
        print(f"    {tested[name]}: {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", type=Path, help="files of [tool.mutmut]; all if none is named")
    parser.add_argument("--sample", type=int, help="number of mutants of each module")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    os.chdir(ROOT)
    chosen = {file: names(file) for file in options.modules or map(Path, config().only_mutate)}
    if options.sample:
        drawn = random.Random(options.seed)
        chosen = {file: drawn.sample(every, min(options.sample, len(every))) for file, every in chosen.items()}
    whole = not options.sample and not options.modules
    code = run([] if whole else [name for every in chosen.values() for name in every], options.processes)
    for file, every in chosen.items():
        report(file, set(every))
    sys.exit(code)


if __name__ == "__main__":
    main()
