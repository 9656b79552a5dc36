"""How often a checker is wrong: faithful quotations that it refuses, forgeries that it accepts.

Knows quotations, what was said of them, and reports. Does not know who said it, or corpora.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from quoth_eval.quotations.checkers import Checker
from quoth_eval.quotations.drawing import Quotation
from quoth_eval.quotations.faithful import FAITHFUL
from quoth_eval.quotations.forged import FORGED
from quoth_eval.report import Report, Result, Table
from quoth_eval.statistics import Interval, wilson
from quoth_eval.task import Answer, Example, Scores, System, Task

AT_A_TIME = 500
FALSE_ALARM, MISS = "false_alarm", "miss"
ALL = "all"


def quotations_task(quotations: Sequence[Quotation], settings: Mapping[str, Any]) -> Task[Quotation]:
    """Is each quotation accepted? A faithful one that is not is a false alarm, a forgery that is a miss."""
    examples = [
        Example(each.id, each.text, ("faithful" if each.faithful else "forged",), each, {"variant": each.variant})
        for each in quotations
    ]
    return Task(name="quotations", examples=examples, judge=_judge, settings=settings, at_a_time=AT_A_TIME)


def asking(checker: Checker) -> System[Quotation]:
    """A checker as a task asks it."""

    def answer(examples: Sequence[Example[Quotation]]) -> list[Answer]:
        said = checker([example.source for example in examples])
        return [Answer(scores={"accepted": float(each)}) for each in said]

    return answer


def _judge(example: Example[Quotation], answer: Answer) -> Scores:
    accepted = answer.scores["accepted"]
    return {FALSE_ALARM: 1 - accepted} if example.source.faithful else {MISS: accepted}


@dataclass(frozen=True, slots=True)
class Rate:
    """How many quotations were judged wrongly, of how many, and the share with its 95 % interval (Wilson)."""

    wrong: int
    quotations: int
    rate: Interval


def rates(result: Result, measure: str) -> dict[str, Rate]:
    """A checker's rate over all quotations that have the measure, and over those of each variant."""
    total, wrong = Counter[str](), Counter[str]()
    for row in result.rows:
        if measure in row.scores:
            for name in (ALL, row.groups["variant"]):
                total[name] += 1
                wrong[name] += round(row.scores[measure])
    names = [name for name in (ALL, *FAITHFUL, *FORGED) if total[name]]
    return {name: Rate(wrong[name], total[name], wilson(wrong[name], total[name])) for name in names}


def rate_tables(report: Report) -> list[Table]:
    """The false alarms and the misses of all checkers, in percent, by variant; how many sentences each applies to."""
    tables = []
    for measure, title in ((FALSE_ALARM, "faithful, refused"), (MISS, "forged, accepted")):
        by_system = [rates(result, measure) for result in report.systems]
        rows = [
            [name, f"{rate.quotations:,}", *(str(each[name].rate) for each in by_system)]
            for name, rate in by_system[0].items()
        ]
        tables.append(([title, "quotations", *(result.name for result in report.systems)], rows))
    return tables


def as_record(report: Report) -> dict[str, Any]:
    """The settings and all rates, as JSON has them."""
    systems = []
    for result in report.systems:
        told = {
            measure: {name: asdict(rate) for name, rate in rates(result, measure).items()}
            for measure in (FALSE_ALARM, MISS)
        }
        systems.append({"name": result.name, "quotations_per_second": result.per_second, **told})
    return {"task": report.task, **report.settings, "systems": systems}
