// Gradient descent step by step: theory and runs, with a slider for time.

import { get, pause, poll, post, postOnClose } from "./api.js";
import { addRow, byId, element, indexedLabel } from "./dom.js";
import { differenceColor, draw, drawShapes, ink, table, themeColor } from "./figure.js";
import { withError } from "./numbers.js";

const FIELDS = ["initialization", "lr", "momentum", "steps", "scale", "dimension", "runs"];
const QUANTITIES = [
  ["train_loss", "training loss ε_t ·10³", 1e3], ["test_error", "test error ε_g ·10³", 1e3], ["theta", "θ"], ["m", "|m|"], ["q", "q"],
];
const SECONDS = 8; // duration of the animation
const SENTENCES = 8;

let theory = null; // the last answer about the theory
let runs = null; // the recorded runs
let job = null; // name of the training under way
let changes = 0; // number of changes: only answers after the last one count
let point = null;
let step = 0;
let sentence = 0;
let playing = 0; // number of plays and pauses; odd while it plays
let refuse = () => {};

export const options = () => Object.fromEntries(FIELDS.map((name) => [name, byId(name).value.trim()]));

export function build({ bounds, initializations, defaults }, onRefuse, accept, remember) {
  refuse = onRefuse;
  byId("initialization").append(...initializations.map((name) => new Option(name)));
  write(defaults);
  for (const [name, [low, high]] of Object.entries(bounds)) byId(name).title = `from ${low} to ${high}`;
  byId("descent").addEventListener("change", () => {
    accept();
    markField("");
    remember();
    restart();
  });
  byId("descent").addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
  byId("stop-run").addEventListener("click", () => cancel().then(() => report("Canceled.")));
  byId("time").addEventListener("input", () => {
    pausePlay();
    showStep(Number(byId("time").value));
  });
  byId("play").addEventListener("click", () => (playing % 2 ? pausePlay() : play()));
  window.addEventListener("pagehide", () => {
    postOnClose("leave");
    if (job) postOnClose("cancel", { job });
  });
  byId("other-sentence").addEventListener("click", () => {
    sentence = (sentence + 1) % SENTENCES;
    showStep(step);
  });
}

export function write(query) {
  for (const name of FIELDS) if (query[name] !== undefined) byId(name).value = query[name];
  if (!byId("initialization").value) byId("initialization").selectedIndex = 0;
}

function markField(field) {
  for (const name of FIELDS) byId(name).setAttribute("aria-invalid", String(name === field));
}

const refuseField = (error) => {
  markField(error.field ?? "");
  refuse(error);
};

// Show another point; an unchanged one stays as it is.
export function watch(newPoint) {
  if (point && JSON.stringify(newPoint) === JSON.stringify(point) && theory && !theory.error) return;
  point = newPoint;
  restart();
}

export function leave() {
  pausePlay();
}

function restart() {
  const mine = (changes += 1);
  const isStale = () => mine !== changes;
  theory = runs = null;
  pausePlay();
  cancel().catch(refuseField);
  showNote();
  show();
  if (!point) return;
  const query = { ...point, ...options() };
  const receive = (answer) => {
    const isFirst = !theory?.value;
    theory = answer;
    if (isFirst && answer.value) step = last();
    show();
  };
  poll("dynamics", query, isStale, receive, 300).catch((error) => {
    if (!isStale()) refuseField(error);
  });
}

// Explain the initialization. The scale matters only for a random one.
function showNote() {
  const { initialization, scale, dimension } = options();
  byId("scale").disabled = initialization !== "random";
  const typical = Number(scale) / Math.sqrt(Number(dimension));
  const notes = {
    semantic: "The student starts from the weights of the teacher, Q = Q*.",
    positional: "The student starts along the positional encoding of the first token, with |Q|² = d and thus m = 1.",
    random: `The entries of the student are independent, with standard deviation ${scale}. Their overlaps with Q* and with the positional encoding are small, about scale/√d = ${Number(typical.toPrecision(2))}, and decide which mechanism grows. For large d they would vanish and stay zero. Theory and runs therefore start from the typical value at d = ${dimension}.`,
  };
  byId("note-initialization").textContent = notes[initialization] ?? "";
}

function report(text, state = "") {
  byId("run-state").textContent = text;
  byId("run-state").dataset.state = state;
}

async function cancel() {
  const name = job;
  job = null;
  buttons();
  report("Press Run it to compare the theory with runs at finite d.");
  if (name) await post("cancel", { job: name });
}

function buttons() {
  byId("run").disabled = Boolean(job) || !point;
  byId("stop-run").disabled = !job;
}

async function run() {
  const mine = changes;
  if (job || !point) return;
  try {
    const name = (await post("descend", { ...point, ...options() })).job;
    if (mine !== changes) {
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
      const seconds = Math.round((performance.now() - began) / 1000);
      const stage = now.state === "starting" ? "Starting a process" : `Gradient descent of ${options().runs} runs at d = ${options().dimension}`;
      report(now.ended ? outcome(now) : `${stage}: ${seconds} s.`, now.state);
      if (now.ended) {
        runs = now.path;
        if (runs && !(theory && theory.value)) step = last();
        show();
        break;
      }
      await pause(wait);
    }
  } catch (error) {
    if (mine === changes) {
      report("The run did not start.");
      refuseField(error);
    }
  }
  if (mine === changes) {
    job = null;
    buttons();
  }
}

function outcome(now) {
  if (now.state !== "done") return now.state === "failed" ? `Failed: ${now.message}` : "Canceled.";
  const ended = now.path.diverged_at.flatMap((at, index) => (at === null ? [] : [`run ${index + 1} diverged at step ${at}`]));
  return ended.length ? `Done: ${ended.join(", ")}. Use smaller steps.` : `Done: ${now.seeds} runs, each on its own data set.`;
}

const value = () => theory?.value;
const last = () => Math.max(0, ...[value(), runs].filter(Boolean).map(({ steps }) => steps.length - 1));

// Show one step of gradient descent.
function showStep(newStep) {
  step = Math.min(Math.max(Math.round(newStep), 0), last());
  byId("time").value = String(step);
  byId("time").setAttribute("aria-valuetext", `step ${step} of ${last()}`);
  byId("now").textContent = `step ${step} of ${last()}`;
  showNumbers();
  showMatrices();
  if (value() || runs) drawShapes("learn", stepShapes());
}

function pausePlay() {
  playing += playing % 2;
  byId("play").textContent = "▶ Play";
}

async function play() {
  const mine = (playing += 1);
  byId("play").textContent = "❚❚ Pause";
  const from = step >= last() ? 0 : step;
  const began = performance.now();
  while (mine === playing) {
    showStep(from + ((performance.now() - began) / 1000 / SECONDS) * last());
    if (step >= last()) pausePlay();
    await new Promise(requestAnimationFrame);
    await pause(40);
  }
}

function show() {
  const path = value();
  byId("time").max = String(last());
  byId("play").disabled = byId("time").disabled = last() === 0;
  const verdict = byId("learn-verdict");
  verdict.textContent = theory?.error ? `The theory could not be computed: ${theory.error}.`
    : path ? `Theory: ${verdictOf(path)}.` : "Theory: computing a first look…";
  verdict.dataset.done = String(Boolean(theory?.done));
  byId("note-learn").textContent = path
    ? `${theory.done ? "Final" : `First look, refining (${Math.round(100 * theory.progress)}%)`}: ${path.repetitions} ensembles of ${path.sentences} sentences. `
      + "Thick lines show the theory with a band of one standard error, dotted where it is not trusted. Thin lines show runs at finite d, dashed lines the fixed points of state evolution."
    : "";
  if (!path && !runs) byId("learn-numbers").tBodies[0].replaceChildren();
  showStep(step);
  if (value() || runs) draw("learn", figure);
}

function verdictOf(path) {
  if (path.diverged_at !== null) return `diverged at step ${path.diverged_at}; use smaller steps`;
  if (path.trusted_until < path.steps.length - 1) return `not trusted after step ${path.trusted_until}, where its ensembles disagree`;
  return "trusted at every step";
}

const mean = (values) => values.reduce((sum, number) => sum + number, 0) / values.length;
// Values at a step of all runs that have not diverged.
const valuesAt = (name, now) => (runs ? runs[name].map((row) => row[now]).filter((number) => number !== null && number !== undefined) : []);

function showNumbers() {
  const path = value();
  const body = byId("learn-numbers").tBodies[0];
  if (!path && !runs) return;
  body.replaceChildren();
  for (const [name, title, unit = 1] of QUANTITIES) {
    const row = addRow(body, title);
    const cell = row.insertCell();
    const exists = path && step < stepsShown(path);
    cell.textContent = exists ? withError(unit * path[name][step], unit * (path.stderr[name][step] ?? 0)) : "—";
    if (exists && step > path.trusted_until) cell.className = "first-look";
    cell.id = `theory-${name}`;
    if (exists) cell.dataset.value = String(path[name][step]);
    const values = valuesAt(name, step);
    const spread = values.length > 1 ? Math.sqrt(mean(values.map((number) => (number - mean(values)) ** 2)) / (values.length - 1)) : 0;
    row.insertCell().textContent = values.length ? withError(unit * mean(values), unit * spread) : "—";
  }
}

// Number of steps before the theory diverged.
const stepsShown = (path) => (path.diverged_at === null ? path.steps.length : path.diverged_at);

const PANELS = [
  { title: indexedLabel("training loss ε_t"), parts: [["train_loss", "ink"]], level: "train_loss" },
  { title: indexedLabel("test error ε_g"), parts: [["test_error", "ink"]], level: "test_error" },
  { title: "overlaps θ/σ², |m|/σ²", parts: [["theta", "semantic"], ["m", "positional"]] },
];
const tint = (name) => (name === "ink" ? ink("ink") : themeColor(name));

function figure(width) {
  const narrow = width < 640;
  const data = [];
  const layout = {
    grid: narrow ? { rows: 3, columns: 1, pattern: "independent", ygap: 0.24 } : { rows: 1, columns: 3, pattern: "independent", xgap: 0.22 },
    height: narrow ? 760 : 330, margin: { l: 58, r: 12, t: 10, b: 44 }, shapes: stepShapes(),
    legend: { orientation: "h", y: narrow ? -0.09 : -0.2, x: 0 }, uirevision: `learn ${narrow}`,
  };
  PANELS.forEach((panel, index) => addCurves(data, layout, panel, index));
  return { data, layout };
}

const axesOf = (index) => ({ xaxis: index ? `x${index + 1}` : "x", yaxis: index ? `y${index + 1}` : "y" });
const unitOf = (name) => (name === "theta" || name === "m" ? 1 / Number(point.sigma) ** 2 : 1);

// Shapes of this step: a vertical line, and a dot on every curve.
function stepShapes() {
  const path = value();
  return PANELS.flatMap(({ parts }, index) => {
    const { xaxis: xref, yaxis: yref } = axesOf(index);
    const dot = (y, half, fillcolor, color) => ({ type: "circle", xref, yref, xsizemode: "pixel", ysizemode: "pixel", xanchor: step, yanchor: y,
      x0: -half, x1: half, y0: -half, y1: half, fillcolor, line: { color, width: 1.5 } });
    const exists = (row) => step < row.length && row[step] !== null;
    return [
      { type: "line", xref, yref: `${yref} domain`, x0: step, x1: step, y0: 0, y1: 1, line: { color: ink("soft"), width: 1.5 } },
      ...parts.flatMap(([name, paint]) => [
        ...(runs ? runs[name] : []).filter(exists).map((row) => dot(unitOf(name) * row[step], 3, ink("card"), tint(paint))),
        ...(path && step < stepsShown(path) ? [dot(unitOf(name) * path[name][step], 5.5, tint(paint), ink("card"))] : []),
      ]),
    ];
  });
}

function addCurves(data, layout, panel, index) {
  const axes = axesOf(index);
  const end = index ? String(index + 1) : "";
  const path = value();
  layout[`xaxis${end}`] = { title: { text: "step", standoff: 2 }, range: [-0.02 * last(), 1.02 * last()] };
  layout[`yaxis${end}`] = { title: { text: panel.title }, rangemode: "tozero", exponentformat: "power", nticks: 6 };
  for (const [name, paint] of panel.parts) {
    const label = { theta: "θ/σ²", m: "|m|/σ²" }[name] ?? "theory";
    const unit = unitOf(name);
    const common = { ...axes, mode: "lines", hovertemplate: `step %{x}: ${label} %{y:.4g}<extra></extra>` };
    const legend = { name: label, showlegend: index !== 1 };
    if (path) {
      const until = stepsShown(path);
      const x = path.steps.slice(0, until);
      const y = path[name].slice(0, until).map((number) => unit * number);
      const error = path.stderr[name].slice(0, until).map((number) => unit * (number ?? 0));
      data.push({ ...axes, mode: "lines", x: [...x, ...x.toReversed()], y: [...y.map((number, i) => number - error[i]), ...y.map((number, i) => number + error[i]).toReversed()],
        fill: "toself", fillcolor: tint(paint), opacity: 0.25, line: { width: 0 }, hoverinfo: "skip", showlegend: false });
      const trusted = path.trusted_until + 1;
      data.push({ ...common, ...legend, x: x.slice(0, trusted), y: y.slice(0, trusted), line: { color: tint(paint), width: 2.4 } });
      if (trusted < until) data.push({ ...common, x: x.slice(trusted - 1), y: y.slice(trusted - 1), showlegend: false, line: { color: tint(paint), width: 2, dash: "dot" } });
    }
    (runs ? runs[name] : []).forEach((row, number) => {
      const y = row.map((number) => (number === null ? null : unit * number));
      const runLabel = `${label}, run ${number + 1}`;
      data.push({ ...common, x: runs.steps, y, opacity: 0.6, line: { color: tint(paint), width: 1 }, hovertemplate: `step %{x}: ${runLabel} %{y:.4g}<extra></extra>`,
        name: "runs", showlegend: index === 0 && number === 0 });
    });
    for (const [branch, level] of levels(panel, name)) {
      const levelLabel = `${branch} ${minima[branch].stability.kind === "saddle" ? "saddle" : "minimum"}`;
      data.push({ ...axes, x: [0, last()], y: [unit * level, unit * level], mode: "lines", name: levelLabel, showlegend: index === 0,
        hovertemplate: `${levelLabel}: %{y:.4g}<extra></extra>`, line: { color: themeColor(branch), width: 1.3, dash: "dash" } });
    }
  }
}

// The fixed points of state evolution at this point.
let minima = {};

export function markMinima(answer) {
  minima = answer.value;
  if (value() || runs) draw("learn", figure);
}

function levels(panel, name) {
  return Object.entries(minima).flatMap(([branch, solution]) => {
    if (!solution?.on_branch) return [];
    if (panel.level) return [[branch, solution[panel.level]]];
    return (name === "theta") === (branch === "semantic") ? [[branch, solution.norms[name]]] : [];
  });
}

// Attention of teacher, theory and the first run: on average, and on one sentence. Tables update
// faster than figures when the steps are played.
function showMatrices() {
  const path = value();
  const weights = (source, kind, isTeacher) => {
    if (!source || (!isTeacher && step >= (source === path ? stepsShown(path) : source.steps.length))) return null;
    const part = source.attention[isTeacher ? "teacher" : "student"][kind];
    const rows = kind === "sample" ? part[sentence] : part;
    return isTeacher ? rows : rows[step];
  };
  byId("learn-attention").replaceChildren(...[["mean", "Attention on average"], ["sample", `Attention on sentence ${sentence}`]].map(([kind, title]) => {
    const learners = [["teacher", path ?? runs, true], ["theory", path, false], ["run 1", runs, false]];
    const tables = learners.map(([name, source, isTeacher]) => matrix(name, weights(source, kind, isTeacher)));
    return element("figure", {}, element("figcaption", {}, title), element("div", { className: "matrices" }, ...tables));
  }));
}

function matrix(learner, weights) {
  const grid = element("table", { className: "attention" }, element("caption", {}, weights ? learner : `${learner}: none`));
  for (const row of weights ?? [[null, null], [null, null]]) {
    const cells = grid.insertRow();
    for (const weight of row) {
      const cell = cells.insertCell();
      cell.textContent = weight === null ? "" : weight.toFixed(2);
      if (weight !== null) cell.style.background = differenceColor(weight - 1 / weights.length);
    }
  }
  return grid;
}

table("learn", () => {
  const names = QUANTITIES.map(([name]) => name);
  const rows = [["learner", "step", ...names, ...names.map((name) => `${name}_stderr`), "trusted"]];
  const path = value();
  if (path) path.steps.forEach((now) => {
    rows.push(["theory", now, ...names.map((name) => path[name][now]), ...names.map((name) => path.stderr[name][now]), now <= path.trusted_until]);
  });
  if (runs) runs.train_loss.forEach((_, number) => runs.steps.forEach((now) => {
    rows.push([`run ${number + 1}`, now, ...names.map((name) => runs[name][number][now]), ...names.map(() => null), null]);
  }));
  return rows;
});
