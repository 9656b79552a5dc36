"""Texts in other encodings than UTF-8: which are read, exactly as what, and which are refused."""

import csv
import gzip
import hashlib
import io
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from quoth import Corpus
from quoth.corpus.documents import read_documents
from quoth.errors import FileWarning, InputError
from quoth_sources import limits
from quoth_sources.files import UTF_8, UTF_16, decode, encoding_of

SHARED_FOLDER = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
FRENCH = "L'été dernier, le garçon – très fatigué – a dit « voilà » à Besançon; cela coûte 5 €, l’œuvre aussi."
TEXTS = {
    "cp1252": [
        FRENCH,
        "Some notes: the café opens at nine.",
        "It’s a test of “smart” quotes – nothing else. The author’s note.",
        "It was 5° outside, and cost £3.",
        "Die Straße führt über die Brücke nach Köln. Übermäßig schöne Gärten.",
        "¿Dónde está el niño? Mañana será otro día en España, señor.",
        "Það er kalt á Íslandi, sagði Þórður við Ægi.",
        "café",
    ],
    "cp1250": ["Zażółć gęślą jaźń. Książka została napisana w Łodzi.", "Příliš žluťoučký kůň úpěl ďábelské ódy."],
    "cp1251": ["Москва является столицей России.", "Привет, мир"],
    "koi8_r": ["Москва является столицей России. Население города составляет тринадцать миллионов человек."],
    "cp1253": ["Η Θεσσαλονίκη είναι η δεύτερη μεγαλύτερη πόλη της Ελλάδας."],
    "cp1254": ["Türkiye'nin başkenti Ankara'dır; şehrin nüfusu beş milyondan fazladır. İstanbul ise ığdır."],
    "cp1255": ["ירושלים היא בירת ישראל והעיר הגדולה ביותר בה."],
    "cp1256": ["القاهرة هي عاصمة مصر وأكبر مدنها من حيث عدد السكان."],
    "cp932": ["東京は日本の首都であり、世界最大の都市圏の一つです。"],
    "euc_jp": ["東京は日本の首都であり、世界最大の都市圏の一つです。人口は約千四百万人です。"],
    "gb18030": ["北京是中华人民共和国的首都，人口超过两千万。"],
    "big5": ["臺北市是中華民國的首都，人口約二百五十萬人。"],
    "cp949": ["서울은 대한민국의 수도이며 인구는 약 천만 명이다."],
}
SPELLED = bytes(code if code not in b"\0\x81\x8d\x8f\x90\x9d" else 0xA4 for code in range(256))
NOISE = b"\xff" + hashlib.shake_128(b"noise").digest(500).translate(SPELLED)
CP1252 = "".join(chr(code) for code in range(0xA0, 0x100)) + "€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"


@pytest.mark.parametrize(("encoding", "text"), [(name, text) for name, texts in TEXTS.items() for text in texts])
def test_a_language_is_recognised_by_what_it_spells(encoding: str, text: str) -> None:
    assert decode(text.encode(encoding)) == (text, encoding)
    long = "Plain words, and nothing else.\n" * 40_000 + text  # no sample taken at fixed places would see the last line
    assert decode(long.encode(encoding)) == (long, encoding)


def test_what_spells_nothing_is_read_if_nearly_all_of_it_is_ascii() -> None:
    odd = "ÿþÐ¤×ÖØÞßÆ, which no language spells"
    text = f"Plain words in a row, and then {odd}; more plain words follow here."
    assert decode(text.encode("cp1252")) == (text, "cp1252")
    with pytest.raises(ValueError, match="binary"):
        decode(odd.partition(",")[0][1:].encode("cp1252") * 5)


def test_the_whole_text_must_fit_not_only_its_sample() -> None:
    cafes = "Some notes: the café opens at nine.\n" * 3000  # more than the sample, which fits cp1252 and cp1250 alike
    assert decode((cafes + "Ťahanovce").encode("cp1250")) == (cafes + "Ťahanovce", "cp1250")


def test_what_is_certain_is_not_guessed() -> None:
    assert decode(FRENCH.encode()) == decode(b"\xef\xbb\xbf" + FRENCH.encode()) == (FRENCH, UTF_8)
    assert decode(b"a\0b") == ("a\0b", UTF_8)
    for name, bom in (("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")):
        assert decode(bom + FRENCH.encode(name)) == (FRENCH, UTF_16)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("One é, two é, three é: ".encode() + b"\xe9 is damaged", r"^not UTF-8 at byte 26$"),
        (b"\xff\xfea\0b", r"^not UTF-16 at byte 4$"),
        (FRENCH.encode("utf-16-le"), r"not recognised: byte 1 is NUL$"),
        ("Plain words".encode("utf-16-le"), r"not recognised: character 1 is NUL$"),
        (b"\xff\xfe" + "ab\0c".encode("utf-16-le"), r"not recognised: character 2 is NUL$"),
        (FRENCH.encode("utf-32"), r"not recognised: character 0 is NUL$"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n\0", r"not recognised: byte 15 is NUL$"),
        (NOISE, r"^binary, .* not recognised: not UTF-8 at byte 0$"),
    ],
)
def test_what_cannot_be_decoded_is_refused_with_its_place(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode(content)
    (tmp_path / "a.txt").write_bytes(content)
    (tmp_path / "b.txt").write_text("good")
    with pytest.raises(InputError, match=r"a\.txt: .* (byte|character) \d+.*--skip-bad"):
        list(read_documents(tmp_path))
    errors: list[InputError] = []
    assert [each.id for each in read_documents(tmp_path, skip_bad=True, on_bad=errors.append)] == ["b.txt"]
    assert len(errors) == 1


def test_a_guess_is_told_once_per_file(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_bytes(FRENCH.encode("cp1252"))
    (tmp_path / "b.txt").write_bytes(FRENCH.encode())
    (tmp_path / "c.txt").write_bytes(FRENCH.encode("utf-16"))
    (tmp_path / "sub" / "d.csv.gz").write_bytes(gzip.compress(f'text\n"{FRENCH}"\n"{FRENCH}"\n'.encode("cp1252")))
    with pytest.warns(FileWarning) as told:
        documents = list(read_documents(tmp_path))
    assert [str(each.message) for each in told] == ["a.txt is read as cp1252", "sub/d.csv.gz is read as cp1252"]
    assert [each.id for each in documents] == ["a.txt", "b.txt", "c.txt", "d-2", "d-3"]
    assert {each.text for each in documents} == {FRENCH}


def read(file: Path) -> tuple[str, list[str]]:
    """The text of a file, and what was said of it."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        (document,) = read_documents(file)
    return document.text, [str(each.message) for each in told]


ENGLISH = "The café serves coffee, and the author’s house in the next street is open all day on Sundays. "


@settings(SHARED_FOLDER, max_examples=25)
@given(st.text(st.sampled_from(CP1252) | st.characters(min_codepoint=32, max_codepoint=126), max_size=20))
def test_any_text_of_an_old_encoding_is_read_and_its_offsets_hold(tmp_path: Path, drawn: str) -> None:
    content = f"{ENGLISH}{drawn} {ENGLISH}".encode("cp1252")
    (tmp_path / "a.txt").write_bytes(content)
    text, (told,) = read(tmp_path / "a.txt")
    assert text == content.decode(told.removeprefix("a.txt is read as "))
    with warnings.catch_warnings(action="ignore"):
        corpus = Corpus.create(tmp_path / f"{len(list(tmp_path.iterdir()))}.quoth", splitter="fixed:7")
        corpus.add(read_documents(tmp_path / "a.txt"))
    for passage in corpus.passages():
        assert passage.text == text[passage.start : passage.end]
    assert corpus.document("a.txt").text == text


@settings(SHARED_FOLDER, derandomize=True)  # an encoding is guessed, so that a few of these texts are read as another
@example([TEXTS["cp1252"][3], *[TEXTS["cp1252"][4]] * 3], "cp1252")
@given(st.lists(st.sampled_from(TEXTS["cp1252"][:6]), min_size=1), st.sampled_from(["cp1252", "latin-1"]))
def test_sentences_of_western_languages_round_trip(tmp_path: Path, sentences: list[str], encoding: str) -> None:
    text = " ".join(sentences)
    content = text.encode(encoding, "ignore")
    (tmp_path / "a.txt").write_bytes(content)
    assert read(tmp_path / "a.txt")[0] == content.decode(encoding)


@SHARED_FOLDER
@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0")), st.sampled_from(["le", "be"]))
def test_utf_16_round_trips(tmp_path: Path, text: str, order: str) -> None:
    (tmp_path / "a.txt").write_bytes(f"\ufeff{text}".encode(f"utf-16-{order}"))
    assert read(tmp_path / "a.txt") == (text, [])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_tables_of_any_size_are_read_alike(tmp_path: Path, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HEAD", 50)
    rows = [(str(number), f'{FRENCH} "{number}"\r\nand\nmore') for number in range(40)]
    stream = io.StringIO(newline="")
    csv.writer(stream).writerows([("id", "text"), *rows])
    (tmp_path / "a.csv").write_bytes(stream.getvalue().encode(encoding))
    with warnings.catch_warnings(action="ignore"):
        assert [(each.id, each.text) for each in read_documents(tmp_path / "a.csv")] == rows


@pytest.mark.parametrize("head", range(16, 24))
def test_the_beginning_of_a_table_ends_with_a_line(tmp_path: Path, head: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HEAD", head)
    (tmp_path / "a.csv").write_text("id,text\n1,words 漢字\n2,more\n", encoding="utf-8")
    assert [each.text for each in read_documents(tmp_path / "a.csv")] == ["words 漢字", "more"]


def test_a_table_that_is_not_what_it_began_as_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HEAD", 50)
    content = "id,text\n1,some words that are longer than the head\n2,two\n"
    (tmp_path / "a.csv").write_bytes(content.encode("utf-16") + b"\x00\xd8a\x00")  # half of a surrogate pair
    with pytest.raises(InputError, match=r"a\.csv: not UTF-16"):
        list(read_documents(tmp_path / "a.csv"))
    (tmp_path / "b.csv").write_bytes(content.encode() + b"3,caf\xe9\n")
    with pytest.raises(InputError, match=r"b\.csv:4: text is not valid Unicode at character 3"):
        list(read_documents(tmp_path / "b.csv"))
    assert encoding_of(b"3,caf\xe9\n") == "cp1252"
