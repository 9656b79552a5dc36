// The evidence of an answer: its places, and the whole document scrolled to the phrase.

import { call, Trouble } from "./api.js";
import { make, marked, percent, slice } from "./text.js";

const AROUND = 50_000; // characters shown before and after a place of a long document
const EDGE = 13; // pixels between the panel and the window
const LEAST = 220; // pixels that the panel has in the lowest of windows
const beside = matchMedia("(min-width: 60.01rem)"); // where the panel is next to the answers
const board = document.getElementById("board");
const panel = document.getElementById("evidence");
let turn = 0;
for (const each of ["scroll", "resize"]) addEventListener(each, () => panel.hidden || fit(), { passive: true });

/** Closes the panel, and gives the focus back to the answer it was opened from. */
export function close(focus = true) {
  turn += 1;
  panel.hidden = true;
  panel.replaceChildren();
  delete board.dataset.open;
  const opener = document.querySelector(".answer[aria-expanded=true]");
  opener?.setAttribute("aria-expanded", "false");
  if (focus) opener?.focus();
}

/**
 * Shows the places of an answer or a hit; `at` is the one to begin with.
 * A place has document_id, title, corpus, snapshot, start, end, context_start, context and, of an answer, its share.
 */
export async function show(places, more, at, moved) {
  const mine = (turn += 1);
  const place = places[at];
  panel.hidden = false;
  board.dataset.open = "";
  const inside = make("div", { className: "document", tabIndex: 0, role: "document", "aria-label": "The document" });
  panel.replaceChildren(head(places, more, at, moved), inside);
  inside.append(...passage(place, place.context, place.context_start));
  if (panel.getBoundingClientRect().top > innerHeight - 200) panel.scrollIntoView({ block: "start" });
  scroll(inside);
  const from = Math.max(place.context_start - AROUND, 0);
  const query = new URLSearchParams({ id: place.document_id, start: from, end: place.end + AROUND });
  if (place.corpus) query.set("corpus", place.corpus);
  if (place.snapshot) query.set("snapshot", place.snapshot);
  try {
    const { content } = await call("GET", `v1/documents?${query}`);
    if (mine !== turn) return;
    inside.replaceChildren(
      content.start > 0 ? make("span", { className: "part" }, "… the text before is not shown …\n") : "",
      ...passage(place, content.text, content.start),
      content.end < content.length ? make("span", { className: "part" }, "\n… the text after is not shown …") : "",
    );
    panel.querySelector(".facts").append(` · ${content.length.toLocaleString("en")} in all`, ...source(content.metadata.url));
    scroll(inside);
  } catch (error) {
    if (!(error instanceof Trouble) || mine !== turn) return;
    inside.append(make("span", { className: "part" }, `\nThe rest of the document cannot be shown: ${error.detail}`));
  }
}

/** A text with the passage tinted and the phrase, or the keys that matched, highlighted. */
function passage(place, text, first) {
  const phrase = (part) => make("mark", {}, part);
  const word = (part) => make("mark", { className: "word" }, part);
  const from = place.context_start - first;
  const length = [...place.context].length;
  const own = place.keys
    ? place.keys.map(([start, end, strong]) => [start - place.context_start, end - place.context_start, strong ? phrase : word])
    : [[place.start - place.context_start, place.end - place.context_start, phrase]];
  const inner = slice(text, from, from + length);
  return [
    slice(text, 0, from),
    make("span", { className: inner.length === text.length ? "passage whole" : "passage" }, ...marked(inner, own)),
    slice(text, from + length, [...text].length),
  ];
}

function head(places, more, at, moved) {
  const place = places[at];
  const where = place.start < place.end ? `characters ${place.start.toLocaleString("en")}–${place.end.toLocaleString("en")}` : "the title";
  const facts = [place.document_id, place.corpus && `${place.corpus}${place.snapshot ? `, snapshot ${place.snapshot}` : ""}`, where];
  const buttons = places.map((each, number) =>
    make(
      "button",
      {
        type: "button",
        "aria-pressed": String(number === at),
        onclick: () => {
          moved(number);
          show(places, more, number, moved).then(() => panel.querySelectorAll(".places button")[number]?.focus());
        },
      },
      each.share === undefined ? null : make("b", {}, percent(each.share), " "),
      each.title || each.document_id,
    ),
  );
  return make(
    "div",
    { className: "source" },
    make("button", { type: "button", className: "close", title: "Close (Esc)", "aria-label": "Close the evidence", onclick: () => close() }, "×"),
    make("h3", { tabIndex: -1 }, place.title || place.document_id),
    make("p", { className: "facts" }, copy(place, where), facts.filter(Boolean).join(" · ")),
    places.length > 1
      ? make("div", { className: "places", role: "group", "aria-label": "Places, with their shares" }, ...buttons,
          more > 0 ? make("span", { className: "facts" }, `and ${more} more`) : null)
      : place.share === undefined ? null : make("p", { className: "facts" }, `The only place: ${percent(place.share)}`),
  );
}

/** A link to where the document is from, if its metadata says so. */
function source(url) {
  if (typeof url !== "string" || !/^https?:\/\//i.test(url) || !URL.canParse(url)) return [];
  return [" · ", make("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, "source")];
}

/** Copies the phrase with its place; browsers allow it on secure pages only. */
function copy(place, where) {
  if (!navigator.clipboard || place.keys || place.start >= place.end) return null;
  const first = place.start - place.context_start;
  const phrase = slice(place.context, first, first + place.end - place.start);
  const button = make("button", { type: "button", className: "copy" }, "Copy");
  button.addEventListener("click", async () => {
    const text = `“${phrase}” (${place.title || place.document_id}, ${where})`;
    button.textContent = await navigator.clipboard.writeText(text).then(() => "Copied", () => "The browser does not allow copying");
  });
  return button;
}

/** Lets the panel end where the window does. */
function fit() {
  const top = Math.max(panel.getBoundingClientRect().top, EDGE);
  panel.style.maxHeight = beside.matches ? `${Math.max(innerHeight - top - EDGE, LEAST)}px` : "";
}

/** Brings the phrase to the middle of the panel, and into the window. */
function scroll(inside) {
  fit();
  const target = inside.querySelector("mark") ?? inside.querySelector(".passage");
  if (target) inside.scrollTop = target.offsetTop - inside.offsetTop - inside.clientHeight / 2 + target.offsetHeight / 2;
  target?.scrollIntoView({ block: "nearest" });
}
