// A draft with its quotations marked by what the corpus says of them, and each with its nearest place.

import { card, heading, inCorpus, nothing } from "./results.js";
import { briefly, make, marked } from "./text.js";

const SAID = {
  verbatim: ["faithful", "word for word"],
  typographic: ["faithful", "faithful: only its typography differs"],
  elided: ["faithful", "faithful, with words left out"],
  altered: ["wrong", "altered"],
  absent: ["wrong", "in no document"],
  unreadable: ["open", "its source cannot be read"],
};
const LOUD = ["number", "date", "name", "negation", "modal", "sign"];

/** The drafts of all columns, what was found in each, and below it the runs that the corpus has word for word. */
export function checkList(columns, text, open) {
  const items = [];
  const shown = columns.map((column) => {
    const found = column.content.quotations;
    const list = found.map((each, number) => make("li", {}, quotation(column, each, items, open, number)));
    const body = list.length
      ? [draft(text, found), make("ol", { className: "answers" }, ...list)]
      : [nothing("There are no quotations in this text.", " Those in quotation marks and block quotes are checked.")];
    return make("section", { "aria-label": column.title }, make("h2", {}, heading(column, columns.length)), ...body, traced(text, column.content.spans ?? []));
  });
  const kinds = columns[0].content.quotations.map((each) => SAID[each.status][0]);
  const wrong = kinds.filter((each) => each === "wrong").length;
  const said = kinds.length ? `${kinds.length} quotations, ${wrong} of them altered or in no document.` : "There are no quotations in this text.";
  return { element: make("div", { className: "columns" }, ...shown), items, said, found: false };
}

/** The text with its quotations in colours; one of them leads to what is said of it. */
function draft(text, found) {
  const lead = (number) => () => document.querySelectorAll(".answer.check")[number]?.focus();
  const ranges = found.map(({ start, end, status }, number) => [
    start, end, (part) => make("mark", { className: SAID[status][0], title: SAID[status][1], onclick: lead(number) }, part),
  ]);
  return make("div", { className: "draft" }, ...marked(text, apart(ranges)));
}

/** Of ranges inside of one another the outer ones. */
function apart(ranges) {
  return ranges.filter(([start, end]) => !ranges.some(([a, b]) => a <= start && end <= b && b - a > end - start));
}

function quotation(column, { quote, status, evidence, changes }, items, open) {
  const places = evidence.map((each) => ({ ...each, share: undefined, snapshot: column.content.snapshots[each.corpus] }));
  const [first] = places;
  const where = first ? [first.title || first.document_id, briefly(first.location)].filter(Boolean).join(", ") + inCorpus(column, first) : "";
  const [kind, said] = SAID[status];
  const note = status === "altered" && changes.some((each) => each.concerns.some((what) => LOUD.includes(what))) ? "look here" : "";
  return card(
    items,
    open,
    { places, more: 0, className: `answer check ${kind}`, title: quote, note },
    make("span", { className: "verdict" }, said),
    ...changes.map(change),
    where ? make("span", { className: "where" }, where) : null,
  );
}

function change({ kind, quoted, source, concerns }) {
  const what = concerns.filter((each) => LOUD.includes(each));
  return make(
    "span",
    { className: "said" },
    `${kind}: `,
    quoted ? make("ins", {}, quoted) : null,
    quoted && source ? " for " : null,
    source ? make("del", {}, source) : null,
    what.length ? make("b", {}, ` (${what.join(", ")})`) : null,
  );
}

/** The runs of the text that occur word for word, quoted or not. */
function traced(text, spans) {
  if (!spans.length) return null;
  const ranges = spans.map(({ start, end, places }) => [
    start, end, (part) => make("mark", { className: "word", title: places.map((each) => each.document_id).join(", ") }, part),
  ]);
  return make(
    "details",
    { className: "time" },
    make("summary", {}, `${spans.length} ${spans.length === 1 ? "run" : "runs"} of six words or more, word for word in the corpus`),
    make("div", { className: "draft" }, ...marked(text, apart(ranges))),
  );
}
