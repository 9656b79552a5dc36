"""The words that negate or say how sure or bound somebody is, in five languages: the one table of them.

They label a change that has been found. They decide one thing: brackets and short ellipses may not hide a negation.
"""

import re

_NEGATIONS = {
    "de": "nicht nichts nie niemals niemand kein keine keinen keinem keiner keines nirgends weder ohne kaum",
    "en": "not no never none nobody nothing nowhere neither nor cannot without hardly scarcely barely",
    "es": "no nunca jamás nada nadie ningún ninguna ninguno tampoco ni sin",
    "fr": "ne n pas jamais rien personne aucun aucune ni sans guère point nul nulle",
    "it": "non mai niente nulla nessuno nessun nessuna né neanche nemmeno senza",
}
_MODALS = {
    "de": "kann können könnte könnten konnte konnten muss müssen musste müsste darf dürfen durfte dürfte dürften soll "
    "sollen sollte sollten mag möge will wollen wollte möchte vielleicht möglicherweise wahrscheinlich wohl",
    "en": "can could may might must shall should will would ought need perhaps possibly probably likely",
    "es": "puede pueden podría podrían podía debe deben debería deberían debía quizá quizás acaso probablemente",
    "fr": "peut peuvent pourrait pourraient pouvait doit doivent devrait devraient devait faut faudrait peut-être",
    "it": "può possono potrebbe potrebbero poteva deve devono dovrebbe dovrebbero doveva forse probabilmente",
}
NEGATIONS = frozenset(" ".join(_NEGATIONS.values()).split())
MODALS = frozenset(" ".join(_MODALS.values()).replace("-", "").split())
"""As folded: without hyphens."""
NEGATED = re.compile(r"n't$|^(?:n'|n’)")
"""Words that have a negation at an end: don't, n'est."""
