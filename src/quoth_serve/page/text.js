// Texts by code points: the service counts characters so, a browser counts UTF-16 units.

const SAID = 100; // characters of a sentence that are shown before and after a phrase

/** Builds an element. Strings become text, never markup. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !["list", "role"].includes(name)) element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** The places of code points in a string's UTF-16 units; `at` ascends. */
export function units(text, at) {
  const found = [];
  let point = 0, unit = 0;
  for (const wanted of at) {
    while (point < wanted && unit < text.length) {
      unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
      point += 1;
    }
    found.push(unit);
  }
  return found;
}

/** Where the phrase of a place is in its context. */
export const inContext = ({ start, end, context_start }) => [start - context_start, end - context_start];

/** A place in a file as short as can be, to tell those in one document apart. */
export function briefly(location) {
  const { page, sheet, cell, slide, line } = location ?? {};
  if (page !== undefined) return `p. ${page}`;
  if (slide !== undefined) return `slide ${slide}`;
  if (cell !== undefined) return [sheet, cell].filter(Boolean).join(" ");
  return line === undefined ? null : `line ${line}`;
}

/** The part of a text from one code point to another. */
export function slice(text, start, end) {
  const [first, last] = units(text, [start, end]);
  return text.slice(first, last);
}

/** A text with elements around some of its ranges [start, end, element], which do not overlap. */
export function marked(text, ranges) {
  const ordered = [...ranges].sort((a, b) => a[0] - b[0]);
  const parts = [];
  let at = 0;
  const length = [...text].length;
  for (const [start, end, wrap] of ordered) {
    if (start < at || end > length || start >= end) continue;
    parts.push(slice(text, at, start), wrap(slice(text, start, end)));
    at = end;
  }
  parts.push(slice(text, at, length));
  return parts;
}

/** The sentence around a phrase, as the texts before it, of it and after it; a long one is cut at words. */
export function around(text, start, end) {
  const [first, last] = units(text, [start, end]);
  const before = text.slice(0, first).split(/[.!?]\s+|\n/).at(-1);
  const after = text.slice(last).match(/^.*?(?:[.!?](?=\s)|\n|$)/s)[0].trimEnd();
  const left = before.length > SAID ? `… ${before.slice(-SAID).replace(/^\S*\s/, "")}` : before;
  const right = after.length > SAID ? `${after.slice(0, SAID).replace(/\s\S*$/, "")} …` : after;
  return [left, text.slice(first, last), right];
}

/** A probability as people read it: 0.2 %, 97 %; never 100 % for less than certain. */
export function percent(share) {
  if (share === null || Number.isNaN(share)) return "–";
  const value = 100 * share;
  if (value > 0 && value < 0.1) return "< 0.1 %";
  if (value > 99 && value < 100) return value.toFixed(1).replace("100.0", "99.9") + " %";
  return (value < 0.95 ? value.toFixed(1) : value.toFixed(0)) + " %";
}

/** Milliseconds as people read them. */
export function duration(ms) {
  return ms < 10 ? `${ms.toFixed(1)} ms` : ms < 1000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
