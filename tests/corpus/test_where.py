"""Conditions on metadata: what they mean, and that the part of a corpus is as a corpus of that part."""

import json
import pickle
import random
import re
from pathlib import Path
from typing import Any

import pytest

from commands import Run
from quoth import NPM, Corpus, Document
from quoth.corpus.bm25 import bm25
from quoth.corpus.view import parts
from quoth.corpus.where import date_of, dated, parse, values_of
from quoth.errors import EmptyCorpusError, InputError, UnknownDocumentError

RECORDS: list[dict[str, Any]] = [
    {"id": "a", "date": "2023-11-30", "source": "minutes", "year": 2023, "tags": ["x", "y"], "open": True},
    {"id": "b", "date": "2024-01-01T10:30", "source": "letters", "year": "2024", "open": "false", "pages": 3.5},
    {"id": "c", "date": "2024", "source": "O'Neill", "year": "n/a", "by": {"name": "Ann", "rank": 2}},
    {"id": "d", "source": "minutes", "tags": ["y", 7], "Long name": "Élan"},
]


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("source = 'minutes'", "ad"),
        ("source != 'minutes'", "bc"),
        ("SOURCE = 'minutes' or source == 'O''Neill'", None),
        ("source = 'O''Neill'", "c"),
        ("date >= '2024-01-01'", "bc"),
        ("date > '2024-01-01'", ""),
        ("date < '2024'", "a"),
        ("date <= '2023-11-30' or date is null", "ad"),
        ("date between '2023-11-30' and '2023-12'", "a"),
        ("not date >= '2024'", "ad"),
        ("year >= 2023", "ab"),
        ("year in (2023, 2025)", "a"),
        ("year not in (2023)", "bc"),
        ("year <> 2023.0", "b"),
        ("tags = 'y'", "ad"),
        ("tags = 7", "d"),
        ("tags in ('x', 'z') and open = true", "a"),
        ("open = FALSE", "b"),
        ("open is not null", "ab"),
        ("by.name = 'Ann' and by.rank < 3", "c"),
        ("\"Long name\" like 'é%'", "d"),
        ("source like '%INU_es'", "ad"),
        ("source not like 'm%'", "bc"),
        ("id in ('a', 'b') and (source = 'letters' or source = 'minutes') and not year = 2023", "b"),
        ("source = 'minutes' or source = 'letters' and pages = 3.5", "abd"),
        ("pages between -1 and +4e0", "b"),
    ],
)
def test_what_a_condition_means(condition: str, kept: str | None) -> None:
    read = parse(condition)
    found = "".join(record["id"] for record in RECORDS if read(record))
    if kept is None:  # names of fields are as they are written
        with pytest.raises(InputError, match="no document has a field 'SOURCE'; there are: Long name, "):
            read.check()
    else:
        assert found == kept


@pytest.mark.parametrize(
    ("condition", "value", "holds"),
    [
        ("n = 5", "nan", False),
        ("n <= 5", "NaN", False),
        ("n > 5", "inf", False),
        ("n = 10", "1_0", False),
        ("n = 10", " +10. ", True),
        pytest.param("n > 1e300", 10**400, True, id="beyond floats"),
        ("n < 1", "0" * 9000, False),
        ("n = 9007199254740993", 9007199254740992, False),
        ("n = 9007199254740993", "9007199254740993", True),
    ],
)
def test_numbers_are_exact_and_words_are_none(condition: str, value: Any, holds: bool) -> None:
    assert parse(condition)({"n": value}) is holds


def _like(form: str, text: str) -> bool:
    """By its definition, character by character."""
    if not form:
        return not text
    if form[0] == "%":
        return any(_like(form[1:], text[n:]) for n in range(len(text) + 1))
    return bool(text) and form[0] in ("_", text[0]) and _like(form[1:], text[1:])


def test_like_finds_what_its_definition_finds() -> None:
    rng = random.Random(5)
    for _ in range(3000):
        form = "".join(rng.choices("ab.%_", k=rng.randrange(8)))
        text = "".join(rng.choices("ab.\n", k=rng.randrange(8)))
        assert parse(f"t like '{form}'")({"t": text}) is _like(form, text), (form, text)


def test_like_with_many_signs_ends() -> None:
    """One that tries every place for every part would take years."""
    assert not parse("t like '" + "%e" * 20 + "%q'")({"t": "the " * 200})


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("", "at character 1, the end instead of a field"),
        ("source", "at character 7, the end instead of =, !="),
        ("source = minutes", "at character 10, 'minutes' instead of a value: 'text', a number"),
        ("date > 2024-10-01", "at character 12, '-10' instead of and, or, once or the end; write '2024-10-01', with"),
        ("date in (2024-10, 'x')", "write '2024-10', with its marks"),
        ("source = 'a", 'at character 10, "\'" instead of a field, a value or a sign'),
        ("a = 1 b = 2", "at character 7, 'b' instead of and, or, once or the end"),
        ("(a = 1", "at character 7, the end instead of ')'"),
        ("a in 1", "at character 6, '1' instead of '('"),
        ("a like 1", "instead of a text after like"),
        ("a = 1; drop table", "at character 6, ';' instead of"),
        ("a not = 1", "at character 7, '=' instead of"),
        ("__import__('os') = 1", "instead of"),
        ("(" * 60 + "a = 1" + ")" * 60, "nested more than 50 deep"),
        ("not " * 60 + "a = 1", "nested more than 50 deep"),
        ("a = '" + "x" * 5000 + "'", "at most 4,000"),
    ],
)
def test_what_is_wrong_is_one_line(condition: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as error:
        parse(condition)
    assert "\n" not in str(error.value)


@pytest.fixture
def records(tmp_path: Path) -> Corpus:
    corpus = Corpus.create(tmp_path / "c.quoth")
    corpus.add(Document(r["id"], "", f"text {r['id']}", {k: v for k, v in r.items() if k != "id"}) for r in RECORDS)
    return corpus


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("sorce = 'x'", "no document has a field 'sorce'; did you mean 'source'?; there are: Long name, by.name"),
        ("source > 3", "source has text, such as 'minutes', which cannot be compared with 3; compare it with text"),
        ("pages = 'x'", "pages has numbers, such as 3.5, which cannot be compared with 'x'; compare it with numbers"),
        ("date = true", "date has text, such as '2023-11-30'"),
    ],
)
def test_fields_that_are_not_there_or_of_another_kind(records: Corpus, condition: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message.split("; did")[0])):
        records.where(condition)
    assert records.where("open = true or pages = 3.5").num_documents == 2  # each had something to compare


def test_a_part_is_searched_as_a_corpus_of_it_alone(tmp_path: Path) -> None:
    """BM25's rows and scores to the bit, whatever share is kept, with deleted documents among them."""
    rng, words = random.Random(3), [f"word{n}" for n in range(30)]
    texts = [" ".join(rng.choices(words, k=rng.randrange(5, 60))) for _ in range(300)]
    corpus = Corpus.create(tmp_path / "all.quoth", splitter="words:20")
    for part in (range(150), range(150, 300)):
        corpus.add(Document(f"d{n}", f"title {n % 7}", texts[n], {"n": n}) for n in part)
    corpus.delete([f"d{n}" for n in range(0, 300, 11)])
    for low, high in ((0, 3), (100, 130), (0, 150), (0, 300)):
        part = corpus.where(f"n >= {low} and n < {high}")
        alone = Corpus.create(tmp_path / f"{low}-{high}.quoth", splitter="words:20")
        alone.add(each for each in corpus.documents() if low <= each.metadata["n"] < high)
        assert (part.num_documents, part.num_passages) == (alone.num_documents, alone.num_passages)
        assert [each.id for each in part.documents()] == [each.id for each in alone.documents()]
        mine = {row: n for n, row in enumerate(part.live_rows().tolist())}
        for query in (*rng.sample(words, 5), "word1 word2 word2 title 3"):
            rows, scores = part.bm25(query, 25)
            expected_rows, expected = alone.bm25(query, 25)
            assert [mine[row] for row in rows.tolist()] == expected_rows.tolist()
            assert scores.tolist() == expected.tolist()


def test_a_part_is_for_reading_and_follows_its_corpus(records: Corpus, tmp_path: Path) -> None:
    part = records.where("source = 'minutes'")
    assert sorted(each.id for each in part.documents()) == ["a", "d"]
    assert records.num_documents == 4
    assert part.where("year = 2023").num_documents == 1
    assert pickle.loads(pickle.dumps(part)).num_documents == 2
    with pytest.raises(InputError, match=r"is for reading; open .* without the part where source = 'minutes'"):
        part.delete(["a"])
    with pytest.raises(UnknownDocumentError):
        part.document("b")
    records.add([Document("e", "", "More.", {"source": "minutes"}), Document("f", "", "Else.", {"source": "x"})])
    part.refresh()
    assert sorted(each.id for each in part.documents()) == ["a", "d", "e"]
    assert records.where("year = 1").num_passages == 0
    records.delete(["a", "d"])
    records.replace([Document("e", "", "No source.")])
    records.replace([Document(name, "", "None.") for name in "bcf"])
    part.refresh()  # no document has a source any longer
    assert part.num_documents == 0
    assert pickle.loads(pickle.dumps(part)).num_documents == 0


def test_a_field_of_one_corpus_is_known_in_all(records: Corpus, tmp_path: Path) -> None:
    other = Corpus.create(tmp_path / "other.quoth")
    other.add([Document("z", "", "text z", {"year": "old"})])
    assert [part.num_documents for part in parts([other, records], "source = 'minutes'")] == [0, 2]
    assert [part.num_documents for part in parts([other, records], "year > 2000")] == [0, 2]
    with pytest.raises(InputError, match="no document has a field 'sorce'"):
        parts([other, records], "sorce = 'x'")


def test_a_part_without_documents_says_so(records: Corpus) -> None:
    part = records.where("year = 1")
    with pytest.raises(EmptyCorpusError, match=r"c.quoth: no document where year = 1; `quoth info .*c.quoth` shows"):
        bm25([part], "text", 3)
    assert part.where("sorce = 'x'").num_documents == 0  # nothing is known of documents that are not there


def test_vectors_are_searched_in_the_part_alone(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "v.quoth")
    corpus.add(Document(f"d{n}", "", f"The river number {n} runs here.", {"n": n}) for n in range(12))
    npm = NPM.from_pretrained("quoth-mini", corpus=corpus)
    npm.embed()
    part = corpus.where("n in (2, 5)")
    found = npm.over([part]).fill("The river number [MASK] runs here.", passages=None, read=0, top_k=20)
    assert {place.document_id for answer in found for place in answer.evidence} == {"d2", "d5"}
    for mode in ("bm25", "dense"):
        hits = npm.over([part]).search("The river number 3 runs here.", 12, mode)
        assert {hit.passage.document_id for hit in hits} == {"d2", "d5"}


@pytest.mark.parametrize(
    ("said", "date"),
    [
        ("12 March 2025", "2025-03-12"),
        ("12th Mar. 2025", "2025-03-12"),
        ("March 12, 2025", "2025-03-12"),
        ("sept 1 2025", "2025-09-01"),
        ("2025-03-12 10:00", "2025-03-12T10:00"),
        ("03/04/2024", None),
        ("30 February 2025", None),
        ("12 Marsh 2025", None),
        ("12 March", None),
        (2025, None),
    ],
)
def test_what_is_a_date(said: Any, date: str | None) -> None:
    assert date_of(said) == date
    assert not date or parse("date between '2025-03-01' and 'September 2, 2025'")({"date": said})


@pytest.mark.parametrize("last", ["2024-13", "2024-02-30", "2024-05-31T25:00", "31 April 2024", ""])
def test_what_is_no_date_ends_no_time(last: str) -> None:
    with pytest.raises(InputError, match="is not a date; write 2024, 2024-05"):
        dated(last)


def test_a_date_ends_a_time() -> None:
    assert dated("31 May 2024") == "date <= '31 May 2024' or date is null"
    for last in ("2024", "2024-05", "2024-05-31", "2024-05-31T12:00Z"):
        assert dated(last) == f"date <= '{last}' or date is null"


def test_values_of_a_field() -> None:
    record = {"a": {"b": [1, None]}, "a.c": 2, "d": None}
    assert [values_of(record, name) for name in ("a.b", "a.c", "d", "e.f")] == [[1], [2], [], []]


@pytest.fixture
def minutes(tmp_path: Path) -> Path:
    corpus = Corpus.create(tmp_path / "m.quoth")
    corpus.add(
        Document(f"m{year}", "Minutes", f"The chair is {name}, who opened the meeting.", {"date": f"{year}-05-02"})
        for year, name in ((2022, "Ann Baker"), (2023, "Carl Dean"), (2024, "Eve Fox"))
    )
    corpus.add([Document("undated", "Notes", "Nobody was there.")])
    return corpus.path


def test_commands_take_a_condition_and_a_date(minutes: Path, run: Run) -> None:
    def best(*options: str) -> str:
        code, out, error = run("ask", minutes, "Who is the chair?", "--json", *options)
        assert (code, error) == (0, "")
        return str(json.loads(out.splitlines()[0])["text"])

    assert best("--where", "date like '2023%'") == "Carl Dean"
    assert best("--as-of", "2022-12-31") == "Ann Baker"
    assert best("--as-of", "2023", "--where", "date > '2022-06'") == "Carl Dean"
    code, out, _ = run("fill", minutes, "The chair is [MASK].", "--as-of", "2022", "--json", "--max-evidence", "9")
    assert {json.loads(line)["evidence"][0]["document_id"] for line in out.splitlines()} <= {"m2022", "undated"}
    code, out, _ = run("search", minutes, "chair", "--where", "date >= '2024'", "--json")
    assert [json.loads(line)["document_id"] for line in out.splitlines()] == ["m2024"]
    labels = ("--labels", "a=Eve", "--labels", "b=meeting")
    undated = Corpus.create(minutes.parent / "undated.quoth")
    undated.add([Document("u", "Notes", "Nobody chairs.")])
    code, out, _ = run("search", minutes, "Nobody", "--corpus", undated.path, "--as-of", "1999", "--json")
    assert {json.loads(line)["document_id"] for line in out.splitlines()} == {"u", "undated"}
    assert run("classify", minutes, "The chair is", *labels, "--where", "date >= '2024'")[0] == 0
    code, _, error = run("ask", minutes, "Who?", "--where", "dat > '2022'")
    assert code == 2
    assert error == "quoth: where: no document has a field 'dat'; did you mean date?; there are: date, id, title\n"
    assert "'May' is not a date; write 2024, 2024-05" in run("ask", minutes, "Who?", "--as-of", "May")[2]


def test_a_document_has_its_own_id_and_title_whatever_its_metadata(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth")
    facts = {"id": "row", "title": "Theirs"}
    corpus.add([Document("a", "Ours", "One.", facts), Document("b", "", "Two.", facts), Document("c", "", "Three.")])
    found = {test: [each.id for each in corpus.where(test).documents()] for test in ("id = 'a'", "title = 'Ours'")}
    assert found == {"id = 'a'": ["a"], "title = 'Ours'": ["a"]}
    assert [each.id for each in corpus.where("title = 'Theirs'").documents()] == ["b"]
    assert [each.id for each in corpus.where("title = ''").documents()] == ["c"]


def test_fields_and_their_values(records: Corpus) -> None:
    fields = records.fields()
    assert fields["source"] == {"documents": 4, "values": {"minutes": 2, "letters": 1, "O'Neill": 1}}
    assert fields["tags"] == {"documents": 2, "values": {"y": 2, "x": 1, 7: 1}}
    assert fields["by.rank"] == {"documents": 1, "values": {2: 1}}
    assert records.where("year = 2023").fields()["source"] == {"documents": 1, "values": {"minutes": 1}}
