"""Links of Wikipedia: given a mention in its sentence, does a search find other passages about the same target?

Knows: which passages mention a link's target or are about it, how a mention becomes a query, and the scores. Does not
know: how a system searches.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, NamedTuple

from annotated_types import MinLen

from quoth.corpus.corpus import Corpus
from quoth.datasets.judging import first
from quoth.errors import InputError
from quoth.fields import Checked, Count
from quoth.records import Document, TaggedSpan
from quoth.text.passages import sentences
from quoth.zero_ner.recognition import LINKS, read_links
from quoth_eval.entity_search import Range, Search, by_name, by_text, searches, searching
from quoth_eval.spec import ENTITIES, Given, Options, Prepared, TaskSpec
from quoth_eval.systems import BM25
from quoth_eval.task import Answer, Example, Scores, System, Task, draw, recalls
from quoth_eval.tasks.openqa import DEPTHS, KS


@dataclass(frozen=True, slots=True)
class Mention:
    """A link in a document to a target, the title of a page: `document.text[start:end] == surface`.

    Redirects are not resolved: two titles of one page are two targets.
    """

    document_id: str
    start: int
    end: int
    surface: str
    target: str


class Query(NamedTuple):
    """A mention and its position in its sentence."""

    mention: Mention
    entity: Range


def read_mentions(documents: Iterable[Document]) -> tuple[list[Mention], int]:
    """The links of documents as mentions, and the number of links left out because they are not whole words of the
    text.

    Raises InputError naming a document with invalid links.
    """
    read = [_mention(each, link) for each in documents for link in read_links(each.id, each.metadata)]
    mentions = [mention for mention in read if mention is not None]
    return mentions, len(read) - len(mentions)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LinksSettings(Checked):
    """What is measured."""

    ks: Annotated[tuple[Count, ...], MinLen(1), DEPTHS] = KS


def links_task(corpus: Corpus, ks: Sequence[int] = KS, limit: int | None = None, seed: int = 0) -> Task[Query]:
    """Mentions whose target another document mentions or is about, or `limit` of them drawn with `seed`.

    Passages of the mention's own document do not count. Measures are recall@k, and the reciprocal of the first right
    passage's rank, 0 if it was not found. Raises InputError.
    """
    mentions, num_dropped = read_mentions(corpus.documents())
    about = passages_about(corpus, mentions)
    shared = [each for each in mentions if {*about[each.target].values()} - {each.document_id}]
    if not shared:
        raise InputError(f"{corpus.path}: no two documents link to the same target; give documents with {LINKS!r}")
    targets: defaultdict[str, set[str]] = defaultdict(set)
    for mention in mentions:
        targets[mention.surface.casefold()].add(mention.target)
    examples = []
    for mention in draw(shared, limit, seed):
        start, text = _sentence(corpus.document(mention.document_id).text, mention)
        same = mention.surface.casefold() == mention.target.casefold()
        groups = {"surface": "surface is the title" if same else "surface is another"}
        if mention.surface[0].isupper():
            groups["names"] = "names"
        if len(targets[mention.surface.casefold()]) > 1:  # elsewhere the same surface has another target
            groups["ambiguous"] = "ambiguous"
        query = Query(mention, (mention.start - start, mention.end - start))
        name = f"{mention.document_id}:{mention.start}-{mention.end}"
        examples.append(Example(name, text, (mention.target,), query, groups))
    counts = {"num_mentions": len(shared), "num_dropped": num_dropped, "num_passages": corpus.num_passages}
    judge = partial(_judge, tuple(ks), about)
    return Task(name="links", examples=examples, judge=judge, settings=counts | {"seed": seed})


def searches_of(search: Search, corpus: Corpus, ks: Sequence[int] = KS) -> System[Query]:
    """A search as a system; it is asked for as many passages more as the mention's own document has."""
    return searches(search, lambda query: max(ks) + len(corpus.rows_of(query.mention.document_id)))


def _make(given: Given, settings: LinksSettings) -> Prepared:
    corpus, search = given.one_corpus("links"), searching(given)

    def words(options: Options) -> System[Query]:
        own = {name: value for name, value in options.items() if name != "mention"}
        way = by_name if options.get("mention") else by_text
        return searches_of(way(BM25([corpus], own)), corpus, settings.ks)

    return Prepared(
        task=links_task(corpus, settings.ks, given.limit, given.seed),
        asks=lambda name, options: searches_of(search(name, options), corpus, settings.ks),
        baselines={"bm25": words},
    )


def _judge(
    ks: Sequence[int], about: Mapping[str, Mapping[int, str]], example: Example[Query], answer: Answer
) -> Scores:
    mention = example.source.mention
    others = [passage.row for passage in answer.passages if passage.document_id != mention.document_id][: max(ks)]
    place = first(row in about[mention.target] for row in others)
    return recalls("recall", place, ks) | {f"MRR@{max(ks)}": 0.0 if place is None else 1 / (place + 1)}


def _mention(document: Document, link: TaggedSpan) -> Mention | None:
    """A link as a mention; None if it has no target, is empty, or begins or ends inside a word or at a space."""
    text, surface, target = document.text, document.text[link.start : link.end], page(link.label)
    inside = any(0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum() for at in (link.start, link.end))
    if inside or link.end > len(text) or not target or not surface or surface != surface.strip():
        return None
    return Mention(document.id, link.start, link.end, surface, target)


def _sentence(text: str, mention: Mention) -> tuple[int, str]:
    """The start and the text of a mention's sentence, or of several if the mention crosses their boundaries."""
    around = [(start, end) for start, end in sentences(text) if start < mention.end and mention.start < end]
    start, end = around[0][0], around[-1][1]
    return start, text[start:end]


SPECS = [
    TaskSpec(
        name="links",
        settings=LinksSettings,
        make=_make,
        form=ENTITIES,
        systems=("bm25", "bm25,mention=true"),
        baselines=("bm25",),
    )
]
