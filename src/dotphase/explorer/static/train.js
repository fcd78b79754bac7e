// Training at the point of the page: start, follow, cancel; the curves show its runs.

import { get, pause, post } from "./api.js";
import { byId } from "./dom.js";
import { table } from "./figure.js";

const runs = []; // finished runs of this window, each with its point
const MAX_RUNS = 400;
let job = null;
let onRuns = () => {};
let onDots = () => {};

const same = (a, b, names) => names.every((name) => String(a[name]) === String(b[name]));

// Runs of the same model, at the same alpha or at any.
export function runsAt(point, anyAlpha) {
  const names = Object.keys(point).filter((name) => name !== "alpha" || !anyAlpha);
  return runs.filter((run) => same(run.point, point, names)).map((run) => ({ ...run, alpha: run.point.alpha }));
}

export const options = () => ({
  d: byId("d").value.trim(), seeds: byId("seeds").value.trim(), start: byId("start").value, seed: byId("seed").value.trim(),
});

export function build(starts) {
  byId("start").append(...starts.map((name) => new Option(name)));
}

export function write(query) {
  for (const name of ["d", "seeds", "seed"]) if (query[name] !== undefined) byId(name).value = query[name];
  if ([...byId("start").options].some((option) => option.value === query.start)) byId("start").value = query.start;
}

function report(text, progress) {
  byId("train-state").textContent = text;
  if (progress !== undefined) byId("train-progress").value = progress;
}

// Counts of the learned mechanisms, such as "3 semantic, 1 positional".
function countMechanisms(list) {
  const names = [...new Set(list.map((run) => run.mechanism))];
  return names.map((name) => `${list.filter((run) => run.mechanism === name).length} ${name}`).join(", ");
}

function showRuns() {
  const runTable = byId("trained-runs");
  byId("note-runs").hidden = runs.length > 0;
  runTable.hidden = runs.length === 0;
  const body = runTable.tBodies[0];
  body.replaceChildren();
  for (const run of runs.slice(-50)) {
    const row = body.insertRow();
    const number = (value) => (value === null ? "—" : Number(value.toPrecision(4)));
    for (const text of [run.point.alpha, run.d, run.start, run.index, run.mechanism, number(run.train_loss), number(run.test_error), number(run.m), number(run.theta)]) {
      row.insertCell().textContent = text;
    }
  }
}

async function follow(name) {
  let shown = 0;
  const began = performance.now();
  for (let wait = 150; ; wait = Math.min(wait * 1.2, 600)) {
    const now = await get("job", { job: name });
    for (const run of now.runs.slice(shown)) runs.push({ ...run, point: now.point, d: now.d, start: now.start });
    runs.splice(0, runs.length - MAX_RUNS);
    if (now.runs.length > shown) {
      shown = now.runs.length;
      showRuns();
      onRuns();
    }
    onDots(now.dots, now.point, now.ended);
    const seconds = Math.round((performance.now() - began) / 1000);
    const states = {
      starting: `Starting a process: ${seconds} s.`, running: now.steps ? `Training: ${shown} of ${now.seeds} runs finished, step ${now.steps}, ${seconds} s.` : `Compiling the first training of this kind: ${seconds} s.`,
      done: `Done: ${shown} runs, learned ${countMechanisms(now.runs)}.`, canceled: `Canceled after ${shown} of ${now.seeds} runs.`, failed: `Failed: ${now.message}`,
    };
    report(states[now.state] ?? now.state, now.progress);
    byId("train-state").dataset.state = now.state;
    if (now.ended) return;
    await pause(wait);
  }
}

export function listen(point, refuse, runsCallback, dotsCallback) {
  onRuns = runsCallback;
  onDots = dotsCallback;
  byId("training").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (job) return;
    byId("train").disabled = true;
    try {
      job = (await post("train", { ...point(), ...options() })).job;
      byId("cancel").disabled = false;
      await follow(job);
    } catch (error) {
      report("The training did not start.");
      refuse(error);
    }
    job = null;
    byId("cancel").disabled = true;
    byId("train").disabled = false;
  });
  byId("cancel").addEventListener("click", async () => {
    if (!job) return;
    byId("cancel").disabled = true;
    try {
      await post("cancel", { job });
    } catch (error) {
      refuse(error);
    }
  });
  byId("clear").addEventListener("click", () => {
    runs.length = 0;
    showRuns();
    onRuns();
  });
}

table("train", () => {
  const names = ["train_loss", "test_error", "m", "theta", "q", "mechanism", "converged"];
  const parameters = runs.length ? Object.keys(runs[0].point) : ["alpha"];
  return [[...parameters, "d", "start", "run", ...names],
    ...runs.map((run) => [...parameters.map((name) => run.point[name]), run.d, run.start, run.index, ...names.map((name) => run[name])])];
});
