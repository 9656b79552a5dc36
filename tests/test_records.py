"""Rankings that show themselves: the page of a notebook and the table, with values by hand, and their names in JSON."""

from __future__ import annotations

import re
import sys
import types
from typing import Any

import pytest

from quoth.errors import InputError
from quoth.records import EXCERPT, NOT_FOUND, Evidence, Hit, Hits, Match, Passage, Prediction, Predictions

CONTEXT = "<b>Carmen</b> & Co: an opera by Georges Bizet."
START = CONTEXT.index("Georges")
PLACE = Evidence("d<1>", "Opéra", 7, 100 + START, 100 + START + 13, CONTEXT, 0.5, "arts", 100)


def shown(page: str) -> str:
    return re.sub(r"</?bdi>", "", page)


def test_a_prediction_is_quoted_with_its_phrase_marked_and_nothing_taken_for_markup() -> None:
    page = Predictions([Prediction("Georges Bizet", -1.5, 0.5, (PLACE,))])._repr_html_()
    assert shown(page) == (
        "<ol><li><b>Georges Bizet</b> 50.0 %<blockquote>&lt;b&gt;Carmen&lt;/b&gt; &amp; Co: an opera by "
        f"<mark>Georges Bizet</mark>.<br><small>Opéra · d&lt;1&gt; · characters {100 + START}–{113 + START} · arts"
        "</small></blockquote></li></ol>"
    )
    assert "<bdi>Georges Bizet</bdi>" in page  # a text that runs from right to left does not turn the rest around


def test_how_sure_it_is_is_told_and_further_places_are_counted() -> None:
    page = Predictions([Prediction("Georges Bizet", 0.0, 0.55, (PLACE,) * 5, status="unsure")])._repr_html_()
    assert "<b>Georges Bizet</b> 55.0 % <em>(unsure)</em>" in shown(page)
    assert "no answer was found" not in page
    assert page.count("<blockquote>") == 3
    assert "… and 2 more places" in page
    page = Predictions([Prediction("Verdi", 0.0, 0.02, (PLACE,), status="not_found")])._repr_html_()
    assert page.startswith(f"<p><em>{NOT_FOUND}; what comes nearest:</em></p><ol>")
    assert "(unsure)" not in page
    assert Predictions()._repr_html_() == f"<p><em>{NOT_FOUND}</em></p>"
    answers = Predictions([Prediction("Verdi", 0.0, 0.9, (PLACE,))])
    answers.read_as = "<who>?"
    assert answers._repr_html_().startswith("<p><em>read as: <bdi>&lt;who&gt;?</bdi></em></p><ol>")
    hits = Hits()
    hits.read_as = "who"
    assert (
        hits._repr_html_() == "<p><em>read as: <bdi>who</bdi></em></p><p><em>no passage of the corpus matches</em></p>"
    )
    two_of_twelve = Prediction("Georges Bizet", 0.0, 0.1, (PLACE,) * 2, num_places=12)
    assert "… and 10 more places" in Predictions([two_of_twelve])._repr_html_()
    of_five_blanks = Prediction("a … b … c … d … e", 0.0, 1.0, (PLACE,) * 5, "a b c d e", parts=tuple("abcde"))
    page = Predictions([of_five_blanks])._repr_html_()
    assert (page.count("<blockquote>"), "more place" in page) == (5, False)
    assert (two_of_twelve.to_row()["num_places"], two_of_twelve.to_dict()["num_places"]) == (12, 12)


def test_a_long_context_is_cut_around_the_phrase() -> None:
    before, after = "a" * 1000, "b" * 1000
    place = Evidence("d", "", 0, 1000, 1001, f"{before}x{after}", 1.0)
    page = shown(Predictions([Prediction("x", 0.0, 1.0, (place,))])._repr_html_())
    assert f"<blockquote>…{'a' * EXCERPT}<mark>x</mark>{'b' * EXCERPT}…<br>" in page


def test_a_lone_surrogate_can_be_shown() -> None:
    place = Evidence("d", "", 0, 0, 1, "x\ud800", 1.0)
    page = Predictions([Prediction("x\ud800", 0.0, 1.0, (place,))])._repr_html_()
    assert "<b><bdi>x?</bdi></b>" in page
    assert "<mark><bdi>x</bdi></mark><bdi>?</bdi>" in page


def test_hits_show_the_keys_that_matched() -> None:
    passage = Passage(3, "d", "Carmen", "An opera by Bizet.", 50, 68)
    matches = (Match("Bizet", "Bizet", 62, 67, 0.9), Match("Bizet", "Carmen", 50, 50, 0.8))
    page = shown(Hits([Hit(passage, 1.25, matches)])._repr_html_())
    assert "<b>Carmen</b> 1.250<blockquote>An opera by <mark>Bizet</mark>.<br>" in page
    assert "no passage of the corpus matches" in Hits()._repr_html_()
    assert Hit(passage, 1.25, matches).to_dict() == {
        "score": 1.25,
        "document_id": "d",
        "title": "Carmen",
        "passage": 3,
        "start": 50,
        "end": 68,
        "text": "An opera by Bizet.",
        "metadata": {},
        "matches": [
            {"query": "Bizet", "text": "Bizet", "start": 62, "end": 67, "similarity": 0.9},
            {"query": "Bizet", "text": "Carmen", "start": 50, "end": 50, "similarity": 0.8},
        ],
        "corpus": "",
    }


def test_a_ranking_is_a_list() -> None:
    found = Predictions([Prediction("a", 0.0, 1.0, ())])
    assert found == [Prediction("a", 0.0, 1.0, ())]
    assert isinstance(found, list)


def test_a_ranking_has_the_status_of_its_best() -> None:
    unsure, not_found = (Prediction("a", 0.0, 0.1, (), status=each) for each in ("unsure", "not_found"))
    assert Predictions([unsure, Prediction("b", 0.0, 0.05, ())]).status == "unsure"
    assert Predictions([not_found]).status == "not_found"
    assert Predictions().status == "not_found"
    assert [each.abstained for each in (unsure, not_found, Prediction("b", 0.0, 0.5, ()))] == [True, True, False]


def test_tables_are_pandas_where_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=lambda rows: rows))
    rows: Any = Predictions([Prediction("Bizet", -1.5, 0.5, (PLACE, PLACE)), Prediction("none", -9.0, 0.0, ())])
    first, second = rows.to_pandas()
    assert (first["text"], first["probability"], first["log_score"], first["num_places"]) == ("Bizet", 0.5, -1.5, 2)
    assert (first["document_id"], first["start"], first["corpus"]) == ("d<1>", 100 + START, "arts")
    assert (second["document_id"], second["num_places"]) == (None, 0)
    assert Hits([Hit(Passage(3, "d", "t", "x", 0, 1), 2.0)]).to_pandas()[0]["passage"] == 3
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pandas, which is not installed; pip install pandas"):
        Predictions().to_pandas()


@pytest.mark.parametrize("sequence", ["", "By Bizet."])
def test_json_has_python_s_names_and_the_pipelines_beside(sequence: str) -> None:
    prediction = Prediction("Bizet", -1.5, 0.5, (PLACE,), sequence)
    found = prediction.to_dict()
    assert (found["text"], found["probability"], found["log_score"]) == ("Bizet", 0.5, -1.5)
    assert (prediction.text, prediction.probability, prediction.log_score) == ("Bizet", 0.5, -1.5)
    assert (prediction.score, found["status"], found["abstained"]) == (0.5, "answered", False)
    theirs = {"score": 0.5, "token_str": "Bizet", "sequence": sequence}
    if not sequence:
        theirs = {"score": 0.5, "answer": "Bizet", "start": PLACE.start, "end": PLACE.end}
    assert {name: found[name] for name in theirs} == theirs


def test_a_prediction_is_one_line_and_shows_itself() -> None:
    one = Prediction("Georges\nBizet", -1.5, 0.93449, (PLACE,) * 3, status="unsure", num_places=12)
    line = f"Prediction('Georges\\nBizet', 0.934, 'd<1>'[{PLACE.start}:{PLACE.end}], 12 places, unsure)"
    assert repr(one) == line
    assert repr(Prediction("none", -9.0, 0.0, ())) == "Prediction('none', 0.000)"
    assert repr(Predictions([one, one])) == f"Predictions([\n    {line},\n    {line},\n])"
    assert repr(Predictions()) == "Predictions([])"
    assert one._repr_html_() == Predictions([one])._repr_html_()
