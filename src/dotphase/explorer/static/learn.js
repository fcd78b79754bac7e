// Watch it learn: a descent step by step, theory and runs, played along a slider for time.

import { farewell, get, pause, poll, post } from "./api.js";
import { byId, element, line } from "./dom.js";
import { colour, draw, ink, mark as place, table } from "./figure.js";
import { withError } from "./numbers.js";

const FIELDS = ["begin", "lr", "momentum", "steps", "scale", "dimension", "repeats"];
const QUANTITIES = [
  ["train_loss", "training loss ε_t ·10³", 1e3], ["test_error", "test error ε_g ·10³", 1e3], ["theta", "θ"], ["m", "|m|"], ["q", "q"],
];
const SECONDS = 8; // that a whole descent is played for
const SENTENCES = 8;

let theory = null; // the last answer about the theory
let runs = null; // recorded runs, once they are there
let job = null; // name of the run under way
let asked = 0; // counts changes: an answer to an older one is thrown away
let point = null;
let step = 0;
let sentence = 0;
let playing = 0; // counts plays; even while it rests
let refuse = () => {};

export const options = () => Object.fromEntries(FIELDS.map((name) => [name, byId(name).value.trim()]));

export function build({ bounds, starts, defaults }, complain, accept, remember) {
  refuse = complain;
  byId("begin").append(...starts.map((name) => new Option(name)));
  write({ ...defaults, dimension: defaults.d });
  for (const [name, [low, high]] of Object.entries(bounds)) byId(name).title = `from ${low} to ${high}`;
  byId("lesson").addEventListener("change", () => {
    accept();
    mark("");
    remember();
    restart();
  });
  byId("lesson").addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
  byId("stop-run").addEventListener("click", () => cancel().then(() => tell("Cancelled.")));
  byId("time").addEventListener("input", () => {
    rest();
    seek(Number(byId("time").value));
  });
  byId("play").addEventListener("click", () => (playing % 2 ? rest() : play()));
  window.addEventListener("pagehide", () => {
    farewell("leave");
    if (job) farewell("cancel", { job });
  });
  byId("other-sentence").addEventListener("click", () => {
    sentence = (sentence + 1) % SENTENCES;
    seek(step);
  });
}

export function write(query) {
  for (const name of FIELDS) if (query[name] !== undefined) byId(name).value = query[name];
  if (!byId("begin").value) byId("begin").selectedIndex = 0;
}

function mark(field) {
  for (const name of FIELDS) byId(name).setAttribute("aria-invalid", String(name === field));
}

const wrong = (error) => {
  mark(error.field ?? "");
  refuse(error);
};

// The point has moved, or the tab was opened: what is shown belongs to another one.
export function watch(where) {
  if (point && JSON.stringify(where) === JSON.stringify(point) && theory && !theory.error) return;
  point = where;
  restart();
}

export function leave() {
  rest();
}

function restart() {
  const mine = (asked += 1);
  const stale = () => mine !== asked;
  theory = runs = null;
  rest();
  cancel().catch(wrong);
  say();
  show();
  if (!point) return;
  const query = { ...point, ...options() };
  const got = (answer) => {
    const first = !theory || !theory.value;
    theory = answer;
    if (first && answer.value) step = last();
    show();
  };
  poll("theory", query, stale, got, 300).catch((error) => {
    if (!stale()) wrong(error);
  });
}

// What a random start is, in words; fields that mean nothing for the others are off.
function say() {
  const { begin, scale, dimension } = options();
  const random = begin === "random";
  byId("scale").disabled = !random;
  const small = Number(scale) / Math.sqrt(Number(dimension));
  const words = {
    semantic: "It begins with the weights of the teacher, Q = Q*.",
    positional: "It begins along the position of the first token, with |Q|² = d, so m = 1.",
    random: `It begins with independent entries of standard deviation ${scale}. Such weights have small overlaps by chance, of about scale/√d = ${Number(small.toPrecision(2))} both with Q* and with the position, and these decide what grows. In the limit of large d they would be zero and stay so for ever: theory and runs are given the typical value at d = ${dimension}.`,
  };
  byId("note-begin").textContent = words[begin] ?? "";
}

function tell(text, state = "") {
  byId("run-state").textContent = text;
  byId("run-state").dataset.state = state;
}

async function cancel() {
  const name = job;
  job = null;
  buttons();
  tell("The theory needs no run; press the button to see one beside it.");
  if (name) await post("cancel", { job: name });
}

function buttons() {
  byId("run").disabled = Boolean(job) || !point;
  byId("stop-run").disabled = !job;
}

async function run() {
  const mine = asked;
  if (job || !point) return;
  try {
    const name = (await post("descend", { ...point, ...options() })).job;
    if (mine !== asked) {
      await post("cancel", { job: name });
      return;
    }
    job = name;
    runs = null;
    buttons();
    const began = performance.now();
    for (let wait = 200; job === name; wait = Math.min(wait * 1.2, 800)) {
      const now = await get("job", { job: name });
      if (job !== name) return;
      tell(now.over ? words(now) : `Gradient descent at d = ${options().dimension}, in a process of its own: ${Math.round((performance.now() - began) / 1000)} s.`, now.state);
      if (now.over) {
        runs = now.path;
        if (runs && !(theory && theory.value)) step = last();
        show();
        break;
      }
      await pause(wait);
    }
  } catch (error) {
    if (mine === asked) {
      tell("Not run.");
      wrong(error);
    }
  }
  if (mine === asked) {
    job = null;
    buttons();
  }
}

function words(now) {
  if (now.state !== "done") return now.state === "failed" ? `Failed: ${now.message}` : "Cancelled.";
  const ended = now.path.diverged_at.flatMap((at, index) => (at === null ? [] : [`run ${index + 1} diverged at step ${at}`]));
  return ended.length ? `Done: ${ended.join(", ")}; use smaller steps.` : `Done: ${now.seeds} runs, each on a data set of its own.`;
}

const value = () => theory && theory.value;
const last = () => Math.max(0, ...[value(), runs].filter(Boolean).map((one) => one.steps.length - 1));

// Time: a slider, and a clock that moves it.
function seek(to) {
  step = Math.min(Math.max(Math.round(to), 0), last());
  byId("time").value = String(step);
  byId("time").setAttribute("aria-valuetext", `step ${step} of ${last()}`);
  byId("now").textContent = `step ${step} of ${last()}`;
  numbers();
  matrices();
  if (value() || runs) place("learn", marks());
}

function rest() {
  playing += playing % 2;
  byId("play").textContent = "▶ Play";
}

async function play() {
  const mine = (playing += 1);
  byId("play").textContent = "❚❚ Pause";
  const from = step >= last() ? 0 : step;
  const began = performance.now();
  while (mine === playing) {
    seek(from + ((performance.now() - began) / 1000 / SECONDS) * last());
    if (step >= last()) rest();
    await new Promise(requestAnimationFrame);
    await pause(40);
  }
}

function show() {
  const found = value();
  byId("time").max = String(last());
  byId("play").disabled = byId("time").disabled = last() === 0;
  const verdict = byId("learn-verdict");
  verdict.textContent = theory && theory.error ? `The theory could not be computed: ${theory.error}.`
    : found ? `Theory: ${judged(found)}.` : "Theory: computing a first look…";
  verdict.dataset.done = String(Boolean(theory && theory.done));
  byId("note-learn").textContent = found
    ? `${theory.done ? "Final" : `First look, refining (${Math.round(100 * theory.progress)}%)`}: ${found.repetitions} ensembles of ${found.sentences} sentences. `
      + "Lines: theory, its band one standard error, dotted where it is not trusted. Thin lines: runs at finite d. Dashed: the fixed points of state evolution, where they exist."
    : "";
  if (!found && !runs) byId("learn-numbers").tBodies[0].replaceChildren();
  seek(step);
  if (value() || runs) draw("learn", figure);
}

function judged(found) {
  if (found.diverged_at !== null) return `diverged at step ${found.diverged_at}: use smaller steps`;
  if (found.trusted_until < found.steps.length - 1) return `not trusted after step ${found.trusted_until}, where its ensembles begin to disagree`;
  return "trusted at every step";
}

const mean = (values) => values.reduce((sum, one) => sum + one, 0) / values.length;
// Runs that have not diverged by now, and what they are at a step.
const at = (name, now) => (runs ? runs[name].map((row) => row[now]).filter((one) => one !== null && one !== undefined) : []);

function numbers() {
  const found = value();
  const body = byId("learn-numbers").tBodies[0];
  if (!found && !runs) return;
  body.replaceChildren();
  for (const [name, title, unit = 1] of QUANTITIES) {
    const row = line(body, title);
    const cell = row.insertCell();
    const there = found && step < shown(found);
    cell.textContent = there ? withError(unit * found[name][step], unit * (found.stderr[name][step] ?? 0)) : "—";
    if (there && step > found.trusted_until) cell.className = "first-look";
    cell.id = `theory-${name}`;
    if (there) cell.dataset.value = String(found[name][step]);
    const values = at(name, step);
    const spread = values.length > 1 ? Math.sqrt(mean(values.map((one) => (one - mean(values)) ** 2)) / (values.length - 1)) : 0;
    row.insertCell().textContent = values.length ? withError(unit * mean(values), unit * spread) : "—";
  }
}

// Steps of the theory that can be drawn: those before it diverged.
const shown = (found) => (found.diverged_at === null ? found.steps.length : found.diverged_at);

const PANELS = [
  { title: "training loss ε_t", parts: [["train_loss", "ink"]], level: "train_loss" },
  { title: "test error ε_g", parts: [["test_error", "ink"]], level: "test_error" },
  { title: "overlaps θ/σ², |m|/σ²", parts: [["theta", "semantic"], ["m", "positional"]] },
];
const tint = (name) => (name === "ink" ? ink("ink") : colour(name));

function figure(width) {
  const narrow = width < 640;
  const data = [];
  const layout = {
    grid: narrow ? { rows: 3, columns: 1, pattern: "independent", ygap: 0.24 } : { rows: 1, columns: 3, pattern: "independent", xgap: 0.22 },
    height: narrow ? 760 : 330, margin: { l: 58, r: 12, t: 10, b: 44 }, shapes: marks(),
    legend: { orientation: "h", y: narrow ? -0.09 : -0.2, x: 0 }, uirevision: `learn ${narrow}`,
  };
  PANELS.forEach((panel, index) => curves(data, layout, panel, index));
  return { data, layout };
}

const axesOf = (index) => ({ xaxis: index ? `x${index + 1}` : "x", yaxis: index ? `y${index + 1}` : "y" });
const unitOf = (name) => (name === "theta" || name === "m" ? 1 / Number(point.sigma) ** 2 : 1);

// Where everything is at this step: a line, and a dot on every curve.
function marks() {
  const found = value();
  return PANELS.flatMap(({ parts }, index) => {
    const { xaxis: xref, yaxis: yref } = axesOf(index);
    const dot = (y, half, fillcolor, color) => ({ type: "circle", xref, yref, xsizemode: "pixel", ysizemode: "pixel", xanchor: step, yanchor: y,
      x0: -half, x1: half, y0: -half, y1: half, fillcolor, line: { color, width: 1.5 } });
    const there = (row) => step < row.length && row[step] !== null;
    return [
      { type: "line", xref, yref: `${yref} domain`, x0: step, x1: step, y0: 0, y1: 1, line: { color: ink("soft"), width: 1.5 } },
      ...parts.flatMap(([name, paint]) => [
        ...(runs ? runs[name] : []).filter(there).map((row) => dot(unitOf(name) * row[step], 3, ink("card"), tint(paint))),
        ...(found && step < shown(found) ? [dot(unitOf(name) * found[name][step], 5.5, tint(paint), ink("card"))] : []),
      ]),
    ];
  });
}

function curves(data, layout, panel, index) {
  const axes = axesOf(index);
  const end = index ? String(index + 1) : "";
  const found = value();
  layout[`xaxis${end}`] = { title: { text: "step", standoff: 2 }, range: [-0.02 * last(), 1.02 * last()] };
  layout[`yaxis${end}`] = { title: { text: panel.title }, rangemode: "tozero", exponentformat: "power", nticks: 6 };
  for (const [name, paint] of panel.parts) {
    const label = { theta: "θ/σ²", m: "|m|/σ²" }[name] ?? "theory";
    const unit = unitOf(name);
    const common = { ...axes, mode: "lines", hovertemplate: `step %{x}: ${label} %{y:.4g}<extra></extra>` };
    const legend = { name: label, showlegend: index !== 1 };
    if (found) {
      const until = shown(found);
      const x = found.steps.slice(0, until);
      const y = found[name].slice(0, until).map((one) => unit * one);
      const error = found.stderr[name].slice(0, until).map((one) => unit * (one ?? 0));
      data.push({ ...axes, mode: "lines", x: [...x, ...x.toReversed()], y: [...y.map((one, i) => one - error[i]), ...y.map((one, i) => one + error[i]).toReversed()],
        fill: "toself", fillcolor: tint(paint), opacity: 0.25, line: { width: 0 }, hoverinfo: "skip", showlegend: false });
      const trusted = found.trusted_until + 1;
      data.push({ ...common, ...legend, x: x.slice(0, trusted), y: y.slice(0, trusted), line: { color: tint(paint), width: 2.4 } });
      if (trusted < until) data.push({ ...common, x: x.slice(trusted - 1), y: y.slice(trusted - 1), showlegend: false, line: { color: tint(paint), width: 2, dash: "dot" } });
    }
    (runs ? runs[name] : []).forEach((row, number) => {
      const y = row.map((one) => (one === null ? null : unit * one));
      const what = `${label}, run ${number + 1}`;
      data.push({ ...common, x: runs.steps, y, opacity: 0.6, line: { color: tint(paint), width: 1 }, hovertemplate: `step %{x}: ${what} %{y:.4g}<extra></extra>`,
        name: "runs", showlegend: index === 0 && number === 0 });
    });
    for (const [branch, level] of levels(panel, name)) {
      const what = `${branch} ${minima[branch].stability.kind === "saddle" ? "saddle" : "minimum"}`;
      data.push({ ...axes, x: [0, last()], y: [unit * level, unit * level], mode: "lines", name: what, showlegend: index === 0,
        hovertemplate: `${what}: %{y:.4g}<extra></extra>`, line: { color: colour(branch), width: 1.3, dash: "dash" } });
    }
  }
}

// The fixed points of state evolution at this point, as they were told last.
let minima = {};

export function markMinima(answer) {
  minima = answer.value;
  if (value() || runs) draw("learn", figure);
}

function levels(panel, name) {
  return Object.entries(minima).flatMap(([branch, found]) => {
    if (!found || !found.on_branch) return [];
    if (panel.level) return [[branch, found[panel.level]]];
    return (name === "theta") === (branch === "semantic") ? [[branch, found.norms[name]]] : [];
  });
}

// Attention of teacher, theory and the first run: on average, and on one sentence. Tables, not a
// figure: they change with every step that is played.
function matrices() {
  const found = value();
  const given = found ?? runs;
  const now = (one, kind, teacher) => {
    if (!one || (!teacher && step >= (one === found ? shown(found) : one.steps.length))) return null;
    const part = one.attention[teacher ? "teacher" : "student"][kind];
    const rows = kind === "sample" ? part[sentence] : part;
    return teacher ? rows : rows[step];
  };
  byId("learn-attention").replaceChildren(...[["mean", "Attention on average"], ["sample", `Attention on sentence ${sentence}`]].map(([kind, title]) => {
    const who = [["teacher", given, true], ["theory", found, false], ["run 1", runs, false]];
    const tables = who.map(([name, source, teacher]) => matrix(name, now(source, kind, teacher)));
    return element("figure", {}, element("figcaption", {}, title), element("div", { className: "matrices" }, ...tables));
  }));
}

function matrix(who, weights) {
  const made = element("table", { className: "attention" }, element("caption", {}, weights ? who : `${who}: none`));
  for (const row of weights ?? [[null, null], [null, null]]) {
    const cells = made.insertRow();
    for (const weight of row) {
      const cell = cells.insertCell();
      const share = weight === null ? null : Math.min(Math.max((weight - 0.3) / 0.4, 0), 1);
      cell.textContent = weight === null ? "" : weight.toFixed(2);
      if (share !== null) Object.assign(cell.style, { background: cividis(share), color: share > 0.5 ? "#10141a" : "#ffffff" });
    }
  }
  return made;
}

// The colours that the other attention matrices have, from five of them.
const CIVIDIS = [[0, 32, 76], [65, 77, 107], [124, 123, 120], [188, 175, 111], [255, 234, 70]];

function cividis(share) {
  const place = Math.min(share * 4, 3.999);
  const [low, high] = [CIVIDIS[Math.floor(place)], CIVIDIS[Math.floor(place) + 1]];
  return `rgb(${low.map((one, i) => Math.round(one + (place % 1) * (high[i] - one))).join(",")})`;
}

table("learn", () => {
  const names = QUANTITIES.map(([name]) => name);
  const rows = [["who", "step", ...names, ...names.map((name) => `${name}_stderr`), "trusted"]];
  const found = value();
  if (found) found.steps.forEach((now) => {
    rows.push(["theory", now, ...names.map((name) => found[name][now]), ...names.map((name) => found.stderr[name][now]), now <= found.trusted_until]);
  });
  if (runs) runs.train_loss.forEach((_, number) => runs.steps.forEach((now) => {
    rows.push([`run ${number + 1}`, now, ...names.map((name) => runs[name][number][now]), ...names.map(() => null), null]);
  }));
  return rows;
});
