// The evidence of an answer: its places, and the whole document, or the page of a PDF, scrolled to the phrase.

import { call, load, Trouble } from "./api.js";
import { briefly, inContext, make, marked, percent, slice } from "./text.js";

const AROUND = 50_000; // characters shown before and after a place of a long document
const EDGE = 13; // pixels between the panel and the window
const LEAST = 220; // pixels that the panel has in the lowest of windows
const beside = matchMedia("(min-width: 60.01rem)"); // where the panel is next to the answers
const board = document.getElementById("board");
const panel = document.getElementById("evidence");
let turn = 0;
let asText = false; // whether a document is shown as text where its page could be
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
 * A place has document_id, title, corpus, snapshot, start, end, context_start, context, perhaps its location in a file
 * and, of an answer, its share. `files` says whether the service shows pages and files.
 */
export async function show(places, more, at, moved, files) {
  const mine = (turn += 1);
  const place = places[at];
  panel.hidden = false;
  board.dataset.open = "";
  const inside = make("div", { className: "document", tabIndex: 0, role: "document", "aria-label": "The document" });
  panel.replaceChildren(head(places, more, at, moved, files), inside);
  inside.append(...passage(place, place.context, place.context_start));
  const choosing = document.activeElement?.closest("#filter"); // whoever chooses stays there
  if (!choosing && panel.getBoundingClientRect().top > innerHeight - 200) panel.scrollIntoView({ block: "start" });
  scroll(inside);
  const page = files && place.location?.page;
  if (page) panel.append(sheet(place, page, inside, mine));
  const from = Math.max(place.context_start - AROUND, 0);
  try {
    const { content } = await call("GET", `v1/documents?${named(place, { start: from, end: place.end + AROUND })}`);
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

/** The parameters of a request for a place's document. */
function named(place, more = {}) {
  const query = new URLSearchParams({ id: place.document_id, ...more });
  if (place.corpus) query.set("corpus", place.corpus);
  if (place.snapshot) query.set("snapshot", place.snapshot);
  return query;
}

/** The page that a place is on, as a picture with the phrase marked, in place of the text `inside` unless that is wanted. */
function sheet(place, page, inside, mine) {
  const frame = make("div", { className: "document sheet", tabIndex: 0, role: "document", "aria-label": `Page ${page}` });
  const choices = [[`Page ${page}`, false], ["Text", true]].map(([name, text]) =>
    make("button", { type: "button", className: "copy", onclick: () => { asText = text; choose(); } }, name),
  );
  const choose = () => {
    choices.forEach((each, number) => each.setAttribute("aria-pressed", String(asText === Boolean(number))));
    [inside.hidden, frame.hidden] = [!asText, asText];
    if (asText) scroll(inside);
    else if (frame.firstChild?.tagName === "CANVAS") middle(frame, place);
    else draw(frame, place, page, mine);
  };
  panel.querySelector(".facts").prepend(make("span", { className: "shown-as", role: "group", "aria-label": "Show" }, ...choices));
  queueMicrotask(choose); // when the frame is in the panel and has a width
  return frame;
}

async function draw(frame, place, page, mine) {
  frame.replaceChildren(make("span", { className: "part" }, "Drawing the page …"));
  const width = Math.min(Math.max(Math.round(frame.clientWidth * devicePixelRatio), 100), 2000);
  try {
    const image = await createImageBitmap(await load(`v1/documents/page?${named(place, { start: place.start, end: place.end, width })}`));
    if (mine !== turn) return;
    const label = `A picture of page ${page}, with the phrase marked`;
    const canvas = make("canvas", { width: image.width, height: image.height, role: "img", "aria-label": label });
    canvas.getContext("2d").drawImage(image, 0, 0);
    frame.replaceChildren(canvas);
    middle(frame, place);
  } catch (error) {
    if (!(error instanceof Trouble) || mine !== turn) return;
    frame.replaceChildren(make("span", { className: "part" }, `The page cannot be shown: ${error.detail}`));
  }
}

/** Brings the phrase to the middle of the frame. */
function middle(frame, place) {
  fit();
  const [, top, , bottom] = place.location.rectangles[0];
  frame.scrollTop = ((top + bottom) / 200) * frame.scrollHeight - frame.clientHeight / 2;
}

/** A text with the passage tinted and the phrase, or the keys that matched, highlighted. */
function passage(place, text, first) {
  const phrase = (part) => make("mark", {}, part);
  const word = (part) => make("mark", { className: "word" }, part);
  const from = place.context_start - first;
  const length = [...place.context].length;
  const own = place.keys
    ? place.keys.map(([start, end, strong]) => [start - place.context_start, end - place.context_start, strong ? phrase : word])
    : [[...inContext(place), phrase]];
  const inner = slice(text, from, from + length);
  return [
    slice(text, 0, from),
    make("span", { className: inner.length === text.length ? "passage whole" : "passage" }, ...marked(inner, own)),
    slice(text, from + length, [...text].length),
  ];
}

function head(places, more, at, moved, files) {
  const place = places[at];
  const characters = place.start < place.end ? `characters ${place.start.toLocaleString("en")}–${place.end.toLocaleString("en")}` : "the title";
  const where = [located(place.location), characters].filter(Boolean).join(", ");
  const facts = [place.document_id, place.corpus && `${place.corpus}${place.snapshot ? `, snapshot ${place.snapshot}` : ""}`, where];
  const buttons = places.map((each, number) =>
    make(
      "button",
      {
        type: "button",
        "aria-pressed": String(number === at),
        onclick: () => {
          moved(number);
          show(places, more, number, moved, files).then(() => panel.querySelectorAll(".places button")[number]?.focus());
        },
      },
      each.share === undefined ? null : make("b", {}, percent(each.share)),
      make("span", {}, each.title || each.document_id),
      briefly(each.location),
    ),
  );
  return make(
    "div",
    { className: "source" },
    make("button", { type: "button", className: "close", title: "Close (Esc)", "aria-label": "Close the evidence", onclick: () => close() }, "×"),
    make("h3", { tabIndex: -1 }, [place.title || place.document_id, ...(place.path ?? [])].join(" › ")),
    make("p", { className: "facts" }, ...copies(place, where), files && place.location ? saver(place) : null, facts.filter(Boolean).join(" · ")),
    places.length > 1
      ? make("div", { className: "places", role: "group", "aria-label": "Places, with their shares" }, ...buttons,
          more > 0 ? make("span", { className: "facts" }, `and ${more} more`) : null)
      : place.share === undefined ? null : make("p", { className: "facts" }, `The only place: ${percent(place.share)}`),
  );
}

/** A place in a file in words, as the command line has them. */
function located(location = {}) {
  const names = ["page", "sheet", "cell", "slide", "line"].filter((name) => location[name] !== undefined);
  return [...names.map((name) => `${name} ${location[name]}`), location.element].filter(Boolean).join(", ");
}

/** Saves the file that a document is from. */
function saver(place) {
  const button = make("button", { type: "button", className: "copy" }, "Save the file");
  button.addEventListener("click", async () => {
    try {
      const href = URL.createObjectURL(await load(`v1/documents/file?${named(place)}`));
      make("a", { href, download: place.document_id.split("/").at(-1) }).click();
      setTimeout(() => URL.revokeObjectURL(href), 60_000);
    } catch (error) {
      if (!(error instanceof Trouble)) throw error;
      button.textContent = error.plain;
    }
  });
  return button;
}

/** A link to where the document is from, if its metadata says so. */
function source(url) {
  if (typeof url !== "string" || !/^https?:\/\//i.test(url) || !URL.canParse(url)) return [];
  return [" · ", make("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, "source")];
}

/** Copies the phrase with its place, or the place alone; browsers allow it on secure pages only. */
function copies(place, where) {
  if (!navigator.clipboard || place.keys || place.start >= place.end) return [];
  const phrase = slice(place.context, ...inContext(place));
  const source = [[place.title || place.document_id, ...(place.path ?? [])].join(" › "), where].join(", ");
  return [["Copy as quotation", `“${phrase}” (${source})`], ["Cite", source]].map(([name, text]) => {
    const button = make("button", { type: "button", className: "copy" }, name);
    button.addEventListener("click", async () => {
      button.textContent = await navigator.clipboard.writeText(text).then(() => "Copied", () => "The browser does not allow copying");
    });
    return button;
  });
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
