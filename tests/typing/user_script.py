"""A user's script, which type checkers must accept as it is; it is checked, never run."""

from pathlib import Path
from typing import assert_type

import quoth

corpus = quoth.Corpus.create("wiki.quoth", splitter="words:120")
assert_type(corpus, quoth.Corpus)
documents = [quoth.Document("carmen", "Carmen", "Carmen is an opera by Georges Bizet.", {"year": 1875})]
added: int = corpus.add(documents) + corpus.add(quoth.read_documents("wiki.jsonl"))
changed: int = corpus.replace(documents) + corpus.delete(["carmen"])
corpus.compact()
corpus.verify()
earlier = quoth.Corpus.open(Path("wiki.quoth"), snapshot=1)
passage = corpus.passage(0)
place: tuple[str, str, str, int, int] = (passage.text, passage.title, passage.document_id, passage.start, passage.end)

npm = quoth.NPM.from_pretrained("quoth-mini", corpus=[corpus, earlier])
realm = quoth.REALM.from_pretrained("quoth-realm", corpus="wiki.quoth", device="cpu")
zero_ner = quoth.ZeroNER.from_pretrained("quoth-zero-ner", corpus=Path("wiki.quoth"))
reader = quoth.Reader.from_pretrained(corpus=corpus)
npm.embed(storage="sq8")

assert_type(npm.fill("Carmen is by [MASK].", top_k=5, k=4096, passages=3, combine="joint"), quoth.Predictions)
assert_type(npm.fill(["Carmen is by [MASK].", "___ is a river."], passages=None), list[quoth.Predictions])
assert_type(npm.ask("Who composed Carmen?", top_k=5), quoth.Predictions)
assert_type(reader.ask("Who composed Carmen?", min_probability=0.5), quoth.Predictions)
assert_type(reader.ask(["Who composed Carmen?"]), list[quoth.Predictions])
assert_type(realm.ask("Who composed Carmen?", combine="softmax"), quoth.Predictions)
assert_type(realm.fill(["Carmen is by [MASK]."]), list[quoth.Predictions])
labels = {"positive": ["great"], "negative": ["terrible"]}
assert_type(npm.classify("I loved it.", labels=labels, template="{text} It was [MASK]."), quoth.Predictions)
assert_type(npm.search("opera", k=10, mode="hybrid"), quoth.Hits)
assert_type(zero_ner.search("Where does the Nile end?", k=20)[0], quoth.Hit)
start, end = npm.query_vectors("Carmen is by [MASK].")
shape: tuple[int, ...] = npm.token_vectors([passage])[0].vectors_TD.shape

for prediction in reader.ask("Who composed Carmen?"):
    assert_type(prediction, quoth.Prediction)
    shown: tuple[str, float, bool, int] = (
        prediction.text,
        prediction.probability,
        prediction.abstained,
        prediction.num_places,
    )
    for evidence in prediction.evidence:
        assert_type(evidence, quoth.Evidence)
        assert_type(evidence.start, int)
        quoted: str = corpus.document(evidence.document_id).text[evidence.start : evidence.end]
        also: tuple[str, int, str, float] = (evidence.title, evidence.passage, evidence.context, evidence.score)

assert_type(quoth.load(), quoth.NPM)
assert_type(quoth.load("quoth-mini", corpus=corpus), quoth.NPM)
assert_type(quoth.load("quoth-reader", corpus=corpus), quoth.Reader)
assert_type(quoth.load("quoth-realm", corpus=corpus), quoth.REALM)
assert_type(quoth.load("quoth-zero-ner", corpus=corpus), quoth.ZeroNER)


def best(model: quoth.Model, question: str) -> str:
    """The best answer of a model of any kind."""
    return model.ask(question, top_k=1)[0].text


def loaded(name: str) -> quoth.Model:
    """A model by a name that is known only when the script runs."""
    model = quoth.load(name, corpus=corpus)
    assert_type(model, quoth.Model)
    assert_type(model.ask("Who composed Carmen?"), quoth.Predictions)
    assert_type(model.ask(["Who composed Carmen?"]), list[quoth.Predictions])
    assert_type(model.fill("Carmen is by [MASK].", top_k=3), quoth.Predictions)
    assert_type(model.search("opera", k=3), quoth.Hits)
    return model


answers = [best(model, "Who composed Carmen?") for model in (loaded("my-model"), npm, realm, reader)]
assert_type(quoth.verify_quote(corpus, "an opera by Georges Bizet").occurs, bool)

# Mistakes, which a checker must see: mypy complains of an `ignore` without one.
quoth.Corpus.open(3)  # type: ignore[arg-type]
npm.fill("Carmen is by [MASK].", top_k="5")  # type: ignore[call-overload]
reader.ask("Who composed Carmen?", topk=5)  # type: ignore[call-overload]
realm.ask("Who composed Carmen?", mode="words")  # type: ignore[call-overload]
reader.classify("text", {})  # type: ignore[attr-defined]
text: str = quoth.load("some-model").ask("Who?")  # type: ignore[assignment]
_ = quoth.Corpsu  # type: ignore[attr-defined]
