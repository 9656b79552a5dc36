// The filter: the fields of the documents as choices, and the condition that they make, which can be edited.

import { DATE, literal, read, unchosen, write } from "./condition.js";
import { make } from "./text.js";

const FEW = 5; // values that are shown even if each is of a single document
const MOST = 12; // values that are shown whatever they are of
const $ = (id) => document.getElementById(id);
let fields = []; // those that are shown: name, kind ("number", "date" or ""), values as a condition spells them
let changed = () => {};

/** Calls `soon` when a choice changed the condition, and `now` when Enter was pressed in it. */
export function listen(soon, now) {
  changed = soon;
  $("where").addEventListener("input", reflect);
  $("where").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.isComposing) { event.preventDefault(); now(); }
  });
  $("clear").addEventListener("click", () => { set(""); $("where").focus(); changed(); });
}

/** Shows the fields of the documents, as `/v1/fields` tells them. */
export function offer(content) {
  const told = content.fields.filter((each) => !each.name.includes('"')).map((each) => facet(each, content.documents));
  const shown = told.filter((each) => each.kind || each.values.length).sort((a, b) => a.values.length - b.values.length);
  const others = told.filter((each) => !shown.includes(each)).map((each) => each.name);
  fields = shown.map(({ name, kind, values }) => ({ name, kind, values: values.map((each) => literal(each.value)) }));
  $("facets").replaceChildren(...shown.map(choices));
  $("others").replaceChildren(...(others.length ? ["Other fields: ", ...others.flatMap((each, at) => [at ? ", " : "", make("bdi", {}, each)]), ". "] : []));
  $("filter").dataset.fields = String(told.length);
  reflect();
}

/** Puts a condition into the line, and what it chooses into the fields. */
export function set(text) {
  $("where").value = text;
  reflect();
}

/** Says what is wrong with the condition, or that nothing is. */
export function tell(problem) {
  $("where-problem").textContent = problem;
  $("where").setAttribute("aria-invalid", String(Boolean(problem)));
  if (problem) $("filter").open = true;
}

/** What can be chosen of a field: a range, or values; neither if they tell no documents apart, or are names of documents. */
function facet({ name, documents, distinct, values, least, most }, total) {
  const same = documents === total && (least === null ? distinct === 1 : least === most);
  if (same) return { name, kind: "", values: [] };
  if (least !== null) return { name, kind: typeof least === "number" ? "number" : "date", values: [], least, most };
  if (values[0]?.documents === 1 && distinct > FEW) return { name, kind: "", values: [] };
  const plain = values.filter(({ value, documents }) =>
    (documents > 1 || distinct <= MOST) && !/\p{Cc}/u.test(value) && (!Number.isInteger(value) || Number.isSafeInteger(value)));
  return { name, kind: "", values: plain, hidden: (distinct ?? 0) - plain.length };
}

function choices({ name, kind, values, least, most, hidden }, at) {
  const legend = make("legend", {}, make("bdi", {}, name));
  if (kind) {
    const end = (label, key, hint) => make("label", {}, `${label} `, bound(kind, String(hint), { "data-field": at, "data-end": key }));
    return make("fieldset", { className: "range" }, legend, end("from", "from", least), end("to", "to", most));
  }
  const toggles = values.map(({ value, documents }, number) =>
    make(
      "label",
      { title: String(value) },
      make("input", { type: "checkbox", "data-field": at, value: fields[at].values[number], onchange: pick }),
      make("bdi", {}, value === "" ? "(empty)" : String(value)),
      make("span", { className: "count" }, documents.toLocaleString("en"), make("span", { className: "visually-hidden" }, documents === 1 ? " document" : " documents")),
    ),
  );
  return make("fieldset", {}, legend, make("div", { className: "toggles" }, ...toggles, hidden > 0 ? make("span", { className: "count" }, `and ${hidden.toLocaleString("en")} more`) : null));
}

function bound(kind, hint, data) {
  const own = kind === "number" ? { type: "number", step: "any" } : { type: "text", pattern: DATE, title: "2024, 2024-05 or 2024-05-31" };
  const field = make("input", { ...own, ...data, placeholder: kind === "date" ? hint.slice(0, 10) : hint, autocomplete: "off" });
  field.addEventListener("change", () => { if (field.reportValidity()) pick(); });
  return field;
}

/** Makes the condition of what is chosen; what else it says stays. */
function pick() {
  const { rest } = read($("where").value, fields);
  const chosen = new Map();
  for (const each of $("facets").querySelectorAll("input")) {
    const { name, kind } = fields[each.dataset.field];
    const own = chosen.get(name) ?? unchosen();
    if (each.checked) own.values.push(each.value);
    else if (each.dataset.end && each.value && each.checkValidity()) own[each.dataset.end] = kind === "date" ? literal(each.value) : number(each.value);
    chosen.set(name, own);
  }
  $("where").value = write(chosen, rest, fields);
  reflect();
  changed();
}

/** Conditions know no `.5` and no `5.`. */
const number = (value) => (/^[+-]?\d/.test(value) ? value : String(Number(value)));

/** Shows what the condition chooses. */
function reflect() {
  const text = $("where").value.trim();
  const { chosen } = read(text, fields);
  for (const each of $("facets").querySelectorAll("input")) {
    const own = chosen.get(fields[each.dataset.field].name) ?? unchosen();
    if (each.type === "checkbox") each.checked = own.values.includes(each.value);
    else if (!text || each.checkValidity()) each.value = own[each.dataset.end].replaceAll("'", "");
  }
  $("filter-said").textContent = text;
  $("clear").hidden = !text;
  $("filter").hidden = !text && !Number($("filter").dataset.fields);
  if (!text) tell("");
}
