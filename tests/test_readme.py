"""What the first pages say of the shipped models; `test_site` runs the README and the pages that it leads to."""

from pathlib import Path

from quoth import NPM, Corpus, Reader, read_documents

ROOT = Path(__file__).resolve().parents[1]


def test_a_blank_is_answered_and_a_name_that_no_text_has_is_not_found(tmp_path: Path) -> None:
    """With the shipped weights and thresholds."""
    corpus = Corpus.create(tmp_path / "atlas.quoth")
    corpus.add(read_documents(str(ROOT / "samples" / "atlas-2026.jsonl")))
    filled = NPM.from_pretrained(corpus=corpus).fill("The Mona Lisa by Leonardo da Vinci hangs in the [MASK] in Paris.")
    assert (filled.status, filled[0].text) == ("answered", "Louvre")
    reader = Reader.from_pretrained(corpus=corpus)
    assert reader.ask("Who founded Zorblaxia?").status == "not_found"
    assert reader.ask("Who wrote War and Peace?").status == "answered"
