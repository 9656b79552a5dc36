"""What has been embedded is not lost, whatever a program imports before it compacts a corpus."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import quoth
from quoth.index.tables import KeyTables
from tiny import TEXT, tiny_npm

IMPORTS = (
    "from quoth.corpus.corpus import Corpus",
    "from quoth.corpus import corpus; Corpus = corpus.Corpus",
    "import quoth.corpus.bm25; from quoth.corpus.corpus import Corpus",
)


@pytest.mark.parametrize("imports", IMPORTS)
def test_a_program_that_compacts_keeps_every_vector(imports: str, tmp_path: Path) -> None:
    corpus = quoth.Corpus.create(tmp_path / "c.quoth")
    for number, text in enumerate(TEXT[:3]):
        corpus.add([quoth.Document(str(number), "", text)])
    npm = quoth.NPM.from_pretrained(tiny_npm(tmp_path / "m"), corpus=corpus)
    npm.embed("fp32", recall=1.0)
    before = npm.fill("Paris is the [MASK] of France.", passages=None)
    program = f"{imports}; c = Corpus.open({str(tmp_path / 'c.quoth')!r}); c.delete(['1']); c.compact()"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
    corpus = quoth.Corpus.open(tmp_path / "c.quoth")
    assert len(corpus.segments) == 1
    assert KeyTables(corpus, npm.encoder).missing() == []
    after = quoth.NPM(npm.encoder, [corpus]).fill("Paris is the [MASK] of France.", passages=None)
    assert {each.text for each in after} & {each.text for each in before}
