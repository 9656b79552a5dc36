"""What a terminal shows: bars, excerpts around a phrase, and no way for a text to steer the terminal."""

import io
import re
from dataclasses import replace
from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from quoth.cli.render import bar, excerpt, printable, show_facts, show_hits, show_line, show_predictions, show_quote
from quoth.records import Evidence, Hit, Hits, Passage, Prediction, Predictions, Status
from quoth_sources.source_map import encode

CONTEXT = "The church of Hagios Demetrios stands in Thessaloniki, in northern Greece."
START = CONTEXT.index("Thessaloniki")
EVIDENCE = Evidence("demetrios", "Hagios Demetrios", 0, 100 + START, 112 + START, CONTEXT, 0.75, "atlas", 100)
PREDICTION = Prediction("Thessaloniki", -1.0, 0.75, (EVIDENCE, EVIDENCE), "… in Thessaloniki.")


def shown(show: object, *args: object, width: int = 60, colour: bool = False) -> str:
    stream = io.StringIO()
    system = "standard" if colour else None
    console = Console(file=stream, width=width, force_terminal=colour, color_system=system, highlight=False)
    show(console, *args)  # type: ignore[operator]
    return stream.getvalue()


def test_a_bar_is_filled_in_eighths() -> None:
    assert bar(0.0, 4) == "    "
    assert bar(0.5, 4) == "██  "
    assert bar(9 / 32, 4) == "█▏  "
    assert bar(1.0, 4) == bar(7.0, 4) == "████"


def test_an_excerpt_keeps_the_phrase_and_cuts_between_words() -> None:
    text = excerpt(CONTEXT, START, START + 12, 40)
    assert text.plain == "…stands in Thessaloniki, in northern…"
    (span,) = text.spans
    assert text.plain[span.start : span.end] == "Thessaloniki"


def test_an_excerpt_of_a_short_context_is_the_context() -> None:
    assert excerpt(CONTEXT, START, START + 12, 200).plain == CONTEXT


@given(st.text(max_size=60), st.text(min_size=1, max_size=10), st.text(max_size=60), st.integers(20, 80))
def test_an_excerpt_always_holds_the_phrase_and_fits(before: str, phrase: str, after: str, cells: int) -> None:
    text = excerpt(before + phrase + after, len(before), len(before) + len(phrase), cells)
    assert printable(phrase) in text.plain
    assert cell_len(text.plain) <= max(cells, cell_len(printable(phrase)) + 2)


def test_control_characters_never_reach_the_terminal() -> None:
    assert printable("a\x1b[31mred\n\u202eb\ud800") == "a [31mred b\ufffd"


def test_predictions_show_rank_bar_share_source_and_the_other_places() -> None:
    page = shown(show_predictions, "It is in [MASK].", Predictions([PREDICTION]))
    assert "  1  Thessaloniki  ███████████████       75.0 %" in page
    source = f"Hagios Demetrios · demetrios · characters {100 + START}–{112 + START} · atlas"
    assert source in page.replace("\n     │ ", " ")
    assert "… and 1 more place" in page
    assert "\x1b" not in page


@pytest.mark.parametrize(
    ("probability", "said"),
    [(0.0, "0.0 %"), (1e-9, "< 0.1 %"), (0.00099, "< 0.1 %"), (0.001, "0.1 %"), (0.25, "25.0 %"), (1.0, "100.0 %")],
)
def test_a_small_chance_is_not_said_to_be_none(probability: float, said: str) -> None:
    page = shown(show_predictions, "It is in [MASK].", Predictions([Prediction("Rome", -2.0, probability, ())]))
    assert page.rstrip().endswith(f" {said}")


@pytest.mark.parametrize(
    ("status", "probability", "said"),
    [
        ("answered", 0.75, ""),
        ("unsure", 0.55, "  unsure: Rome, 55.0 %\n"),
        ("unsure", 0.0001, "  unsure: Rome, < 0.1 %\n"),
        ("not_found", 0.02, "  no answer was found in the passages that were read; what comes nearest:\n"),
    ],
)
def test_a_terminal_says_how_sure_an_answer_is(status: Status, probability: float, said: str) -> None:
    answers = Predictions([Prediction("Rome", -2.0, probability, (), status=status)])
    page = shown(show_predictions, "It is in [MASK].", answers, width=80)
    assert page.startswith(f"It is in [MASK].\n\n{said}  1  Rome  ")


def test_what_is_all_but_impossible_is_not_listed() -> None:
    chances = {"Rome": 0.9, "Milan": 0.001, "Turin": 0.00099, "Bari": 0.0}
    answers = Predictions(Prediction(text, -2.0, chance, ()) for text, chance in chances.items())
    page = shown(show_predictions, "It is in [MASK].", answers, width=80)
    assert [text in page for text in chances] == [True, True, False, False]
    alone = shown(show_predictions, "It is in [MASK].", Predictions([*answers][2:]), width=80)
    assert ("Turin" in alone, "Bari" in alone) == (True, False)


def test_a_terminal_shows_the_question_that_was_read() -> None:
    answers = Predictions([PREDICTION])
    assert shown(show_predictions, "In wich town?", answers).startswith("In wich town?\n\n  1  ")
    answers.read_as = "In which\x1b town?"
    assert shown(show_predictions, "In wich town?", answers).startswith(
        "In wich town?\nread as: In which town?\n\n  1 "
    )


LONG = "the patron saint of Thessaloniki, a city of the Byzantine Empire that was second only to Constantinople itself"


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_long_answers_and_titles_are_wrapped_in_their_own_column(width: int) -> None:
    answers = Predictions([PREDICTION, Prediction(LONG, -2.0, 0.25, ())])
    page = shown(show_predictions, "It is in [MASK].", answers, width=width).splitlines()
    hits = Hits([Hit(Passage(3, "d", LONG, CONTEXT, 0, 74), 7.25)])
    page += shown(show_hits, "q", hits, width=width).splitlines()
    assert max(map(cell_len, page)) <= width
    assert {line.index(" %") + 2 for line in page if " %" in line} == {cell_len(page[2])}
    for rank, percent in ((2, "25.0 %"), (1, "7.250")):
        first = next(i for i, line in enumerate(page) if f"{rank:3d}  the patron" in line)
        assert percent in page[first]
        more = takewhile(lambda line: line[:5].isspace() and line[5] not in "│ ", page[first + 1 :])
        rows = [page[first][5:].replace(percent, ""), *more]
        assert re.sub(r"[\s█▏▎▍▌▋▊▉]+", " ", " ".join(rows)).strip() == LONG


def test_a_passage_names_its_corpus_if_there_are_several() -> None:
    passage = Passage(3, "d", "Hagios", CONTEXT, 0, 74)
    both = [Hit(passage, 1.0, corpus=name) for name in ("wiki", "news")]
    page = shown(show_hits, "q", Hits(both))
    assert "characters 0–74 · wiki" in page
    assert "characters 0–74 · news" in page
    assert "wiki" not in shown(show_hits, "q", Hits(both[:1]))


def test_a_long_title_is_cut_only_in_a_terminal() -> None:
    assert shown(show_line, "id", LONG, "(1 passage)") == f"id  {LONG}  (1 passage)\n"
    cut = shown(show_line, "id", LONG, "(1 passage)", colour=True)
    assert cell_len(cut.rstrip("\n")) == 60
    assert re.fullmatch(r"id  the patron .*…  \(1 passage\)\n", cut)


def test_a_long_id_leaves_room_for_the_quote() -> None:
    place = replace(EVIDENCE, document_id="x" * 200)
    line = shown(show_quote, place, width=80).rstrip("\n")
    assert cell_len(line) <= 80
    assert "Thessaloniki" in line


def test_the_phrase_is_highlighted_in_a_terminal() -> None:
    assert "\x1b[1;33mThessaloniki\x1b[0m" in shown(show_predictions, "", Predictions([PREDICTION]), colour=True)


def test_a_context_takes_at_most_three_lines() -> None:
    long = "word " * 400
    evidence = Evidence("d", "T", 0, 500, 504, long, 1.0)
    page = shown(show_predictions, "?", Predictions([Prediction("word", 0.0, 1.0, (evidence,))]))
    assert page.count("│") <= 4


def test_a_list_is_shown_in_its_lines() -> None:
    text = "You need:\n- oats\n\n-  an  egg\nBake it."
    evidence = Evidence("d", "T", 0, 100, 100 + text.index("\nBake"), text, 1.0, context_start=100)
    listed = Prediction("You need: - oats - an egg", 0.0, 0.8, (evidence,), parts=("oats", "an egg"))
    lines = shown(show_predictions, "?", Predictions([listed])).splitlines()[2:5]
    assert [line[5:].split("  ")[0] for line in lines] == ["You need:", "- oats", "- an egg"]
    in_one = replace(listed, text="oats and an egg", evidence=(replace(evidence, context="oats and an egg"),))
    assert shown(show_predictions, "?", Predictions([in_one])).splitlines()[2].startswith("  1  oats and an egg ")


def test_markup_in_a_text_is_only_text() -> None:
    evidence = Evidence("[red]", "[/bold]", 0, 0, 6, "[bold] it", 1.0)
    page = shown(show_predictions, "[MASK] [/x]", Predictions([Prediction("[bold]", 0.0, 1.0, (evidence,))]))
    assert "[MASK] [/x]" in page
    assert "[bold] it" in page


def test_nothing_found_is_said() -> None:
    assert shown(show_predictions, "q", Predictions()) == "q\n\n  no answer was found in the passages that were read\n"
    assert "no passage" in shown(show_hits, "q", Hits())


def test_a_hit_shows_the_sentence_that_shares_most_with_the_query() -> None:
    text = f"{LONG}. " * 9 + "The boilers were repaired in May. " + f"{LONG}. " * 9
    page = shown(show_hits, "boiler repair", Hits([Hit(Passage(3, "d", "", text, 0, len(text)), 7.25)]))
    assert "The boilers were repaired" in page
    assert "boilers" not in shown(show_hits, "q", Hits([Hit(Passage(3, "d", "", text, 0, len(text)), 7.25)]))


def test_hits_show_score_source_and_text() -> None:
    page = shown(show_hits, "q", Hits([Hit(Passage(3, "demetrios", "Hagios", CONTEXT, 100, 174), 7.25)]))
    assert "1  Hagios  7.250" in page
    assert "demetrios · characters 100–174" in page
    assert "Thessaloniki" in page


@pytest.mark.parametrize(
    ("element", "told"),
    [
        ("body > main > table > tbody > tr > td:nth-of-type(2)", "d · body > … > tr > td:nth-of-type(2) · characters"),
        ("body > main > ul > li", "d · body > main > ul > li · characters"),
    ],
)
def test_a_path_into_a_web_page_is_told_by_its_ends(element: str, told: str) -> None:
    source_map = encode("element", [(0, 5, element)])
    hit = Hit(Passage(0, "d", "", "Words", 0, 5, source_map=source_map), 1.0)
    assert told in shown(show_hits, "q", Hits([hit]), width=200)


def test_long_facts_are_wrapped_in_a_terminal() -> None:
    facts = [("short", "1"), ("long", LONG)]
    lines = [re.sub("\x1b.*?m", "", line) for line in shown(show_facts, facts, colour=True).splitlines()]
    assert max(map(cell_len, lines)) <= 60
    assert all(line.startswith(" " * 7) for line in lines[2:])
    assert " ".join(line[7:] for line in lines[1:]) == LONG
    assert shown(show_facts, facts) == f"short  1\nlong   {LONG}\n"


def test_facts_stand_in_one_column() -> None:
    assert shown(show_facts, [("a", "1"), ("long", "2")]) == "a     1\nlong  2\n"
