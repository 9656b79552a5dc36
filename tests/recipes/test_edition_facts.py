"""Which facts of two editions changed."""

from quoth import Document
from script_modules import script_module

SCRIPT = script_module("edition_facts")
HEAD, STATE, CAPITAL = (f"{field}: " for field in SCRIPT.FIELDS.values())


def edition(*lines: str) -> list[Document]:
    return [Document("x", "Upper - Nowhere - Government", "\n".join(["Government type: monarchy", *lines]))]


def test_a_fact_changed_if_its_object_did_and_another_spelling_is_neither() -> None:
    old = edition(
        f"{HEAD}Acting Prime Minister Sir Edi RAMA (since 2013); Deputy Prime Minister Niko PELESHI",
        f"{STATE}Queen ELIZABETH II (since 1952); represented by Governor Jo COX",
        f"{CAPITAL}Tirana (Tirane)",
    )
    new = edition(
        f"{HEAD}Prime Minister Petteri ORPO, since 2023", f"{STATE}King CHARLES III (since 2022)", f"{CAPITAL}Tirana"
    )
    found = [(kind, fact["predicate_id"], fact["obj_label"]) for kind, fact in compare(old, new)]
    assert found == [
        ("changed", "P6", "Petteri ORPO"),
        ("changed", "P35", "CHARLES III"),
        ("unchanged", "P36", "Tirana"),
    ]
    spelled = edition(f"{STATE}President ISAIAS Afworki"), edition(f"{STATE}President ISAIAS Afwerki")
    assert compare(*spelled) == []
    shared = edition(f"{HEAD}Caretaker Prime Minister Abd bin MUBARAK"), edition(f"{HEAD}Gen. Salim bin BURAYK")
    assert [(kind, fact["obj_label"]) for kind, fact in compare(*shared)] == [("changed", "Salim bin BURAYK")]
    assert compare([], new) == []  # nothing to compare with
    assert SCRIPT.facts(edition(f"{HEAD}vacant", f"{STATE}note - the king is head of state")) == {}


def compare(old: list[Document], new: list[Document]) -> list[tuple[str, dict[str, object]]]:
    return list(SCRIPT.compared(SCRIPT.facts(old), SCRIPT.facts(new)))
