"""What is shown of a text: the unit that answers, a sentence or an item with those beside it that answer too.

Knows: which pieces a passage's blocks have, how a network's marks of evidence make units of them. Does not know:
networks, or how passages were found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log
from typing import NamedTuple

import numpy as np

from quoth.answers.evidence import Source, Spans, chance, evidence_in, log_odds, odds_of, quote
from quoth.reader.config import ReaderConfig
from quoth.records import Passage, Sentence
from quoth.text.boundaries import surface_group
from quoth.text.passages import whole_sentences
from quoth_sources.blocks import UNREAD

BESIDE = 0.35
"""A piece is shown along with the best one beside it if it has this share of its evidence."""
LONGEST = 700
"""Characters of a unit of several pieces."""
ITEM = 400
"""A longer item is cut into its sentences."""
RAREST = 1e-3
"""The share of spans below which it makes no difference to a unit's chance."""
_LEAST = 1e-6
Share = Callable[[int, int, int], float]
"""Of a passage, by its number, and two of its characters: the share of all odds that spans between them have."""


class Piece(NamedTuple):
    """Characters of a passage's text that are shown as a whole: a sentence, an item, a row; `heads` if a heading."""

    start: int
    end: int
    heads: bool = False


def pieces(passage: Passage) -> list[Piece]:
    """The pieces of a passage, in order."""
    found = []
    for block in passage.blocks:
        start, end = block.start - passage.start, block.end - passage.start
        if block.kind in UNREAD:
            continue
        is_whole = block.kind in ("heading", "row", "term") or (block.kind == "item" and end - start <= ITEM)
        cuts = [(0, end - start)] if is_whole else whole_sentences(passage.text[start:end])
        found += [Piece(start + a, start + b, block.kind == "heading") for a, b in cuts]
    return found


def answer_units(read: Sequence[Source], spans: Sequence[Spans], config: ReaderConfig, most: int = 3) -> list[Sentence]:
    """The `most` units of the passages that were read, best first."""
    return [unit for unit, _ in judged_units(read, spans, config, most)]


def judged_units(
    read: Sequence[Source], spans: Sequence[Spans], config: ReaderConfig, most: int
) -> list[tuple[Sentence, tuple[float, ...]]]:
    """As `answer_units`, each with what its chance goes by.

    A piece's evidence is the mean over its tokens of their probability of being evidence; of a reader that scores none,
    the share of the spans in the piece among all. Its score is the sum, by `unit_weights`, of the log of that, its
    passage's relevance, its passage's relevance in the search and the log of the share of the spans. The best piece
    makes a unit with its neighbours that have `BESIDE` of its evidence. The probability is the logistic function of
    `sentence_calibration` · `_known`; without these weights the evidence.
    """
    share = shares(read, spans, config.prior)
    parts, evidence, features = measured(read, spans, share)

    def score(n: int, at: int) -> float:
        return sum(weight * each for weight, each in zip(config.unit_weights, features[n][at], strict=False))

    scored = [(score(n, at), -n, -at) for n, part in enumerate(parts) for at, each in enumerate(part) if not each.heads]
    taken: set[tuple[int, int]] = set()
    units = dict[int, tuple[Sentence, tuple[float, ...]]]()
    for n, at in ((-n, -at) for _, n, at in sorted(scored, reverse=True)):
        if len(units) == most:
            break
        if (n, at) in taken:
            continue
        members = {(n, each) for each in _grown(parts[n], evidence[n], at)}
        members = members if members.isdisjoint(taken) else {(n, at)}
        taken |= members
        first, last = (parts[n][each(members)[1]] for each in (min, max))
        known = _known(read[n], spans[n], evidence[n][at], share(n, first.start, last.end))
        weights = config.sentence_calibration
        probability = evidence[n][at] if weights is None else chance(weights, known)
        unit = _shown(read[n], spans[n], first.start, last.end, probability)
        units.setdefault(surface_group(unit.text), (unit, known))
    return [*units.values()]


def measured(
    read: Sequence[Source], spans: Sequence[Spans], share: Share
) -> tuple[list[list[Piece]], list[list[float]], list[list[tuple[float, ...]]]]:
    """The pieces of each passage; the evidence in each; what its score goes by, in the order of `unit_weights`."""
    parts = [pieces(source.passage) for source in read]
    evidence, features = list[list[float]](), list[list[tuple[float, ...]]]()
    for n, (source, part, found) in enumerate(zip(read, parts, spans, strict=True)):
        own = [share(n, each.start, each.end) for each in part]
        if found.marks is None:
            evidence.append(own)
            features.append([(log(max(each, _LEAST)),) for each in own])
            continue
        evidence.append([evidence_in(found, each.start, each.end) for each in part])
        features.append(
            [
                (log(mean), found.relevance, source.relevance, log(max(each, RAREST)))
                for mean, each in zip(evidence[n], own, strict=True)
            ]
        )
    return parts, evidence, features


def _known(source: Source, found: Spans, evidence: float, share: float) -> tuple[float, ...]:
    """What the chance that a unit answers goes by: 1; the log odds of its evidence; and, if the reader scores it, its
    passage's relevance, the passage's relevance in the search, and the log odds of the share of spans in the unit."""
    own = (1.0, log_odds(evidence))
    return own if found.marks is None else (*own, found.relevance, source.relevance, log_odds(max(share, RAREST)))


def _grown(part: Sequence[Piece], evidence_P: Sequence[float], at: int) -> range:
    """The pieces around one that answer too."""
    least, first, last = BESIDE * evidence_P[at], at, at + 1

    def joins(new: int, first: int, last: int) -> bool:
        if not 0 <= new < len(part) or part[new].heads or evidence_P[new] < least:
            return False
        return part[last - 1].end - part[first].start <= LONGEST

    while joins(first - 1, max(first - 1, 0), last):
        first -= 1
    while joins(last, first, min(last + 1, len(part))):
        last += 1
    return range(first, last)


def shares(read: Sequence[Source], spans: Sequence[Spans], prior: float) -> Share:
    """What share of the odds of all spans those between two characters of a passage have, by its number."""
    places, score_C, total = odds_of(read, spans, prior)
    number_C, start_C, end_C = np.array(places, np.int64).reshape(-1, 3).T

    def share(n: int, start: int, end: int) -> float:
        inside = score_C[(number_C == n) & (start_C >= start) & (end_C <= end)]
        return float(np.exp(np.logaddexp.reduce(inside) - total)) if len(inside) else 0.0

    return share


def _shown(source: Source, found: Spans, start: int, end: int, probability: float) -> Sentence:
    """Characters of a passage as a unit, with the best phrase in it."""
    passage, answer = source.passage, ""
    inside = np.flatnonzero((found.start_C >= start) & (found.end_C <= end))
    if len(inside):
        best = inside[found.odds_C[inside].argmax()]
        answer = " ".join(passage.text[int(found.start_C[best]) : int(found.end_C[best])].split())
    text = " ".join(passage.text[start:end].split())
    place = quote(passage, source.corpus, passage.start + start, passage.start + end, probability)
    return Sentence(text, probability, (place,), answer)
