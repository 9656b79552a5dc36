"""Retrieval utility: how likely hidden names, terms and numbers are to a REALM, with and without what it retrieves.

Knows: which phrases are hidden, what is measured of `REALM.likelihood`. Does not know: how a model was trained.
"""

from __future__ import annotations

from math import exp
from statistics import fmean
from sys import maxsize
from typing import Any

from quoth.datasets.blanks import Blank, draw_blanks
from quoth.datasets.judging import answer_rank
from quoth.datasets.questions import QAExample
from quoth.errors import InputError
from quoth_eval.spec import Given, Prepared, TaskSpec
from quoth_eval.task import HITS, Answer, Example, Scores, System, Task, recalls
from quoth_eval.tasks.cloze import over_pages


def _make(given: Given, settings: object) -> Prepared:
    given = over_pages(given)
    corpus = given.one_corpus("utility")
    drawn = draw_blanks(list(corpus.passages()), "content", maxsize, given.seed)
    blanks = [blank for blank in drawn if blank.answer.isascii()][: given.limit]  # a vocabulary may lack other letters
    examples = [
        Example(str(number), blank.text, (blank.answer,), blank, hidden=frozenset({blank.row}))
        for number, blank in enumerate(blanks)
    ]
    return Prepared(
        task=Task(name="utility", examples=examples, judge=_judge, settings=given.settings()),
        asks=lambda name, options: likelihoods(given.open(name, given.corpora, options)),
    )


def likelihoods(model: Any) -> System[Blank]:
    """The nearest passages; whether they make the answer y likelier; p(y|z,x) without a passage and with the one that
    makes y likeliest, p(y|x) with all (REALM, eq. 1 and Table 3); and the utility log p(y|z,x) − log p(y|∅,x) (REALM,
    app. D), its mean over the passages, in nats, which reports show in hundredths. Raises InputError if the model is
    not a REALM."""
    if not hasattr(model, "likelihood"):
        raise InputError(f"not a REALM but {type(model).__name__}; name the folder of a REALM that fills masks")

    def answer(example: Example[Blank]) -> Answer:
        found = model.likelihood(example.text, example.answers[0], passages=HITS, exclude=example.hidden)
        *log_p, alone = (each.log_likelihood for each in found.passages)
        scores = {
            "utility_(nats_/_100)": fmean(log_p) - alone,
            "likelier_with_passages": float(found.log_probability > alone),
            "p_without_a_passage": exp(alone),
            "p_with_the_best": exp(max(log_p)),
            "p_with_all": found.probability,
        }
        return Answer(None, [each.passage for each in found.passages[:-1]], scores)

    return lambda examples: [answer(example) for example in examples]


def _judge(example: Example[Blank], answer: Answer) -> Scores:
    place = answer_rank((each.text for each in answer.passages), QAExample("", "", example.answers))
    return {**recalls("recall", place, (HITS, 1)), **answer.scores}


SPECS = [
    TaskSpec(
        name="utility",
        make=_make,
        form="utility",
        systems=("quoth-realm-base",),
        limit=300,
        takes_files=True,
    )
]
