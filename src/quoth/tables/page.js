// Sorts and filters the table, and keeps what a person says of its cells until it is saved as a file.
const table = document.querySelector("table"), body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
const by = id => document.getElementById(id), own = new Intl.Collator(undefined, {numeric: true});
const make = (name, text, more = {}) => Object.assign(document.createElement(name), {textContent: text ?? ""}, more);
const compared = (x, y) => x === "" || y === "" || isNaN(x) || isNaN(y) ? own.compare(x, y) : x - y;
const column = cell => heads[cell.cellIndex].dataset.name;

// Sorting
heads.forEach((head, at) => head.querySelector("button").onclick = () => {
  const up = head.getAttribute("aria-sort") !== "ascending";
  heads.forEach(each => each.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const order = (a, b) => {
    const [x, y] = [a.cells[at].dataset.v, b.cells[at].dataset.v];
    if (!x || !y) return x ? -1 : y ? 1 : 0;
    return up ? compared(x, y) : compared(y, x);
  };
  body.append(...[...body.rows].sort(order));
});

// Filters: words, the state of cells, the values of columns
const facets = heads.map(() => ({chosen: new Set(), from: "", to: ""}));
const isOn = facet => facet.chosen.size || facet.from || facet.to;
const valuesOf = cell => heads[cell.cellIndex].dataset.kind === "list" ? cell.dataset.v.split("; ") : [cell.dataset.v];
const STATES = {
  open: cell => ["answered", "unsure", "not_found"].includes(cell.dataset.s), filled: cell => cell.dataset.v,
  empty: cell => !cell.dataset.v, confirmed: cell => cell.dataset.s === "confirmed", gone: cell => cell.querySelector(".gone"),
};
const words = new WeakMap();
function wordsOf(row) {
  if (!words.has(row))
    words.set(row, [...row.cells].map(each => each.textContent + (each.querySelector("template")?.content.textContent ?? "")).join("\n").toLowerCase());
  return words.get(row);
}
function isShown(row, but) {
  const word = by("find").value.toLowerCase(), state = STATES[by("state").value];
  if (word && !wordsOf(row).includes(word)) return false;
  if (state && ![...row.cells].slice(1).some(state)) return false;
  return facets.every(({chosen, from, to}, at) => {
    const cell = row.cells[at];
    if (at === but) return true;
    if (chosen.size && !valuesOf(cell).some(each => chosen.has(each))) return false;
    if (!from && !to) return true;
    return cell.dataset.v && (!from || compared(cell.dataset.v, from) >= 0) && (!to || compared(cell.dataset.v, to) <= 0);
  });
}
function filter() {
  let count = 0;
  for (const row of body.rows) count += !(row.hidden = !isShown(row));
  by("count").textContent = `${count} of ${body.rows.length} rows`;
  heads.forEach((head, at) => head.querySelector(".facet").classList.toggle("on", Boolean(isOn(facets[at]))));
}
by("find").oninput = by("state").onchange = filter;
function choices(head, at) {
  const facet = facets[at], counts = new Map(facet.chosen.size ? [...facet.chosen].map(each => [each, 0]) : []), box = make("div");
  for (const row of body.rows) if (isShown(row, at))
    for (const each of valuesOf(row.cells[at])) counts.set(each, (counts.get(each) ?? 0) + 1);
  if (["number", "money", "date"].includes(head.dataset.kind)) {
    const range = make("div", "", {className: "range"});
    for (const name of ["from", "to"])
      range.append(make("input", "", {placeholder: name, ariaLabel: name, value: facet[name], oninput: event => { facet[name] = event.target.value.trim(); filter(); }}));
    box.append(range);
  }
  for (const [each, count] of [...counts].sort((a, b) => b[1] - a[1] || own.compare(a[0], b[0])).slice(0, 300)) {
    const tick = make("input", "", {type: "checkbox", checked: facet.chosen.has(each)});
    tick.onchange = () => { facet.chosen[tick.checked ? "add" : "delete"](each); filter(); };
    const label = make("label");
    label.append(tick, make("span", each || "(empty)", {title: each}), make("small", count));
    box.append(label);
  }
  return box;
}

// Corrections
const said = new Map();
let file = null, saved = 0;
const unsaved = () => said.size && saved !== [...said.values()].map(each => each.when).sort().at(-1);
const fileName = `${table.dataset.name}.corrections-${new Date().toISOString().slice(0, 19).replace(/\D/g, "")}.json`;
function correct(cell, text, more = {}, value = text) {
  const row = cell.parentElement, key = JSON.stringify([row.dataset.id, column(cell)]);
  const known = {document_id: row.dataset.id, column: column(cell), text, ...more, digest: row.dataset.digest, when: new Date().toISOString()};
  if (!known.digest) delete known.digest;
  said.set(key, known);
  cell.dataset.v = value ?? "";
  cell.dataset.s = text === null ? "unsure" : "confirmed";
  cell.classList.add("fresh");
  cell.querySelector("button").replaceChildren(make("bdi", text === null ? "taken back" : value || "not stated", {className: text ? "" : "empty"}));
  words.delete(row);
  tell();
  filter();
  if (file) save();
  next(cell);
}
function next(cell) {
  let row = cell.parentElement;
  const isDone = other => row.hidden || other.dataset.s === "confirmed" || !other.querySelector("button");
  while ((row = row.nextElementSibling) && isDone(row.cells[cell.cellIndex]));
  if (!row) return close(cell);
  open(row.cells[cell.cellIndex]);
  row.scrollIntoView({block: "nearest"});
}
function tell(what = "") {
  by("save").hidden = !said.size;
  by("save").disabled = !unsaved();
  by("save").textContent = `Save ${said.size} correction${said.size === 1 ? "" : "s"}`;
  by("told").textContent = what;
}
async function write() {
  const last = [...said.values()].map(each => each.when).sort().at(-1), content = JSON.stringify({corrections: [...said.values()]}, null, 1);
  if (file) {
    const stream = await file.createWritable();
    await stream.write(content);
    await stream.close();
  } else {
    const link = make("a", "", {href: URL.createObjectURL(new Blob([content], {type: "application/json"})), download: fileName});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  saved = last;
  tell(file ? `saved in ${file.name}` : `saved as ${fileName}; put it beside the table`);
}
async function save() {
  try {
    if (!file && window.showSaveFilePicker) file = await showSaveFilePicker({suggestedName: fileName, id: "quoth"});
    await write();
  } catch (error) {
    if (error.name !== "AbortError") tell(`not saved: ${error.message}`);
  }
}
by("save").onclick = save;
window.onbeforeunload = event => { if (unsaved()) event.preventDefault(); };

// The panel of the open cell
const panel = document.querySelector("aside");
function close(cell) {
  panel.hidden = true;
  cell.classList.remove("open");
  cell.querySelector("button").focus();
}
function open(cell) {
  body.querySelector("td.open")?.classList.remove("open");
  cell.classList.add("open");
  panel.hidden = false;
  panel.scrollTop = 0;
  panel.replaceChildren(toolsOf(cell), cell.querySelector("template").content.cloneNode(true));
  for (const quote of panel.querySelectorAll("blockquote")) {
    const use = make("button", quote.dataset.own ? "Right" : "Use this");
    use.onclick = () => correct(cell, wordsIn(quote), placeOf(quote), quote.dataset.v);
    quote.append(use);
  }
  (panel.querySelector("blockquote button") ?? panel.querySelector("button")).focus({preventScroll: true});
}
const wordsIn = quote => quote.querySelector("mark").textContent;
const placeOf = ({dataset: {start, sentence}}) => start ? {start: Number(start), sentence} : {};
function toolsOf(cell) {
  const tools = make("div", "", {className: "tools"}), kind = heads[cell.cellIndex].dataset.kind;
  const text = make("input", "", {placeholder: "other words of the document", ariaLabel: "quotation"});
  const value = make("input", "", {placeholder: "their value, if it is not clear", ariaLabel: "value", hidden: kind === "text"});
  const set = make("button", "Set", {onclick: () => {
    const best = panel.querySelector("blockquote"), means = value.value.trim(), typed = text.value.trim();
    const place = typed || !best ? {} : placeOf(best), quotation = typed || (means && best && wordsIn(best));
    if (quotation) correct(cell, quotation, means ? {...place, value: means} : place, means || quotation);
  }});
  text.onkeydown = value.onkeydown = event => { if (event.key === "Enter") set.click(); };
  tools.append(
    make("h2", `${cell.parentElement.dataset.id} · ${column(cell)}`), make("button", "Not stated", {onclick: () => correct(cell, "")}),
    text, value, set, make("button", "Take back", {onclick: () => correct(cell, null), hidden: cell.dataset.s !== "confirmed"}));
  return tools;
}
body.addEventListener("click", event => {
  const cell = event.target.closest("button")?.closest("td");
  if (cell) cell.classList.contains("open") ? close(cell) : open(cell);
});
document.addEventListener("toggle", ({target}) => {
  target.querySelector("div")?.remove();
  const head = target.closest("th");
  if (target.open) target.append(choices(head, head.cellIndex));
}, true);
document.addEventListener("keydown", event => {
  const facet = document.querySelector(".facet[open]"), cell = body.querySelector("td.open");
  if (event.key !== "Escape") return;
  if (facet) { facet.open = false; facet.querySelector("summary").focus(); }
  else if (cell) close(cell);
});
document.addEventListener("click", event => {
  for (const each of document.querySelectorAll(".facet[open]")) if (!each.contains(event.target)) each.open = false;
});
filter();
