"""Links of Wikipedia: given a mention in its sentence, does a search find other passages about the same target?

Knows: which passages mention a link's target or are about it, how a mention becomes a query, and the scores. Does not
know: how a system searches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quoth.corpus.corpus import Corpus
from quoth.corpus.passages import sentences
from quoth.datasets.answers import first, recall
from quoth.errors import InputError
from quoth.evaluation.metrics import markdown, percent
from quoth.evaluation.openqa import BM25, KS, Ranks, draw
from quoth.evaluation.run import ProgressCallback
from quoth.evaluation.searches import Range, Search, by_name, by_text
from quoth.ner.recognition import LINKS, read_links
from quoth.records import Document, TaggedSpan


@dataclass(frozen=True, slots=True)
class Mention:
    """A link in a document to a target, the title of a page: `document.text[start:end] == surface`."""

    document_id: str
    start: int
    end: int
    surface: str
    target: str


@dataclass(frozen=True, slots=True)
class Query:
    """A mention, its sentence, and its position there; `ambiguous` if the same surface has other targets elsewhere.

    Redirects are not resolved: two titles of one page are two targets.
    """

    mention: Mention
    text: str
    entity: Range
    ambiguous: bool


GROUPS: Mapping[str, Callable[[Query], bool]] = {
    "all": lambda query: True,
    "surface is the title": lambda query: query.mention.surface.casefold() == query.mention.target.casefold(),
    "surface is another": lambda query: query.mention.surface.casefold() != query.mention.target.casefold(),
    "names": lambda query: query.mention.surface[0].isupper(),
    "ambiguous": lambda query: query.ambiguous,
}


@dataclass(frozen=True, slots=True)
class LinkReport:
    """The queries asked, the number of mentions they were drawn from, the number of links left out, and for each system
    the rank of the first passage about the same target."""

    queries: tuple[Query, ...]
    num_mentions: int
    num_dropped: int
    num_passages: int
    seed: int
    ks: tuple[int, ...]
    ranks: Mapping[str, Ranks]

    def groups(self) -> dict[str, list[int]]:
        """The indices of the queries in each group that is not empty."""
        groups = {
            name: [i for i, query in enumerate(self.queries) if belongs(query)] for name, belongs in GROUPS.items()
        }
        return {name: numbers for name, numbers in groups.items() if numbers}

    def to_dict(self) -> dict[str, Any]:
        """The settings and the scores, without the individual queries."""
        return {
            "num_queries": len(self.queries),
            "num_mentions": self.num_mentions,
            "num_dropped": self.num_dropped,
            "num_passages": self.num_passages,
            "seed": self.seed,
            "systems": [
                {"name": name} | {group: self._scores(ranks, numbers) for group, numbers in self.groups().items()}
                for name, ranks in self.ranks.items()
            ],
        }

    def _scores(self, ranks: Ranks, numbers: Sequence[int]) -> dict[str, Any]:
        of_group = [ranks[i] for i in numbers]
        recalls = {str(k): recall(of_group, k) for k in self.ks}
        return {"num_queries": len(numbers), "recall": recalls, "mrr": mean_reciprocal_rank(of_group)}


def mean_reciprocal_rank(ranks: Sequence[int | None]) -> float:
    """The mean of 1 / rank, with ranks from 1, and 0 for targets that were not found."""
    return sum(1 / (rank + 1) for rank in ranks if rank is not None) / len(ranks)


def read_mentions(documents: Iterable[Document]) -> tuple[list[Mention], int]:
    """The links of documents as mentions, and the number of links left out because they are not whole words of the
    text.

    Raises InputError naming a document with invalid links.
    """
    mentions, num_dropped = [], 0
    for document in documents:
        for link in read_links(document.id, document.metadata):
            mention = _mention(document, link)
            if mention is None:
                num_dropped += 1
            else:
                mentions.append(mention)
    return mentions, num_dropped


def page(title: str) -> str:
    """A page's title as Wikipedia normalises it: no section, spaces for underscores, the first letter a capital."""
    name = " ".join(title.partition("#")[0].replace("_", " ").split())
    return name[:1].upper() + name[1:]


def passages_about(corpus: Corpus, mentions: Iterable[Mention]) -> dict[str, dict[int, str]]:
    """For each target, the rows of the passages that mention it or belong to its page, each with its document's id."""
    of_document: defaultdict[str, list[Mention]] = defaultdict(list)
    for mention in mentions:
        of_document[mention.document_id].append(mention)
    about: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for passage in corpus.passages():
        about[page(passage.title)][passage.row] = passage.document_id
        for mention in of_document[passage.document_id]:
            if passage.start <= mention.start and mention.end <= passage.end:
                about[mention.target][passage.row] = passage.document_id
    return about


def run_links(
    corpus: Corpus,
    systems: Mapping[str, Search] | None = None,
    *,
    ks: Sequence[int] = KS,
    limit: int | None = None,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> LinkReport:
    """Ask BM25 (with the sentence, and with the mention alone) and then each of `systems` about the mentions whose
    target another document mentions or is about, or about `limit` of them drawn with `seed`.

    Passages of the mention's own document are removed from the results. Raises InputError.
    """
    if not ks or min(ks) < 1 or (limit is not None and limit < 1):
        raise InputError(f"ks is {list(ks)}, limit is {limit}; both must be 1 or more")
    mentions, num_dropped = read_mentions(corpus.documents())
    about = passages_about(corpus, mentions)
    shared = [
        mention
        for mention in mentions
        if any(document_id != mention.document_id for document_id in about[mention.target].values())
    ]
    if not shared:
        raise InputError(f"{corpus.path}: no two documents link to the same target; give documents with {LINKS!r}")
    asked = draw(shared, limit, seed) if limit else shared
    queries = _queries(corpus, asked, mentions)
    baseline = BM25((corpus,))
    named = {"bm25, sentence": by_text(baseline), "bm25, mention": by_name(baseline), **(systems or {})}
    ranks = {name: _ask_all(name, search, queries, corpus, about, max(ks), progress) for name, search in named.items()}
    return LinkReport(tuple(queries), len(shared), num_dropped, corpus.num_passages, seed, tuple(ks), ranks)


def table(report: LinkReport) -> str:
    """The scores as a Markdown table, one line per system and group; percentages."""
    heads = [f"{len(report.queries):,} of {report.num_mentions:,} mentions; {report.num_passages:,} passages"]
    heads += ["mentions", *(f"recall@{k}" for k in report.ks), f"MRR@{max(report.ks)}"]
    rows = []
    for name, ranks in report.ranks.items():
        for group, numbers in report.groups().items():
            of_group = [ranks[i] for i in numbers]
            shares = [*(recall(of_group, k) for k in report.ks), mean_reciprocal_rank(of_group)]
            rows.append([f"{name}: {group}", f"{len(numbers):,}", *(percent(share) for share in shares)])
    return markdown(heads, rows)


def _mention(document: Document, link: TaggedSpan) -> Mention | None:
    """A link as a mention; None if it has no target, is empty, or begins or ends inside a word or at a space."""
    surface, target = document.text[link.start : link.end], page(link.label)
    cut = link.end > len(document.text) or any(_inside_word(document.text, at) for at in (link.start, link.end))
    if cut or not target or not surface or surface != surface.strip():
        return None
    return Mention(document.id, link.start, link.end, surface, target)


def _inside_word(text: str, place: int) -> bool:
    return 0 < place < len(text) and text[place - 1].isalnum() and text[place].isalnum()


def _queries(corpus: Corpus, asked: Sequence[Mention], mentions: Iterable[Mention]) -> list[Query]:
    targets: defaultdict[str, set[str]] = defaultdict(set)
    for mention in mentions:
        targets[mention.surface.casefold()].add(mention.target)
    queries = []
    for mention in asked:
        start, text = _sentence(corpus.document(mention.document_id).text, mention)
        ambiguous = len(targets[mention.surface.casefold()]) > 1
        queries.append(Query(mention, text, (mention.start - start, mention.end - start), ambiguous))
    return queries


def _sentence(text: str, mention: Mention) -> tuple[int, str]:
    """The start and the text of a mention's sentence, or of several if the mention crosses their boundaries."""
    around = [(start, end) for start, end in sentences(text) if start < mention.end and mention.start < end]
    start, end = around[0][0], around[-1][1]
    return start, text[start:end]


def _ask_all(
    name: str,
    search: Search,
    queries: Sequence[Query],
    corpus: Corpus,
    about: Mapping[str, Mapping[int, str]],
    k: int,
    progress: ProgressCallback | None,
) -> Ranks:
    ranks: list[int | None] = []
    for done, query in enumerate(queries, start=1):
        own, right = query.mention.document_id, about[query.mention.target]
        hits = search(query.text, query.entity, k + len(corpus.rows_of(own)))
        others = [hit.passage.row for hit in hits if hit.passage.document_id != own][:k]
        ranks.append(first(row in right for row in others))
        if progress is not None:
            progress(name, done, len(queries))
    return tuple(ranks)
