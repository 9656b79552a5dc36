// Lists of answers and of passages, one column per corpus or snapshot, and where the time went.

import { around, briefly, duration, inContext, make, marked, percent, slice } from "./text.js";

const NAMES = { wait: "waiting", encode: "encode", search: "search", expand: "expand and read", score: "score", explain: "explain", other: "around it" };
const NOT_FOUND = "No answer was found in the passages that were read.";
const LEAST_SHOWN = 0.05; // as on the command line
const same = (a, b) => a.toLocaleLowerCase() === b.toLocaleLowerCase();

/** Columns of answers; `open` shows the evidence of one. */
export function answerList(columns, text, open, { only, BLANK, view }) {
  const blanks = view === "ask" ? [...text.matchAll(BLANK)].length : 0;
  const groups = columns.map(({ content }) => (blanks > 1 ? content.predictions : [content.predictions]));
  const sentences = ({ content }) => (content.sentences ?? []).filter((each) => each.probability >= LEAST_SHOWN);
  const items = [];
  let changed = 0;
  const shown = columns.map((column, number) => {
    const parts = groups[number].map((predictions, blank) => {
      const others = number ? groups[0][blank] : null;
      const moved = Boolean(others) && !(predictions.length && others.length && same(predictions[0].text, others[0].text));
      changed += moved;
      return group(column, predictions, others, moved, blanks > 1 ? sentence(only(text, blank)) : null, items, open, view, sentences(column));
    });
    return make("section", { "aria-label": column.title }, make("h2", {}, heading(column, columns.length)), ...parts);
  });
  const comparison = columns.length > 1 ? make("p", { className: "changes" }, ...told(changed, groups[0].length)) : null;
  const best = groups[0][0][0];
  const count = groups.flat(2).length;
  const found = Boolean(best) && best.status !== "not_found";
  const first = found ? `${best.text}, ${percent(best.probability)}.` : "";
  const [likeliest] = best?.abstained ? sentences(columns[0]) : [];
  const said = likeliest ? columns[0].content.status === "answered" ? likeliest.text : `Nothing is sure. This may answer: ${likeliest.text}` : !found ? NOT_FOUND : best.status === "unsure" ? `Unsure: ${first}` : `${count} answers. The best: ${first}`;
  const read = columns[0].content.read_as;
  return { element: make("div", {}, comparison, make("div", { className: "columns" }, ...shown)), items, said: read ? `Read as: ${read} ${said}` : said, found };
}

function told(changed, of) {
  if (of === 1) return changed ? [make("b", {}, "The best answer changes.")] : ["The best answer is the same."];
  return [make("b", {}, `${changed} of ${of}`), " best answers change."];
}

export function heading(column, count) {
  return count > 1 ? make("b", {}, column.title) : column.title;
}

/** A sentence whose blank is to be seen. */
function sentence(text) {
  const [before, after] = text.split("[MASK]");
  return make("p", { className: "blank" }, before, make("u", {}, "\u2003"), after);
}

/** What was read in place of what was asked, if words of it were misspelt. */
function readAs({ content }) {
  return content.read_as ? make("p", { className: "guesses" }, "Read as: ", content.read_as) : null;
}

function group(column, predictions, others, moved, head, items, open, view, sentences) {
  if (!predictions.length) {
    return make("div", { className: "group" }, head, readAs(column), nothing(NOT_FOUND));
  }
  const likely = predictions[0].abstained ? sentences : [];
  const longer = likely.map((each) => make("li", {}, answer(column, { ...each, num_places: 1 }, "", items, open, "sentence")));
  const list = predictions.map((each, rank) => {
    const fresh = Boolean(others) && !others.some((other) => same(other.text, each.text));
    return make("li", {}, answer(column, each, (rank === 0 && moved) || fresh ? (rank === 0 ? "changed" : "only here") : "", items, open, view));
  });
  return make(
    "div",
    { className: "group" },
    head,
    readAs(column),
    longer.length ? make("p", { className: "guesses" }, column.content.status === "answered" ? "" : "Nothing is sure. These may answer:") : null,
    longer.length ? make("ol", { className: "answers" }, ...longer) : null,
    longer.length && predictions[0].status === "not_found" ? make("p", { className: "guesses" }, "Phrases that come nearest:") : null,
    predictions[0].status === "not_found" && !longer.length ? nothing(NOT_FOUND, "What follows only comes nearest.") : null,
    ...halves(predictions, list),
    lookIn(column),
  );
}

/** The most relevant passage, where nothing is sure. */
function lookIn({ content }) {
  const place = content.look_in;
  if (!place) return null;
  const steps = [place.title || place.document_id, ...place.path];
  return make("p", { className: "guesses" }, `Look in: ${[steps.join(" › "), briefly(place.location)].filter(Boolean).join(", ")}`);
}

/** The answers, and apart from them those that are unsure or only come nearest. */
function halves(predictions, list) {
  const sure = predictions.filter((each) => !each.abstained).length;
  const lists = [list.slice(0, sure), list.slice(sure)].map((part) => (part.length ? make("ol", { className: "answers" }, ...part) : null));
  const [best] = predictions;
  const head = sure ? "Unsure" : `Unsure: ${best.text}, ${percent(best.probability)}`;
  return [lists[0], lists[1] && best.status !== "not_found" ? make("p", { className: "guesses" }, head) : null, lists[1]];
}

export function nothing(what, why = "") {
  return make("div", { className: "says-nothing" }, make("b", {}, what), why);
}

/** An answer or a passage as a button, which opens the evidence: its places, of which there are `more`. */
export function card(items, open, { places, more, className, title, note }, ...rest) {
  const number = items.length;
  const button = make(
    "button",
    { type: "button", className, "aria-expanded": "false", "aria-controls": "evidence", disabled: !places.length, onclick: () => open(items[number], number, 0) },
    make("span", { className: "phrase" }, make("bdi", {}, title)),
    note ? make("span", { className: "changed" }, note) : null,
    ...rest,
  );
  items.push({ button, places, more });
  return button;
}

function answer(column, prediction, note, items, open, view) {
  const places = prediction.evidence.map((each) => ({ ...each, share: each.score, snapshot: column.content.snapshots[each.corpus] }));
  const [first] = places;
  const rest = prediction.num_places - 1;
  const where = first
    ? `${view === "classify" ? `“${slice(first.context, ...inContext(first))}” in ` : ""}${[first.title || first.document_id, briefly(first.location)].filter(Boolean).join(", ")}${inCorpus(column, first)}${rest > 0 ? ` and ${rest} more ${rest === 1 ? "place" : "places"}` : ""}`
    : "occurs nowhere in these passages";
  const className = prediction.abstained ? "answer guess" : "answer";
  const quoted = first ? slice(first.context, ...inContext(first)) : "";
  const isList = prediction.parts?.length > 1 && quoted.includes("\n");
  return card(
    items,
    open,
    { places, more: prediction.num_places - places.length, className, title: isList ? quoted : prediction.text, note },
    make("span", { className: "chance" }, track(prediction.probability), make("span", {}, percent(prediction.probability))),
    first && !isList && !["classify", "sentence"].includes(view) ? said(first) : null,
    make("span", { className: "where" }, where),
  );
}

/** The sentence of the best place. */
function said(place) {
  const [before, phrase, after] = around(place.context, ...inContext(place));
  return make("span", { className: "said" }, before, make("b", {}, phrase), after);
}

function track(share) {
  const fill = make("span", { className: "fill" });
  fill.style.width = `${Math.max(100 * (share ?? 0), 0)}%`;
  return make("span", { className: "track", "aria-hidden": "true" }, fill);
}

/** Columns of passages, with the keys by which they were found. */
export function hitList(columns, text, open) {
  const items = [];
  const ids = columns.map(({ content }) => new Set(content.passages.map((each) => each.document_id)));
  const shown = columns.map((column, number) => {
    const list = column.content.passages.map((each) => {
      const fresh = number > 0 && !ids[0].has(each.document_id);
      return make("li", {}, hit(column, each, fresh ? "only here" : "", items, open));
    });
    const body = list.length ? make("ol", { className: "answers" }, ...list) : nothing("No passage has any of these words.");
    return make("section", { "aria-label": column.title }, make("h2", {}, heading(column, columns.length)), readAs(column), body);
  });
  return { element: make("div", { className: "columns" }, ...shown), items, said: `${items.length} passages.` };
}

function hit(column, found, note, items, open) {
  const strong = found.matches.filter((each) => each.start < each.end).map((each) => [each.start, each.end, true]);
  const clear = ([start, end]) => !strong.some(([first, last]) => start < last && first < end);
  const words = found.words.map(([start, end]) => [found.start + start, found.start + end, false]).filter(clear);
  const keys = unique([...strong, ...words]);
  const local = keys.map(([start, end, own]) => [start - found.start, end - found.start, (part) => make("mark", own ? {} : { className: "word" }, part)]);
  const place = {
    document_id: found.document_id, title: found.title, corpus: found.corpus, snapshot: column.content.snapshots[found.corpus],
    start: found.start, end: found.end, context: found.text, context_start: found.start, keys, location: found.location,
  };
  const matches = found.matches.map((each) =>
    make("span", {}, `${each.query} ↔ `, make("b", {}, each.start < each.end ? each.text : `${each.text} (title)`), ` ${each.similarity.toFixed(2)}`),
  );
  return card(
    items,
    open,
    { places: [place], more: 0, className: "answer hit", title: found.title || found.document_id, note },
    matches.length ? make("span", { className: "keys" }, ...matches) : null,
    make("span", { className: "text" }, ...marked(found.text, local)),
    make("span", { className: "where" }, `score ${found.score.toFixed(3)} · ${found.document_id}${inCorpus(column, found)}`),
  );
}

/** The name of a place's corpus, if several were asked. */
export function inCorpus({ content }, { corpus }) {
  return Object.keys(content.snapshots).length > 1 ? ` · ${corpus}` : "";
}

function unique(ranges) {
  return [...new Map(ranges.map((each) => [each.slice(0, 2).join(), each])).values()];
}

/** A bar of the steps of a reply. */
export function timeSpent({ steps, total, batch }, title) {
  const parts = Object.entries(steps).filter(([, ms]) => ms > 0.005);
  const sum = parts.reduce((all, [, ms]) => all + ms, 0) || 1;
  const bar = make("div", { className: "spent", "aria-hidden": "true" });
  for (const [name, ms] of parts) {
    const piece = make("i", { className: `s-${name}` });
    piece.style.width = `${(100 * ms) / sum}%`;
    bar.append(piece);
  }
  const items = parts.map(([name, ms]) => make("li", {}, make("i", { className: `s-${name}` }), `${NAMES[name] ?? name} ${duration(ms)}`));
  const shared = batch > 1 ? ` The steps were shared by ${batch} texts.` : "";
  return make(
    "details",
    { className: "time" },
    make("summary", {}, `${title ? `${title}: ` : ""}${duration(total)} – where the time went`),
    bar,
    make("ul", {}, ...items),
    shared ? make("p", {}, shared) : null,
  );
}
