"""Mentions of linked documents: which count, what they are asked as, and which passages are right."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asking import plain

from quoth.cli.main import main
from quoth.corpus.corpus import Corpus
from quoth.errors import InputError
from quoth.records import Document, Hit
from quoth_eval import entity_search
from quoth_eval.entity_search import Range, Search, by_entity, by_name
from quoth_eval.harness import ProgressCallback, evaluate
from quoth_eval.report import Report
from quoth_eval.systems import BM25
from quoth_eval.tasks import find
from quoth_eval.tasks.links import Mention, links_task, page, passages_about, read_mentions, searches_of

PAGES = {
    "rome": ("Rome", "Rome lies on the Tiber. Long ago it was small."),
    "ray": ("Bob Ray", "Bob Ray saw much. He came to [Rome|Rome] at last. Then he slept."),
    "lee": ("Ann Lee", "Ann Lee sings. In [the city|Rome] she met [Paris|Paris (god)]."),
    "towns": ("Towns", "There are [Paris|paris_(France)#Name] and [Oslo|Oslo]. They are large."),
    "troy": ("Troy", "Of Troy came [Paris|Paris (god)] once."),
}


def linked(name: str) -> Document:
    """The document in which each [surface|target] is a link."""
    title, marked = PAGES[name]
    text, links = "", []
    for part in marked.split("["):
        inside, bar, rest = part.partition("]")
        if not bar:
            text += part
            continue
        surface, _, target = inside.partition("|")
        links.append([len(text), len(text) + len(surface), target])
        text += surface + rest
    return Document(name, title, text, {"links": links})


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    made = Corpus.create(tmp_path / "linked.quoth", splitter="words:10")
    made.add(map(linked, PAGES))
    return made


class Told:
    """Finds every passage, in the order of their rows; keeps what it was asked."""

    encoder = SimpleNamespace(config=SimpleNamespace(ask_with="entity"))

    def __init__(self, corpus: Corpus) -> None:
        self.passages = list(corpus.passages())
        self.asked: list[tuple[str, int, Sequence[str | Range] | None]] = []

    def search(self, query: str, k: int, *, entities: Sequence[str | Range] | None = None) -> list[Hit]:
        self.asked.append((query, k, entities))
        return [Hit(passage, 0.0) for passage in self.passages[:k]]


def test_links_that_are_not_whole_words_are_left_out_and_counted() -> None:
    text = "Old Rome fell.  Late"
    good = [[4, 8, "rome"], [0, 8, "Rome#Age"], [9, 14, "x"], [16, 20, "y"]]
    bad: list[Any] = [[5, 8, "x"], [4, 7, "x"], [3, 8, "x"], [4, 9, "x"], [14, 16, "x"], [4, 4, "x"]]
    bad += [[16, 21, "x"], [4, 8, ""], [4, 8, "#s"]]
    found, num_dropped = read_mentions(
        [Document("d", "", text, {"links": [*good, *bad]}), Document("e", "", "No link.", {"links": None})]
    )
    assert num_dropped == len(bad)
    assert found[:2] == [Mention("d", 4, 8, "Rome", "Rome"), Mention("d", 0, 8, "Old Rome", "Rome")]
    assert [each.surface for each in found[2:]] == ["fell.", "Late"]
    for broken in ([8, 4, "x"], [-4, 20, "x"], [4, 8], ["4", 8, "x"], None, [4.0, 8, "x"]):
        with pytest.raises(InputError, match=r"document 'd': link .* is not"):
            read_mentions([Document("d", "", text, {"links": [broken]})])


def test_titles_are_compared_as_wikipedia_takes_them() -> None:
    assert page("paris_(France)#Name") == page(" Paris  (France)") == "Paris (France)"
    assert page("iPod") == "IPod" != page("Ipod")
    assert page("#Name") == ""


def test_passages_are_about_what_they_mention_and_their_page_is_about(corpus: Corpus) -> None:
    assert [each.document_id for each in corpus.passages()] == ["rome", "ray", "ray", "lee", "towns", "troy"]
    about = passages_about(corpus, read_mentions(corpus.documents())[0])
    assert about["Rome"] == {0: "rome", 1: "ray", 3: "lee"}  # the page itself, and not ray's other passage
    assert about["Paris (god)"] == {3: "lee", 5: "troy"}
    assert about["Paris (France)"] == {4: "towns"}


def run_links(
    corpus: Corpus,
    search: Search | None = None,
    ks: Sequence[int] = (1, 5, 20),
    limit: int | None = None,
    progress: ProgressCallback | None = None,
) -> Report:
    """The report of BM25, asked with the mention alone, and of a search."""
    named = {"bm25, mention": by_name(BM25((corpus,)))} | ({"told": search} if search else {})
    made = {name: searches_of(each, corpus, ks) for name, each in named.items()}
    return evaluate(links_task(corpus, ks, limit), made, progress=progress)


def test_a_mention_is_asked_in_its_sentence_and_its_own_document_does_not_count(corpus: Corpus) -> None:
    told = Told(corpus)
    seen: list[tuple[str, int, int]] = []
    report = run_links(corpus, by_entity(told), (1, 2), progress=lambda *each: seen.append(each))
    # Oslo and Paris (France) are linked to in one document only
    result = report.system("told")
    mentions = {f"{each.document_id}:{each.start}-{each.end}": each for each in read_mentions(corpus.documents())[0]}
    asked = [mentions[row.id] for row in result.rows]
    assert [(each.document_id, each.surface) for each in asked] == [
        ("ray", "Rome"),
        ("lee", "the city"),
        ("lee", "Paris"),
        ("troy", "Paris"),
    ]
    assert ["ambiguous" in row.groups for row in result.rows] == [False, False, True, True]
    assert told.asked[0] == ("He came to Rome at last.", 2 + len(corpus.rows_of("ray")), [(11, 15)])
    assert told.asked[2][2] == [(20, 25)]
    assert told.asked[2][0][20:25] == "Paris"
    # the first passages are rome's and ray's, which are about Rome
    assert [(row.scores["recall@1"], row.scores["MRR@2"]) for row in result.rows] == [(1, 1), (1, 1), (0, 0), (0, 0)]
    # lee's own and troy's own passage do not count
    others = report.system("bm25, mention").rows[2:]
    assert [(row.scores["recall@1"], row.scores["recall@2"], row.scores["MRR@2"]) for row in others] == [
        (1, 1, 1),
        (0, 1, 1 / 2),
    ]
    assert seen[-1] == ("told", 4, 4)
    groups = {
        name: [i for i, row in enumerate(result.rows) if name in row.groups.values()]
        for name in ("surface is the title", "surface is another", "names", "ambiguous")
    }
    assert groups == {
        "surface is the title": [0],
        "surface is another": [1, 2, 3],
        "names": [0, 2, 3],
        "ambiguous": [2, 3],
    }
    found = report.to_dict()
    assert (found["num_examples"], found["num_mentions"], found["num_dropped"]) == (4, 4, 0)
    names = found["systems"][1]["groups"]["names"]["names"]
    assert [names[measure]["mean"] for measure in ("recall@1", "recall@2", "MRR@2")] == pytest.approx([1 / 3] * 3)
    lines = plain(report.markdown())
    assert "| told | 4 | 50.0 | 50.0 | 50.0 |" in lines


def test_the_mean_reciprocal_rank_by_hand(corpus: Corpus) -> None:
    result = run_links(corpus, ks=(4,)).system("bm25, mention")
    passages = {f"{each.document_id}:{each.start}-{each.end}": each for each in corpus.passages()}
    about = passages_about(corpus, read_mentions(corpus.documents())[0])
    for row in result.rows:
        own, right = row.id.partition(":")[0], about[row.answers[0]]
        others = [passages[name].row for name in row.passages if passages[name].document_id != own]
        ranks = [i for i, at in enumerate(others[:4], start=1) if at in right]
        assert row.scores["MRR@4"] == (1 / ranks[0] if ranks else 0)


def test_a_mention_over_the_end_of_a_sentence_is_asked_with_both(tmp_path: Path) -> None:
    made = Corpus.create(tmp_path / "c.quoth")
    text = "It began. He met Dr. No. It ended."
    made.add([Document("a", "A", text, {"links": [[17, 23, "No"]]}), Document("b", "No", "A doctor.")])
    told = Told(made)
    run_links(made, by_entity(told))
    ((text, _, entities),) = told.asked
    assert text == "He met Dr. No."
    assert entities is not None
    ((start, end),) = entities
    assert text[start:end] == "Dr. No"  # type: ignore[misc]


def test_fewer_mentions_are_drawn_by_seed_and_mistakes_are_named(corpus: Corpus, tmp_path: Path) -> None:
    few = run_links(corpus, limit=2)
    assert len(few.systems[0].rows) == 2
    assert few == run_links(corpus, limit=2)
    assert few.settings["num_mentions"] == 4
    for ks in "[]", "[0]":
        with pytest.raises(InputError, match="ks is"):
            find("links").read({"ks": json.loads(ks)})
    bare = Corpus.create(tmp_path / "bare.quoth")
    bare.add([Document("a", "A", "No link.")])
    with pytest.raises(InputError, match="no two documents link to the same target; give documents with 'links'"):
        run_links(bare)


def test_the_command_asks_a_model_with_the_mention(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = Told(corpus)
    setups: list[object] = []
    monkeypatch.setattr(entity_search, "load_entities", lambda name, corpora, setup: setups.append(setup) or told)
    asked = ["eval", "links", "--corpus", str(corpus.path)]
    both = ["--system", "bm25,mention=true", "--system", "quoth-zero-ner,told=true"]
    assert main([*asked, *both, "--limit", "1", "--json", "--dtype", "bf16"]) == 0
    assert setups == [(None, None, "bf16")]
    systems = json.loads(capsys.readouterr().out)["systems"]
    assert [each["name"] for each in systems] == ["bm25,mention=true", "quoth-zero-ner,told=true"]
    assert [entities is None for _, _, entities in told.asked] == [False]
    assert main([*asked, "--set", "ks=3"]) == 0
    head = "| links; mentions: 4; dropped: 0; passages: 6 | examples | recall@3 | MRR@3 |"
    assert capsys.readouterr().out.splitlines()[0] == head
