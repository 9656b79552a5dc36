"""NPM and NPM-single: the phrases of a corpus that fill a blank (Min et al. 2022).

Knows: how encoder, retriever and predictor compose. Does not know: their insides.

encode (encoders/tokens) → search (index) → expand (candidates) → score (equations) → explain (evidence).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, Unpack, overload

from quoth.answers.evidence import chosen
from quoth.answers.options import FillOptions
from quoth.corpus.bm25 import best_places
from quoth.corpus.corpus import Corpus
from quoth.encoders.tokens import TokenEncoder
from quoth.errors import InputError
from quoth.fields import documented
from quoth.hub import locate
from quoth.model.calls import Exclude, check_labels, check_questions, takes, tidied, words_of
from quoth.model.keywords import AskKeywords, FillKeywords
from quoth.npm.blanks import BlankFiller
from quoth.npm.config import AskOptions, ClassifyOptions, NPMConfig
from quoth.npm.labels import predict_labels
from quoth.npm.several import BEAMS, fill_together
from quoth.reader.runtime import open_reader
from quoth.records import Predictions
from quoth.text.tokenizer import MASK

TEXTS_AT_A_TIME = 32


class NPM(BlankFiller):
    """A nonparametric masked language model over one or several corpora."""

    _usual = "quoth-mini"

    @classmethod
    def _load(cls, name: str, corpora: list[Corpus], *, device: str | None, dtype: str | None, base: str | None) -> NPM:
        source = locate(name, NPMConfig, base)
        reader = source.config.reader
        load = partial(open_reader, reader, device=device, dtype=dtype, base=base) if reader else None
        return cls(TokenEncoder.load(source, device=device, dtype=dtype), corpora, load)

    @overload
    def fill(  # type: ignore[overload-overlap]
        self, text: str, *, searched: Sequence[str] = (), exclude: Exclude = (), **options: Unpack[FillKeywords]
    ) -> Predictions: ...
    @overload
    def fill(
        self,
        text: Sequence[str],
        *,
        searched: Sequence[str] = (),
        exclude: Exclude = (),
        **options: Unpack[FillKeywords],
    ) -> list[Predictions]: ...
    @takes(FillOptions)
    def fill(
        self, text: Sequence[str], options: FillOptions, searched: Sequence[str] = (), exclude: Exclude = ()
    ) -> list[Predictions]:
        """Fill a text's blank with the best-fitting phrases of the corpus, each with its places.

        The `k` nearest tokens to each end of the blank propose phrases, in the best passages or everywhere. If the
        model has a reader, it first reads the text with the passages; where it is sure, it decides alone, elsewhere
        both do. Several blanks of one text are filled together, the surest first.

        Args:
            text: One text, or several, each with one blank or more (at most 8): `[MASK]`, `<mask>` or `___`.
            options: The fields of `FillOptions`.
            searched (Sequence[str]): The text to find passages by, one per text. Default: the text's own words.
            exclude (Collection[int]): Passage rows never to search, in any corpus: one collection, or one per text.
                Default: ().

        Returns:
            The predictions, best first; for several texts a list of such lists. `probability` is a phrase's share of
            all candidates' scores or, with a reader, its calibrated chance of being right. For a text with several
            blanks, `parts` are the phrases, `evidence` the best place of each, `probability` their product.

        Raises:
            InputError: A text without a blank or with more than 8, an option out of bounds, vectors missing for
                every token.
            EmptyCorpusError: No passage to search.
            EncoderMismatchError: The stored vectors are another model's.

        Source:
            NPM, section 3.1 and appendices A.1 and A.3 (Min et al., 2022).

        Example:
            >>> best = npm.fill("The Tale of Genji was written by [MASK].", top_k=1)[0]
            >>> best.text, best.evidence[0].document_id
            ('Murasaki Shikibu', 'genji')
            >>> [[each.text for each in found] for found in npm.fill(["Carmen is an opera by ___."], top_k=1)]
            [['Georges Bizet']]
        """
        settled = self.settled(options)
        texts, by, hidden = tidied(text, self.encoder.tokenizer.mask_token, searched, exclude)
        if any(one.count(MASK) > 1 for one in texts):
            given = zip(texts, searched or [""] * len(texts), hidden, strict=True)
            return [self._filled(one, by, rows, options) for one, by, rows in given]
        results: list[Predictions] = []
        for at in range(0, len(texts), TEXTS_AT_A_TIME):
            part = slice(at, at + TEXTS_AT_A_TIME)
            asked = self.asked(texts[part], by[part], hidden[part], settled)
            if settled.read:
                decided = self.decided(asked, settled)
            else:
                every = self.proposals(asked, self._queries(texts[part]), settled)
                decided = (chosen(proposals, settled.top_k, settled.distinct) for proposals in every)
            for filled, found in zip(asked.texts, decided, strict=True):
                results.append(Predictions([replace(one, sequence=filled.replace(MASK, one.text)) for one in found]))
        return results

    def _filled(self, text: str, searched: str, hidden: Collection[int], options: FillOptions) -> Predictions:
        """The fillings of one text with any number of blanks."""

        def fill(texts: list[str], top_k: int = options.top_k) -> list[Predictions]:
            by = [searched] * len(texts) if searched else ()
            return self.fill(texts, searched=by, exclude=hidden, **options.keywords() | {"top_k": top_k})

        if text.count(MASK) <= 1:
            return fill([text])[0]
        return Predictions(fill_together(partial(fill, top_k=max(options.top_k, BEAMS)), text)[: options.top_k])

    @overload
    def ask(  # type: ignore[overload-overlap]
        self, question: str, *, exclude: Exclude = (), **options: Unpack[AskKeywords]
    ) -> Predictions: ...
    @overload
    def ask(
        self, question: Sequence[str], *, exclude: Exclude = (), **options: Unpack[AskKeywords]
    ) -> list[Predictions]: ...
    @takes(AskOptions)
    def ask(self, question: Sequence[str], options: AskOptions, exclude: Exclude = ()) -> list[Predictions]:
        """Answer a question by filling the blank of a template. `Reader.ask` answers questions better.

        Passages are found by the question alone. NPM answers by itself, unless `read` sets a number of passages to
        read.

        Args:
            question: One question, or several.
            options: The fields of `AskOptions`.
            exclude (Collection[int]): As in `fill`. Default: ().

        Returns:
            The predictions, best first, or a list of such lists, as `fill`.

        Raises:
            InputError: An empty question, a template without `{question}`; else as `fill`.

        Source:
            NPM, section 4 (Min et al., 2022).

        Example:
            >>> npm.ask("Who composed Carmen?", top_k=1)[0].text
            'Georges Bizet'
        """
        check_questions(question)
        template = options.template or self.config.defaults.template
        texts = [template.replace("{question}", one.strip()) for one in question]
        answers = self.fill(texts, searched=question, exclude=exclude, **options.keywords())
        return [Predictions(replace(one, sequence="") for one in group) for group in answers]

    @documented(ClassifyOptions)
    def classify(
        self,
        text: str,
        labels: Mapping[str, Sequence[str]],
        *,
        template: str | None = None,
        temperature: float = 5.0,
        passages: int | Literal["default", "all"] | None = "default",
    ) -> Predictions:
        """Rank labels by how well their words (fuzzy verbalizers), wherever they occur, fit a template's blank.

        Args:
            text (str): What to label.
            labels (Mapping[str, Sequence[str]]): For each label, words that express it; two labels or more.

        Returns:
            A prediction for each label, best first: its text is the label, its evidence the places of its words.

        Raises:
            InputError: Fewer than two labels, a label none of whose words occurs in the corpus, a template without
                `{text}`.
            EmptyCorpusError: No passage to search.

        Source:
            NPM, appendix A.4 (Min et al., 2022).

        Example:
            >>> found = npm.classify("I loved it.", {"positive": ["good", "great"], "negative": ["bad", "terrible"]})
            >>> sorted(each.text for each in found)
            ['negative', 'positive']
        """
        options = ClassifyOptions(template=template, temperature=temperature, passages=passages)
        check_labels(text, labels)
        own = self.config.defaults.passages if options.passages == "default" else options.passages
        count = None if own == "all" else own
        template = options.template or self.config.defaults.classify_template
        filled = self.with_mask(template.replace("{text}", text))
        q_start_D, q_end_D = self.encoder.blanks([filled])[0]
        phrase = self.encoder.tokenizer.phrase
        words = {label: [phrase(word).group_T for word in given] for label, given in labels.items()}
        queries = {label: f"{words_of(filled)} {' '.join(given)}" for label, given in labels.items()}
        if count is None:
            tables = self._retriever.key_tables()
        else:  # the tokens of BM25's best passages for all labels together, each passage once
            ranked = [best_places(self.corpora, query, count) for query in queries.values()]
            [tables] = self._retriever.gather([{place for ranking in ranked for _, place in ranking}])
        found = predict_labels(tables, words, q_start_D, None if self.single else q_end_D, options.temperature)
        for label in (one.text for one in found if not one.evidence):
            if not best_places(self.corpora, " ".join(labels[label]), 1):
                given = ", ".join(labels[label])
                raise InputError(f"label {label!r}: none of its words ({given}) occurs in the corpus; give it another")
        return Predictions(found)
