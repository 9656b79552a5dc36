// A condition as choices: values and ranges of fields, and what else was written by hand. The grammar is the service's.

const TOKEN = /\s*('(?:[^']|'')*'|[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?![\p{L}\p{N}_.])|"[^"]+"|[\p{L}_][\p{L}\p{N}_.-]*|<=|>=|<>|!=|==?|[<>(),])/uy;
const KEYWORDS = ["and", "or", "not", "in", "between", "like", "is", "null", "true", "false"];
export const DATE = "\\d{4}(-\\d\\d(-\\d\\d([T ]\\d\\d(:\\d\\d(:\\d\\d)?)?)?)?)?";
const NUMBER = /^[+-]?\d+(\.\d*)?([eE][+-]?\d+)?$/;
const ENDS = { ">=": "from", "<=": "to" };

/** A value as a condition spells it. */
export const literal = (value) => (typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value));

const spelled = (name) => (/^[a-z_][\w.-]*$/i.test(name) && !KEYWORDS.includes(name.toLowerCase()) ? name : `"${name}"`);
export const unchosen = () => ({ values: [], from: "", to: "" });

/** The choices by field, {values, from, to}, each value spelled, and the other parts of a condition, all joined by `and`;
 * `once`, which comes at its end without one, is the last of these. */
export function read(text, fields) {
  const once = /(^|[\s)'])once\s*$/i.test(text);
  if (once) {
    const { chosen, rest } = read(text.replace(/once\s*$/i, ""), fields);
    return { chosen, rest: [...rest, "once"] };
  }
  const chosen = new Map();
  const rest = [];
  const found = text.trim() ? parts(text) : null;
  if (!found) return { chosen, rest: text.trim() ? [text.trim()] : [] };
  if (found.isEither) return { chosen, rest: [`(${text.trim()})`] };
  for (const words of found) {
    const field = fields.find((each) => [each.name, `"${each.name}"`].includes(words[0].word));
    const own = { ...unchosen(), ...chosen.get(field?.name) };
    if (field && choose(own, field, words.slice(1).map((each) => each.word))) chosen.set(field.name, own);
    else rest.push(text.slice(words[0].start, words.at(-1).end));
  }
  return { chosen, rest };
}

/** The condition of these choices, in the order of the fields. */
export function write(chosen, rest, fields) {
  const tests = fields.flatMap(({ name, values }) => {
    const own = chosen.get(name) ?? unchosen();
    const ordered = values.filter((each) => own.values.includes(each));
    const one = ordered.length > 1 ? ` in (${ordered.join(", ")})` : ordered.map((each) => ` = ${each}`);
    return [one, own.from && ` >= ${own.from}`, own.to && ` <= ${own.to}`].flat().filter(Boolean).map((each) => spelled(name) + each);
  });
  const every = [...tests, ...rest];
  const once = every.at(-1) === "once" ? [every.pop()] : [];
  return [every.join(" and "), ...once].filter(Boolean).join(" ");
}

/** Takes what a part of a condition says about a field, unless the choices cannot show it. */
function choose(own, field, [sign, ...words]) {
  const end = ENDS[sign];
  if (end && words.length === 1) {
    const fits = field.kind === "date" ? new RegExp(`^'${DATE}'$`).test(words[0]) : field.kind === "number" && NUMBER.test(words[0]);
    if (!fits || own[end]) return false;
    own[end] = words[0];
    return true;
  }
  const listed = sign?.toLowerCase() === "in" && words[0] === "(" && words.at(-1) === ")";
  const values = listed ? words.slice(1, -1).filter((_, at) => at % 2 === 0) : sign === "=" && words.length === 1 ? words : [];
  if (!values.length || own.values.length || !values.every((each) => field.values.includes(each))) return false;
  own.values = values;
  return true;
}

/** The parts of a condition between its outermost `and`, as words with their places (`isEither` if there is an outermost
 * `or`); null if it cannot be read. */
function parts(text) {
  const found = [[]];
  let depth = 0, between = false, end = 0;
  while (text.slice(end).trim()) {
    TOKEN.lastIndex = end;
    const word = TOKEN.exec(text)?.[1];
    if (!word) return null;
    end = TOKEN.lastIndex;
    const key = word.toLowerCase();
    depth += (key === "(") - (key === ")");
    if (depth < 0) return null;
    if (depth === 0 && key === "or") found.isEither = true;
    if (depth === 0 && key === "and" && !between) found.push([]);
    else found.at(-1).push({ word, start: end - word.length, end });
    if (key === "between" || key === "and") between = key === "between";
  }
  return depth === 0 && found.every((each) => each.length) ? found : null;
}
