"""A picture of questions and keys in the plane (figure 3 of Hoshi et al. 2022).

Knows: UMAP and matplotlib. Does not know: models, what the labels mean.

Shape suffixes that differ from the project's: K keys.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from quoth.datasets.judging import holders
from quoth.encoders.keys import Vectors
from quoth.errors import InputError
from quoth_eval.entity_search import stored_keys

if TYPE_CHECKING:
    from quoth.zero_ner.model import ZeroNER
    from quoth_eval.tasks.entities import EntityQuestion

OTHERS = 2000


def picture_of(path: str | Path, questions: Sequence[EntityQuestion], model: ZeroNER, seed: int = 0) -> None:
    """Draw questions whose entity is known and, in the colour of their relation, the nearest key of each in a passage
    with an answer, among 2,000 of the model's keys in grey. Raises InputError as `picture` does."""
    if not questions:
        raise InputError("no covered question whose entity is known; give the templates, or a larger corpus")
    queries_QD = np.concatenate([model.encoder.queries(e.question.text, [e.entity]) for e in questions if e.entity])
    passages, keys = stored_keys(model)
    holding = holders([each.question for each in questions], (passage.text for passage in passages))
    rest = np.random.default_rng(seed).choice(len(keys.texts), min(OTHERS, len(keys.texts)), replace=False)
    drawn, labels = [*rest.tolist()], [""] * len(rest)
    for at, (question, q_D) in enumerate(zip(questions, queries_QD, strict=True)):
        rows = [row for number in holding.get(at, ()) for row in range(*keys.offsets_P1[number : number + 2].tolist())]
        if rows:
            drawn.append(rows[int((keys.vectors_ND[rows] @ q_D).argmax())])
            labels.append(question.relation)
    picture(path, queries_QD, keys.vectors_ND[drawn], [question.relation for question in questions], labels, seed)


def picture(
    path: str | Path,
    queries_QD: Vectors,
    keys_KD: Vectors,
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    seed: int = 0,
) -> None:
    """Draw queries (stars) and keys (dots) in the plane, by UMAP of their cosines, and save the image.

    There is one colour per label, such as a relation or a class of names; "" is grey and not in the legend. Raises
    InputError if umap-learn, matplotlib or a label is missing.
    """
    if (len(keys_KD), len(queries_QD)) != (len(key_labels), len(query_labels)):
        given = f"{len(key_labels):,} labels for {len(keys_KD):,} keys, {len(query_labels):,} for {len(queries_QD):,}"
        raise InputError(f"{given} queries; give one label for each")
    vectors_ND = np.concatenate([keys_KD, queries_QD])
    plane = check_installed()(n_neighbors=min(15, len(vectors_ND) - 1), metric="cosine", random_state=seed, n_jobs=1)
    keys, queries = np.split(plane.fit_transform(vectors_ND), [len(keys_KD)])
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7), layout="constrained")
    axes = figure.add_subplot(xticks=[], yticks=[])
    names = sorted({*key_labels, *query_labels} - {""})
    colours = dict(zip(names, colormaps["turbo"](np.linspace(0.05, 0.95, len(names))), strict=True))
    for some, labels, size, marker in ((keys, key_labels, 10, "o"), (queries, query_labels, 90, "*")):
        for name in ["", *names]:
            chosen = np.array([label == name for label in labels], np.bool_)
            style = {"s": size, "marker": marker, "color": colours.get(name, "lightgrey")}
            axes.scatter(*some[chosen].T, edgecolors="white", linewidths=size / 200, **style)
    for name in names:
        axes.scatter([], [], color=colours[name], label=name)
    if names:
        figure.legend(loc="outside right upper")
    figure.savefig(path, dpi=150)


def check_installed() -> Any:
    """UMAP's class. Raises InputError if a package needed for drawing is missing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ImportWarning)  # about Tensorflow, which is not needed here
            from umap import UMAP
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InputError(f"the picture needs {error.name}; pip install '.[eval]' in a clone of Quoth") from None
    return UMAP
