// Requests to the server. A `Refused` error has a message for the user, and the field of a bad input.

export class Refused extends Error {
  constructor(message, field) {
    super(message);
    this.field = field;
  }
}

// Name of this window. The server stops background work that no window watches.
const WINDOW = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) =>
  byte.toString(16).padStart(2, "0"),
).join("");

// Query of a second point that the same window watches.
export const SECOND_POINT = { window: `${WINDOW}b` };

async function request(method, name, query) {
  const text = new URLSearchParams({ window: WINDOW, ...query }).toString();
  let response;
  try {
    response = await fetch(`api/${name}?${text}`, { method, headers: { "X-Dotphase": "page" } });
  } catch {
    throw new Refused("The server does not answer. Is dotphase explore still running?", "server");
  }
  const value = await response.json();
  if (!response.ok) throw new Refused(value.error, value.field);
  return value;
}

export const get = (name, query = {}) => request("GET", name, query);
export const post = (name, query = {}) => request("POST", name, query);

// A write from a window that closes, which cannot wait for the answer.
export function postOnClose(name, query = {}) {
  const text = new URLSearchParams({ ...query, window: WINDOW }).toString();
  fetch(`api/${name}?${text}`, { method: "POST", headers: { "X-Dotphase": "page" }, keepalive: true }).catch(() => {});
}

export const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

// Repeat a request until the answer is complete or `isStale()`; `show` receives every answer.
export async function poll(name, query, isStale, show, delay = 150, maxDelay = 1000) {
  for (let wait = delay; !isStale(); wait = Math.min(wait * 1.3, maxDelay)) {
    const answer = await get(name, query);
    if (isStale()) return;
    show(answer);
    if (answer.done || answer.error) return;
    await pause(wait);
  }
}
