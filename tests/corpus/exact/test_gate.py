"""The verdicts on quotations: each by hand, and by properties: what keeps the words is faithful, what changes one is
not."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quoth import Corpus, Document, Verdict
from quoth.corpus.exact.changed import Status, compared
from quoth.corpus.exact.gate import MOST_APART, Judge
from quoth.corpus.exact.nearest import MOST_CHARACTERS

FILLING = "Nothing of interest was said about any of it for a long while. " * 50
LEASE = (
    "The landlord is not permitted to enter the premises without the consent of the tenant, except in an emergency. "
    "The mill opened in 1998³ and holds 10⁶ litres at −5 degrees, for $5 million. He said: “I can't agree with the "
    "ﬁrst ofﬁcial proposal of the US government.” The co-\nordination failed. The rent is 10.5 tons of wheat,[12] paid "
    "each year in the month of May 2014 by the tenant*. Is it true that he lied? In 1863 the well-known mayor John "
    "Miller may have paid 40 % of it. " + FILLING + "The tenant shall leave the garden as it was found."
)
TEXTS = {
    "lease": LEASE,
    "carmen": "Carmen is an opera in four acts by Georges Bizet. It was first given in Paris in 1875 and failed.",
    "genji": "源氏物語は平安時代中期に成立した日本の長編物語である。",
    "brackets": "The list says [the court] and more … and so on, in the source itself.",
}


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    made = Corpus.create(tmp_path_factory.mktemp("gate") / "texts.quoth", splitter="words:30")
    made.add(Document(name, name.title(), text) for name, text in TEXTS.items())
    return Judge([made])


CASES: list[tuple[Status, str]] = [
    ("verbatim", "The landlord is not permitted to enter the premises"),
    ("verbatim", "The landlord is not\n permitted to  enter the premises"),
    ("verbatim", "without the consent of the tenant,"),
    ("verbatim", "Is it true that he lied?"),
    ("verbatim", "長編物語である"),
    ("verbatim", "The list says [the court] and more … and so on"),
    ("verbatim", "opened in 1998³ and holds 10⁶ litres"),
    ("typographic", "the landlord is not permitted to enter the premises"),
    ("typographic", "[t]he landlord is not permitted to enter the premises"),
    ("typographic", "The landlord is not permitted to enter the premises,"),
    ("typographic", "The land\u00adlord is not per-\nmitted to enter the premises."),
    ("typographic", "I can’t agree with the first official proposal of the US government,"),
    ("typographic", "The coordination failed"),
    ("typographic", "opened in 1998 and holds 10⁶ litres"),  # without the mark of the note
    ("typographic", "tons of wheat, paid each year in the month"),
    ("typographic", "by the tenant. Is it true"),
    ("typographic", "at -5 degrees, for $5 million"),
    ("typographic", "the wellknown mayor John Miller may have paid 40% of it"),
    ("elided", "The landlord is not permitted to enter … except in an emergency."),
    ("elided", "The landlord is not permitted [...] without the consent . . . except in an emergency"),
    ("elided", "the rent is 10.5 tons of wheat, […] by the tenant"),  # and without the marks of notes
    ("typographic", "… is not permitted to enter the premises …"),  # nothing inside is left out
    ("typographic", "... is not permitted to enter the premises ..."),
    ("elided", "[The owner] is not permitted to enter the premises"),
    ("elided", "The landlord is not permitted to enter [her] premises"),
    ("elided", "The landlord is not permitted [sic] to enter the premises"),
    ("altered", "The landlord is permitted to enter the premises without the consent"),
    ("altered", "The landlord is … permitted to enter the premises without the consent"),
    ("altered", "The landlord is [clearly] permitted to enter the premises"),
    ("altered", "the consent of the tenant, except in [no] emergency"),
    ("altered", "The landlord is not permitted to enter … with the consent of the tenant, except"),
    ("altered", "The tenant shall leave … the premises without the consent of the tenant"),  # in another order
    ("altered", "The rent is 10.5 tons of wheat … The tenant shall leave the garden as it was found"),  # too far apart
    ("altered", "It … was not … permitted … to enter"),  # parts of a word or two
    ("altered", "The mill opened in 1998³ and holds 106 litres"),
    ("altered", "The mill opened in 1998³ and holds 10"),
    ("altered", "and holds 10⁶ litres at 5 degrees"),
    ("altered", "5 degrees, for $5 million"),
    ("altered", "at −5 degrees, for €5 million"),
    ("altered", "5 million. He said"),
    ("altered", "He said: “I can"),
    ("altered", "the first official proposal of the us government"),
    ("altered", "5 tons of wheat"),
    ("altered", "John Miller may have paid 40"),
    ("altered", "John Miller [has] paid 40 % of it, in the end"),
    ("altered", "[50] % of it. Nothing of interest"),
    ("altered", "known mayor John Miller may have paid"),
    ("altered", "Is it true that he lied."),
    ("altered", "by the tenant! Is it true"),
    ("altered", "Carmen is an opera in four acts. The rent is 10.5 tons of wheat"),
    ("altered", "Carmen is an opera in five acts"),
    ("altered", "It was given first in Paris in 1875"),
    ("altered", "Carmen is an opera in four acts by Georges Bizet. The rent is 10.5 tons of wheat paid each year"),
    ("altered", "平安時代後期に成立した日本の長編物語"),
    ("absent", "zebras and quaggas have stripes"),
    ("absent", "…"),
]


NUMBERS = (
    "In all 5 000 000 people and 5’000 francs, 10–20 per cent, a ratio of 3:1, 10/12 of it; of 10^6 and 2ⁿ units "
    "(a + b)² is one, 60 meters² another, as (Miller 1990)³ says. The owner is not obliged to pay the rent. He thought "
    "somebody had killed an elk; meanwhile his cousin’s wife slept. It is[not] easy for us[a] to pay[12] all. The door "
    "is shut in summer at 3 1/2 by 70 km/h. Call `make all` before the test of “C89” by Act "
    "95/46/EC, and 'B 52' is 5' high."
)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    made = Corpus.create(tmp_path_factory.mktemp("numbers") / "made")
    made.add([Document("numbers", "", NUMBERS)])
    return Judge([made])


@pytest.mark.parametrize(
    ("status", "text"),
    [
        *(
            ("altered", part)
            for part in ("In all 5", "In all 5 000", "000 people and", "people and 5", "000 francs, 10–20")
        ),
        *(("altered", part) for part in ("francs, 10", "20 per cent, a ratio", "a ratio of 3", "1, 10/12 of it")),
        *(("altered", part) for part in ("12 of it", "3:1, 10", "of it; of 10", "of it; of 10^", "10^6 and 2n units")),
        *(("altered", part) for part in ("2ⁿ units (a + b) is one", "is one, 60 meters another", "is one, 60 meters")),
        ("typographic", "of it; of 10⁶ and 2ⁿ units"),
        ("typographic", "another, as (Miller 1990) says"),
        ("elided", "The owner is not obliged to … the rent"),
        ("altered", "The owner is … summer"),  # too far apart for a part of one word
        ("altered", "The owner is [] obliged to pay the rent"),
        ("altered", "The owner [is] obliged to pay the rent"),
        ("elided", "The owner [was] not obliged to pay the rent"),
        ("altered", "He [had] killed [in cold blood] his [own] wife"),
        ("typographic", "The owner is not obli- ged to pay the rent"),
        ("altered", "The owner is obli- ged to pay the rent"),
        ("typographic", "The owner² is not obliged⁴ to pay the rent"),
        ("altered", "The owner² is obliged⁴ to pay the rent"),
        ("altered", "one, 60² meters² another"),
        *(("altered", part) for part in ("in summer at 3", "1/2 by 70 km/h", "1/2 by 70 km")),
        ("typographic", "the test of ‘C89’ by"),
        ("typographic", "and “B 52” is"),
        ("altered", "is 5″ high"),
        ("verbatim", "by Act 95/46"),
        ("typographic", "easy for us to pay all"),
        ("typographic", "Call make all before the test"),
        ("typographic", "Call make `all` before the test"),
        ("altered", "Call make `any` before the test"),
        ("typographic", "The owner is `not` obliged"),
        ("altered", "It is easy for us to pay all"),
    ],
)
def test_no_part_of_a_number_and_no_words_from_here_and_there(numbers: Judge, status: Status, text: str) -> None:
    assert numbers(text).status == status


@pytest.mark.parametrize(("status", "text"), CASES)
def test_each_verdict(judge: Judge, status: Status, text: str) -> None:
    found = judge(text)
    assert found.status == status, found.changes
    assert bool(found.evidence) is (status != "absent")
    assert bool(found.changes) is (status in ("altered", "elided"))
    for place in found.evidence:
        assert TEXTS[place.document_id][place.start : place.end] in place.context
    for change in found.changes:
        assert text[change.start : change.end] == change.quoted
        if change.document_id:
            source = TEXTS[change.document_id][change.source_start : change.source_end]
            assert source.strip() == change.source.strip()


@pytest.mark.parametrize(
    ("text", "kind", "quoted", "source", "concerns"),
    [
        ("The landlord is permitted to enter the premises", "missing", "", "not", "negation"),
        ("John Miller has paid 40 % of it", "changed", "has", "may have", "modal"),
        ("John Smith may have paid 40 % of it", "changed", "Smith", "Miller", "name"),
        ("in the month of June 2014 by the tenant", "changed", "June", "May", "date"),
        ("given in Paris in 1876 and failed", "changed", "1876", "1875", "date"),
        ("holds 10⁵ litres at −5 degrees", "changed", "⁵", "⁶", "number"),
        ("for £5 million", "changed", "£", "$", "sign"),
        ("proposal of the us government", "changed", "us", "US", "case"),
        ("the landlord is, not permitted to enter", "added", ",", "", "punctuation"),
        ("enter the house without the consent of the tenant", "changed", "house", "premises", "word"),
    ],
)
def test_what_was_changed_is_told_loudly(
    judge: Judge, text: str, kind: str, quoted: str, source: str, concerns: str
) -> None:
    changes = {(each.kind, each.quoted, each.source): each for each in judge(text).changes}
    found = changes[kind, quoted, source]
    assert concerns in found.concerns
    assert found.is_loud is (concerns not in ("case", "punctuation", "word"))
    assert len(changes) == 1


def test_an_ellipsis_and_brackets_say_what_they_stand_for(judge: Judge) -> None:
    found = judge("[the owner] is not permitted to enter … of the tenant")
    [inserted, omitted] = found.changes
    assert (inserted.kind, inserted.quoted) == ("replaced", "[the owner]")
    assert (omitted.kind, omitted.source) == ("omitted", "the premises without the consent")
    assert [(each.start, each.end) for each in found.evidence] == [(13, 38), (72, 85)]
    [replaced] = judge("The landlord is not permitted to enter [her] premises").changes
    assert (replaced.kind, replaced.quoted, replaced.source) == ("replaced", "[her]", "the")


EDGES = """The court found that he was not guilty of theft. Nobody in the village objected to the plan.
The fee for a day is 50 dollars a head. The board did not approve the merger. Everybody in the town agreed to it.
He lived in the 1990s¹ and died in Rome. Суд не признал его виновным в краже."""


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("The court found that he was [guilty]", "altered"),
        ("found that he was … [guilty]", "altered"),
        ("[Everybody] in the village objected to the plan", "altered"),
        ("… [everybody] in the village objected to the plan", "altered"),
        ("[No one] in the town agreed to it", "altered"),
        ("The board did [approve the merger]", "altered"),
        ("The fee for a day is [300 dollars]", "altered"),
        ("Суд … признал его виновным", "altered"),
        ("The court found that he was [not guilty]", "elided"),
        ("The board did not approve the merger [sic]", "elided"),
        ("The board did not approve [it]", "elided"),
        ("[All] in the town agreed to it", "elided"),
        ("Everybody in the town agreed [emphasis added]", "elided"),
        ("[N]obody in the village objected", "typographic"),
        ("He lived in the 1990s and died in Rome", "typographic"),
    ],
)
def test_what_stands_at_an_end_says_what_the_words_beside_it_say(tmp_path: Path, text: str, status: Status) -> None:
    made = Corpus.create(tmp_path / "c.quoth")
    made.add([Document("d", "", EDGES)])
    assert Judge([made])(text).status == status


def test_one_ellipsis_leaves_out_no_more_than_is_said(tmp_path: Path) -> None:
    made = Corpus.create(tmp_path / "c.quoth")
    for number, extra in enumerate((0, 1)):
        filling = "x" * (MOST_APART - 2 + extra)
        made.add([Document(f"{number}", "", f"Part one of {number} is here {filling} and part two of it follows.")])
    judge = Judge([made])
    assert judge("Part one of 0 is here … and part two of it").status == "elided"
    assert judge("Part one of 1 is here … and part two of it").status == "altered"


def test_a_long_quotation_is_compared_in_pieces(judge: Judge) -> None:
    assert judge(LEASE[:MOST_CHARACTERS] + LEASE[MOST_CHARACTERS:]).status == "verbatim"
    found = judge(LEASE.replace("10.5", "11.5"))
    assert [(each.quoted, each.source) for each in found.changes] == [("11.5", "10.5")]
    assert len(LEASE) > MOST_CHARACTERS


def test_differences_of_words_in_order() -> None:
    changes, common = compared("one two four three", 10, "one two three four", 20, "d")
    assert {each.kind for each in changes} == {"moved"}
    assert common in (pytest.approx(10 / 15), pytest.approx(11 / 15))  # without "three", or without "four"
    assert compared("A b", 0, "a b", 0, "d").changes == []
    assert [each.concerns for each in compared("a B", 0, "a b", 0, "d").changes] == [("case",)]


SENTENCES = [
    "The first official report of 1875 confirmed that the affair wasn't finished, and 36 witnesses were not heard.",
    "Every afflicted family received about 40 pounds of flour; nobody refused the offer of the “old” mayor.",
    "In the difficult winter of 1921 the office of the governor might have fled to Kraków, some said.",
    "Half of the coffee (roughly 12.5 tons) is never roasted here – it flows to the coast and is sold raw.",
]
Variant = Callable[[str, random.Random], str | None]


def _word(text: str, rng: random.Random, change: Callable[[str], str], least: int = 5) -> str | None:
    words = text.split(" ")
    able = [at for at in range(1, len(words) - 1) if words[at].isalpha() and len(words[at]) >= least]
    at = rng.choice(able)
    words[at] = change(words[at])
    return " ".join(words)


def _elided(text: str, rng: random.Random) -> str:
    words = text.split(" ")
    first = rng.randrange(4, len(words) - 7)
    last = rng.randrange(first + 3, len(words) - 3)  # of one or two words left out one may have been a negation
    return " ".join([*words[:first], rng.choice(["…", "...", "[…]", "[...]", ". . ."]), *words[last:]])


FAITHFUL: dict[str, Variant] = {
    "soft hyphen": lambda text, rng: _word(text, rng, lambda word: f"{word[:3]}\u00ad{word[3:]}"),
    "line end": lambda text, rng: _word(text, rng, lambda word: f"{word[:3]}-\n{word[3:]}"),
    "ligature": lambda text, _: text.replace("ffi", "ﬃ").replace("fi", "ﬁ").replace("fl", "ﬂ").replace("ff", "ﬀ"),
    "marks": lambda text, _: text.replace("“", '"').replace("”", '"').replace("'", "’"),
    "spaces": lambda text, rng: text.replace(" ", rng.choice(["\n", "\u00a0", "  "]), rng.randrange(1, 5)),
    "NFD": lambda text, _: unicodedata.normalize("NFD", text),
    "bracket": lambda text, _: f"[{text[0].swapcase()}]{text[1:]}",
    "first letter": lambda text, _: text[0].swapcase() + text[1:],
    "comma": lambda text, _: f"{text[:-1]},",
    "no stop": lambda text, _: text[:-1],
    "ellipsis": _elided,
    "dash": lambda text, _: text.replace(" – ", "—"),
}


def _digit(text: str, rng: random.Random) -> str:
    at = rng.choice([at for at, each in enumerate(text) if each.isdecimal()])
    return f"{text[:at]}{(int(text[at]) + rng.randrange(1, 10)) % 10}{text[at + 1 :]}"


def _dropped(text: str, rng: random.Random) -> str:
    words = text.split(" ")
    able = [at for at in range(1, len(words) - 1) if any(map(str.isalnum, words[at]))]
    del words[rng.choice(able)]
    return " ".join(words)


def _swapped(text: str, rng: random.Random) -> str:
    words = text.split(" ")
    at = rng.randrange(1, len(words) - 1)
    words[at - 1], words[at] = words[at], words[at - 1]
    return " ".join(words)


def _half(text: str, rng: random.Random) -> str:
    words, others = text.split(" "), rng.choice([each for each in SENTENCES if each != text]).split(" ")
    return " ".join([*words[: len(words) // 2], *rng.choice([[], ["…"]]), *others[len(others) // 2 :]])


def _replaced(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        text = text.replace(old, new)
    return text


FORGED: dict[str, Variant] = {
    "digit": _digit,
    "dropped": _dropped,
    "swapped": _swapped,
    "half": _half,
    "negation": lambda text, _: _replaced(
        text, ("n't", ""), ("never ", ""), ("nobody", "everybody"), ("might", "must")
    ),
    "capital": lambda text, rng: _word(text, rng, str.upper),
}


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    made = Corpus.create(tmp_path_factory.mktemp("gate") / "sentences.quoth")
    for number, text in enumerate(SENTENCES):
        made.add([Document(f"{number}", "", f"{FILLING[:200]} {text} {FILLING[:100]}")])
    return Judge([made])


@settings(max_examples=150, deadline=None)
@given(
    text=st.sampled_from(SENTENCES),
    names=st.sets(st.sampled_from([*FAITHFUL]), max_size=3),
    seed=st.integers(0, 999),
)
def test_faithful_variants_are_accepted(sentences: Judge, text: str, names: set[str], seed: int) -> None:
    rng, made = random.Random(seed), text
    for name in sorted(names - ({"bracket"} if "first letter" in names else set())):
        made = FAITHFUL[name](made, rng) or made
    found = sentences(made)
    assert found.is_faithful, (made, found)
    assert {place.document_id for place in found.evidence} == {f"{SENTENCES.index(text)}"}


@settings(max_examples=200, deadline=None)
@given(
    text=st.sampled_from(SENTENCES),
    forged=st.sampled_from([*FORGED]),
    faithful=st.sampled_from(["marks", "spaces", "NFD", "comma", "no stop"]),
    seed=st.integers(0, 9999),
)
def test_forgeries_never_are(sentences: Judge, text: str, forged: str, faithful: str, seed: int) -> None:
    rng = random.Random(seed)
    made = FORGED[forged](text, rng)
    if made in (None, text):
        return
    found: Verdict = sentences(FAITHFUL[faithful](str(made), rng) or str(made))
    assert found.status in ("altered", "absent"), (made, found)
