"""The words that negate or say how sure or bound somebody is, in fifteen languages, five of which have both: the one
table of them.

They label a change that has been found. They decide one thing: brackets and short ellipses may not hide a negation.
"""

import re

_NEGATIONS = {
    "de": "nicht nichts nie niemals niemand kein keine keinen keinem keiner keines nirgends weder ohne kaum",
    "en": "not no never none nobody nothing nowhere neither nor cannot without hardly scarcely barely",
    "es": "no nunca jamás nada nadie ningún ninguna ninguno tampoco ni sin",
    "fr": "ne n pas jamais rien personne aucun aucune ni sans guère point nul nulle",
    "da": "ikke ingen intet aldrig ingenting hverken uden næppe",
    "el": "δεν δε μην μη όχι ποτέ κανείς κανένας καμία τίποτα χωρίς ούτε",
    "he": "לא אין בלי ללא",
    "it": "non mai niente nulla nessuno nessun nessuna né neanche nemmeno senza",
    "nl": "niet niets nooit niemand geen nergens noch zonder nauwelijks",
    "no": "ikke ingen intet aldri ingenting verken uten neppe",
    "pl": "nie nigdy nic nikt żaden żadna żadne ani bez",
    "pt": "não nunca jamais nada ninguém nenhum nenhuma nem sem tampouco",
    "ru": "не нет ни никогда ничего никто нигде никакой никакая никакие без",
    "sv": "inte ingen inget inga aldrig ingenting varken utan knappast",
    "uk": "не ні немає ніколи нічого ніхто ніде без",
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
