// The page: what was asked, in the address, and what the service says to it.

import { call, keep, Trouble } from "./api.js";
import { checkList } from "./check.js";
import { close, show } from "./evidence.js";
import * as filter from "./filter.js";
import { answerList, hitList, timeSpent } from "./results.js";
import { make } from "./text.js";

const BLANK = /\[MASK\]|<mask>|_{3,}/g;
const SLOW = 350; // milliseconds until the page says that it is waiting
const PAUSE = 600; // milliseconds after a choice of the filter until it is asked: several may be made
const WIDE = matchMedia("(min-width: 60rem)"); // where the best answer's evidence is shown beside it at once
const CONDITION = /^where\b|: no document where /; // what the service says is wrong with a condition
const $ = (id) => document.getElementById(id);
const GO = { ask: "Ask", search: "Search", classify: "Classify", check: "Check" };
const LABEL = {
  ask: ["A question, or a sentence with ", make("kbd", {}, "___"), " for each blank"],
  search: ["What to look for"],
  classify: ["A text to label"],
  check: ["A draft: its quotations are compared with the corpus. Paste it, or drop a text file here"],
};
const MODES = { auto: "words and meaning", bm25: "words", dense: "vectors", entity: "entities", hybrid: "all of these" };
let view = "ask";
let about = null;
let running = null;
let later = 0;
let offered = null; // the place whose fields the filter shows

/** Where to ask: "" is everything, "name" a corpus, "name@2" its snapshot 2; a name may have an @ itself. */
function target(value) {
  const [, corpus, snapshot] = value.match(/^(.*)@(\d+)$/) ?? [];
  if (!corpus || about.corpora.some((each) => each.name === value)) return value ? { corpus: value } : {};
  return { corpus, snapshot: Number(snapshot) };
}

function named(value) {
  const { corpus, snapshot } = target(value);
  const latest = about.corpora.find((each) => each.name === corpus)?.snapshot;
  return corpus ? `${corpus}, snapshot ${snapshot ?? latest}` : "all corpora";
}

function choose(name, moveFocus = false) {
  view = name;
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const own = tab.dataset.view === name;
    tab.setAttribute("aria-selected", String(own));
    tab.tabIndex = own ? 0 : -1;
    if (own && moveFocus) tab.focus();
  }
  $("form").setAttribute("aria-labelledby", `tab-${name}`);
  $("text-label").replaceChildren(...LABEL[name].map((each) => (each.cloneNode ? each.cloneNode(true) : each)));
  $("go").textContent = GO[name];
  $("hint").firstElementChild.textContent = name === "check" ? "Ctrl Enter" : "Enter"; // a draft has lines
  $("labels-field").hidden = name !== "classify";
  $("mode-field").hidden = name !== "search";
}

function stated() {
  const state = new URLSearchParams({ view, q: $("text").value.trim() });
  if (view === "classify") state.set("labels", $("labels").value);
  if (view === "search") state.set("by", $("mode").value);
  if ($("corpus").value) state.set("in", $("corpus").value);
  if ($("compare").value) state.set("with", $("compare").value);
  if ($("where").value.trim()) state.set("where", $("where").value.trim());
  return state;
}

/** Puts what the address says into the form, and asks it. */
async function restore() {
  const state = new URLSearchParams(location.hash.slice(1));
  const set = (id, value) => {
    if ([...$(id).options].some((each) => each.value === value)) $(id).value = value;
  };
  choose(state.get("view") in GO ? state.get("view") : "ask");
  $("text").value = state.get("q") ?? "";
  if (state.has("labels")) $("labels").value = state.get("labels");
  set("mode", state.get("by") ?? about.modes[0]);
  set("corpus", state.get("in") ?? $("corpus").options[0]?.value ?? "");
  set("compare", state.get("with") ?? "");
  filter.set(state.get("where") ?? "");
  offer();
  grow();
  if (state.get("q")) await run(state);
  else empty();
}

/** Shows the fields of the documents of the chosen place, unless they are shown already. */
async function offer() {
  const place = $("corpus").value;
  if (place === offered || !about.where) return;
  offered = place;
  const none = { documents: 0, fields: [] };
  const { content } = await call("GET", `v1/fields?${new URLSearchParams(target(place))}`).catch(() => ({ content: none }));
  if (place === offered) filter.offer(content);
}

/** Asks again, if something was asked. */
function repeat() {
  if ($("text").value.trim()) submit();
}

function submit() {
  clearTimeout(later);
  const state = stated();
  if (!state.get("q")) return $("text").focus();
  if (view === "classify" && Object.keys(labelled(state)).length < 2) return unlabelled();
  history.pushState(null, "", `#${state}`);
  return run(state);
}

function remember(state, answer, place) {
  state.set("answer", answer);
  state.set("place", place);
  history.replaceState(null, "", `#${state}`);
}

/** The request of each view. */
function request(state, place) {
  const text = state.get("q");
  const where = state.has("where") ? { ...place, where: state.get("where") } : place;
  if (state.get("view") === "search") {
    return ["v1/search", { query: text, k: 10, mode: state.get("by") ?? about.modes[0], words: true, ...where }];
  }
  if (state.get("view") === "classify") {
    return ["v1/classify", { text, labels: labelled(state), ...where }];
  }
  if (state.get("view") === "check") return ["v1/check", { text, ...where }];
  const blanks = [...text.matchAll(BLANK)];
  if (!blanks.length) return ["v1/ask", { question: text, ...where }];
  return ["v1/fill", { text: blanks.length === 1 ? text : blanks.map((_, i) => only(text, i)), ...where }];
}

/** The words of each label: `city: capital, town`, one label per line. */
function labelled(state) {
  const lines = (state.get("labels") ?? "").split("\n").filter((line) => line.includes(":"));
  const words = (line) => line.slice(line.indexOf(":") + 1).split(",").map((each) => each.trim()).filter(Boolean);
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(":")).trim(), words(line)]));
}

/** Asks for labels: which ones make sense, only the reader of this corpus knows. */
function unlabelled() {
  empty();
  const said = "Name two labels or more, one per line, each with words of the corpus that express it, such as “city: capital, town”.";
  $("problem").replaceChildren(make("div", { className: "trouble" }, make("p", {}, said)));
  $("labels").focus();
}

/** A text with one of its blanks, the others left open. */
function only(text, number) {
  let at = -1;
  return text.replace(BLANK, () => ((at += 1) === number ? "[MASK]" : "…"));
}

/** Makes the form smaller once something is asked, so that more of the answers is seen. */
function shrink(asked) {
  document.querySelector(".asking").toggleAttribute("data-asked", asked);
  grow();
}

async function run(state) {
  running?.abort();
  shrink(true);
  const mine = (running = new AbortController());
  close(false);
  $("problem").replaceChildren();
  filter.tell("");
  const timer = setTimeout(() => waiting(state, mine), SLOW);
  const places = [state.get("in") ?? $("corpus").options[0]?.value ?? "", ...(state.get("with") ? [state.get("with")] : [])];
  try {
    const replies = await Promise.all(
      places.map((each) => {
        const [path, body] = request(state, target(each));
        return call("POST", path, { body, signal: mine.signal });
      }),
    );
    if (mine === running) render(state, places, replies);
  } catch (error) {
    if (mine === running && error.name !== "AbortError") trouble(error, () => run(state));
  } finally {
    clearTimeout(timer);
    if (mine === running) $("board").removeAttribute("aria-busy");
  }
}

function render(state, places, replies) {
  const columns = replies.map((reply, number) => ({ ...reply, title: named(places[number]) }));
  const list = { search: hitList, check: checkList }[state.get("view")] ?? answerList;
  const open = (item, number, place) => {
    document.querySelector(".answer[aria-expanded=true]")?.setAttribute("aria-expanded", "false");
    item.button.setAttribute("aria-expanded", "true");
    remember(state, number, place);
    show(item.places, item.more, place, (moved) => remember(state, number, moved), about.files);
  };
  const built = list(columns, state.get("q"), open, { only, BLANK, view: state.get("view") });
  $("board").dataset.columns = String(columns.length);
  $("answers").replaceChildren(built.element, ...columns.map((each) => timeSpent(each.times, columns.length > 1 ? each.title : "")));
  $("status").textContent = built.said;
  const at = Number(state.get("answer"));
  const wanted = state.has("answer") || (WIDE.matches && built.found);
  if (wanted && built.items[at]?.places.length) {
    open(built.items[at], at, Math.min(Number(state.get("place")) || 0, built.items[at].places.length - 1));
  }
}

function empty() {
  if (!about) return; // nothing is known yet: there is no answer, or no token
  running?.abort();
  close(false);
  shrink(false);
  $("problem").replaceChildren();
  const documents = about.corpora.reduce((sum, each) => sum + each.documents, 0);
  const said = documents
    ? "Ask something. The answer is a phrase of the corpus, shown where it occurs; if it is unsure, or none is found, the page says so."
    : "The corpus has no documents yet. Add some with: quoth add DIR DOCS";
  const examples = view === "ask" ? about.examples : [];
  const offer = (text) => make("button", { type: "button", onclick: () => { $("text").value = text; grow(); submit(); } }, text);
  $("answers").replaceChildren(
    make(
      "div",
      { className: "empty" },
      make("span", { className: "quote", "aria-hidden": "true" }, "“"),
      make("p", {}, said),
      examples.length ? make("p", { className: "examples" }, ...examples.map(offer)) : null,
    ),
  );
}

function waiting(state, mine) {
  const verb = { search: "Searching", classify: "Comparing labels", check: "Checking" }[state.get("view")] ?? "Reading";
  const begin = Date.now();
  const clock = make("span", {}, `${verb} …`);
  const tick = setInterval(() => {
    clock.textContent = `${verb} … ${Math.round((Date.now() - begin + SLOW) / 1000)} s`;
    if (!clock.isConnected) clearInterval(tick);
  }, 1000);
  const stop = make("button", { type: "button", onclick: () => { mine.abort(); empty(); $("text").focus(); } }, "Stop");
  $("board").setAttribute("aria-busy", "true");
  $("status").textContent = `${verb}.`;
  $("answers").replaceChildren(make("div", { className: "waiting" }, make("p", {}, clock, stop), make("div"), make("div"), make("div")));
}

function trouble(error, again) {
  if (!(error instanceof Trouble)) throw error;
  $("answers").replaceChildren();
  if (error.status === 401) return askKey(again);
  if (CONDITION.test(error.detail)) return filter.tell(error.detail);
  const retry = make("button", { type: "button", onclick: again }, "Try again");
  const box = make("div", { className: "trouble" }, make("p", {}, error.plain), retry);
  $("problem").replaceChildren(box);
  if (error.after) {
    let left = error.after;
    const count = () => {
      if (!retry.isConnected) return;
      if (left <= 0) return again();
      retry.textContent = `Try again (${left} s)`;
      left -= 1;
      setTimeout(count, 1000);
    };
    count();
  }
}

function askKey(again) {
  const field = make("input", { type: "password", autocomplete: "current-password", required: true, id: "token" });
  const form = make("form", { className: "key" }, make("label", { htmlFor: "token" }, "This service asks for its token:"), field, make("button", {}, "Use it"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    keep(field.value.trim());
    $("problem").replaceChildren();
    again();
  });
  $("problem").replaceChildren(form);
  field.focus();
}

function grow() {
  $("text").style.height = "auto";
  $("text").style.height = `${$("text").scrollHeight + 2}px`;
}

function walk(event) {
  const buttons = [...document.querySelectorAll(".answer")];
  const at = buttons.indexOf(document.activeElement);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || !buttons.length || event.altKey || event.ctrlKey || event.metaKey) return;
  if (at < 0 && !(document.activeElement === $("text") && step > 0)) return;
  event.preventDefault();
  if (at + step < 0) $("text").focus();
  else buttons[Math.min(at + step, buttons.length - 1)].focus();
}

function listen() {
  $("form").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  $("text").addEventListener("input", grow);
  $("text").addEventListener("drop", async (event) => {
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    $("text").value = await file.text();
    grow();
  });
  $("text").addEventListener("keydown", (event) => {
    const sends = view === "check" ? event.ctrlKey || event.metaKey : !event.shiftKey;
    if (event.key === "Enter" && sends && !event.isComposing) { event.preventDefault(); submit(); }
  });
  for (const id of ["corpus", "compare", "mode"]) $(id).addEventListener("change", repeat);
  $("corpus").addEventListener("change", offer);
  filter.listen(() => { clearTimeout(later); later = setTimeout(repeat, PAUSE); }, submit);
  for (const tab of document.querySelectorAll("[role=tab]")) {
    tab.addEventListener("click", () => { choose(tab.dataset.view); empty(); });
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const names = Object.keys(GO);
      if (step) choose(names[(names.indexOf(tab.dataset.view) + step + names.length) % names.length], true);
    });
  }
  document.addEventListener("keydown", (event) => {
    const writing = ["INPUT", "TEXTAREA", "SELECT"].includes(document.activeElement?.tagName);
    if (event.key === "/" && !writing) { event.preventDefault(); $("text").focus(); $("text").select(); }
    else if (event.key === "Escape" && !$("evidence").hidden) close();
    else walk(event);
  });
  window.addEventListener("popstate", restore);
}

/** What is served, in the form and around it. */
function introduce() {
  const options = about.corpora.flatMap((each) => [
    [each.name, `${each.name}, snapshot ${each.snapshot} (latest)`],
    ...each.snapshots.filter((number) => number !== each.snapshot).reverse().map((number) => [`${each.name}@${number}`, `${each.name}, snapshot ${number}`]),
  ]);
  const element = ([value, text]) => make("option", { value }, text);
  $("corpus").replaceChildren(...(about.corpora.length > 1 ? [["", "all corpora"]] : []).concat(options).map(element));
  $("compare").replaceChildren(...[["", "nothing"], ...options].map(element));
  $("compare-field").hidden = options.length < 2;
  $("mode").replaceChildren(...about.modes.map((mode) => element([mode, MODES[mode]])));
  const count = (number, thing) => `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;
  $("served").textContent = about.corpora.map((each) => `${each.name}: ${count(each.documents, "document")}, ${count(each.passages, "passage")}${each.name in (about.vectors ?? {}) ? ` (vectors: ${about.vectors[each.name]})` : ""}`).join(" · ");
  const models = [...new Set([about.models.fill, about.models.ask, ...about.models.search])].join(", ");
  $("footer").replaceChildren(`Quoth ${about.version} · ${models} · `, make("a", { href: "v1/openapi.json" }, "the service, described"));
}

async function begin() {
  try {
    about = (await call("GET", "v1/corpus")).content;
  } catch (error) {
    return trouble(error, begin);
  }
  if (!about.modes.includes("auto")) { // without vectors, auto goes by words, and reads misspelt ones as the command line does
    about.modes = about.modes.map((mode) => (mode === "bm25" ? "auto" : mode));
    MODES.auto = MODES.bm25;
  }
  introduce();
  await restore();
  if (!location.hash) $("text").focus();
}

listen();
begin();
