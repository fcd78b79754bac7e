// Questions to the server. An error that the user can mend has a field and a message.

export class Refused extends Error {
  constructor(message, field) {
    super(message);
    this.field = field;
  }
}

// A name for this window, so that its background work is dropped when it moves on.
const WINDOW = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) =>
  byte.toString(16).padStart(2, "0"),
).join("");

// The same window looking at a second point.
export const BESIDE = { window: `${WINDOW}b` };

async function ask(method, name, query) {
  const text = new URLSearchParams({ window: WINDOW, ...query }).toString();
  let response;
  try {
    response = await fetch(`api/${name}?${text}`, { method, headers: { "X-Dotphase": "page" } });
  } catch {
    throw new Refused("The server does not answer: is dotphase explore still running?", "server");
  }
  const value = await response.json();
  if (!response.ok) throw new Refused(value.error, value.field);
  return value;
}

export const get = (name, query = {}) => ask("GET", name, query);
export const post = (name, query = {}) => ask("POST", name, query);

// Last words of a window that is closed; there is no answer to wait for.
export function farewell(name, query = {}) {
  const text = new URLSearchParams({ ...query, window: WINDOW }).toString();
  fetch(`api/${name}?${text}`, { method: "POST", headers: { "X-Dotphase": "page" }, keepalive: true }).catch(() => {});
}

export const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

// Ask again and again until the answer is complete or `stale` says that nobody wants it.
export async function poll(name, query, stale, show, delay = 150, longest = 1000) {
  for (let wait = delay; !stale(); wait = Math.min(wait * 1.3, longest)) {
    const answer = await get(name, query);
    if (stale()) return;
    show(answer);
    if (answer.done || answer.error) return;
    await pause(wait);
  }
}
