// The service's routes, and what went wrong as one kind of error.

const KEY = "quoth-token";

/** What went wrong. `plain` is a sentence for whoever reads the page. */
export class Trouble extends Error {
  constructor(detail, status = 0, after = 0) {
    super(detail);
    Object.assign(this, { detail, status, after, plain: plainly(status, detail) });
  }
}

/** A sentence without the names of fields and of statuses, which only programs need. */
function plainly(status, detail) {
  const [, size, most] = detail.match(/^\w+: ([\d,]+) characters; at most ([\d,]+)/) ?? [];
  if (size) return `This text has ${size} characters, but the service reads at most ${most} at once. Please shorten it.`;
  if (status === 413) return "This text is longer than the service accepts. Please shorten it.";
  if (status >= 500 && status !== 503) return "Something went wrong in the service. Its log says what.";
  const said = detail.replace(/^(text|question|query|labels): /, "");
  return said.charAt(0).toUpperCase() + said.slice(1) + (/[.?!]$/.test(said) ? "" : ".");
}

export function keep(token) {
  sessionStorage.setItem(KEY, token);
}

/** Asks the service; the reply's JSON and where the time went. Raises Trouble. */
export async function call(method, path, { body, signal } = {}) {
  const begin = performance.now();
  const reply = await sent(method, path, body, signal);
  const content = await reply.json().catch(() => null);
  if (content === null) throw new Trouble(`Status ${reply.status}`, reply.status);
  return { content, times: times(reply.headers.get("server-timing"), performance.now() - begin) };
}

/** A picture or a file of the service. Raises Trouble. */
export async function load(path) {
  const reply = await sent("GET", path);
  return reply.blob().catch(() => { throw new Trouble("The service did not send all of it."); });
}

/** A reply that is not an error. */
async function sent(method, path, body, signal) {
  const headers = {};
  const token = sessionStorage.getItem(KEY);
  if (token) headers.authorization = `Bearer ${token}`;
  if (body) headers["content-type"] = "application/json";
  let reply;
  try {
    reply = await fetch(path, { method, headers, body: body && JSON.stringify(body), signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Trouble("The service does not answer. Is it still running?");
  }
  if (reply.ok) return reply;
  const content = await reply.json().catch(() => null);
  const after = Number(reply.headers.get("retry-after")) || 0;
  throw new Trouble(content?.detail ?? `Status ${reply.status}`, reply.status, after);
}

/** `Server-Timing` as milliseconds by name, with what was spent outside of the steps as `other`. */
function times(header, total) {
  const found = {};
  for (const part of (header ?? "").split(",")) {
    const [, name, ms] = part.trim().match(/^(\w+);dur=([\d.]+)$/) ?? [];
    if (name && name !== "work") found[name] = Number(ms);
  }
  const known = Object.values(found).reduce((sum, each) => sum + each, 0);
  const batch = Number((header ?? "").match(/batch;desc="(\d+)"/)?.[1] ?? 1);
  return { steps: { ...found, other: Math.max(total - known, 0) }, total, batch };
}
