// Losses, errors and overlaps against alpha, with the point of the page and addRuns students.

import { byId, indexedLabel } from "./dom.js";
import { themeColor, draw, ink, table } from "./figure.js";
import { runsAt } from "./train.js";
import { pinned as pinnedAnswer, valueOf } from "./numbers.js";

export const SYMBOLS = { semantic: "circle", positional: "square", mixed: "diamond" };
let curve = null;
let point = null;
let answer = null;

export function show(job) {
  curve = job.value;
  byId("note-curves").textContent = job.error ? `The curve could not be computed: ${job.error}.`
    : `${job.done ? "" : `Computing: ${Math.round(100 * job.progress)}%. `}Large marks show your point${pinnedAnswer() ? ", diamonds the pinned one" : ""}. The global minimum has the lowest training loss.`;
  paint();
}

export function setPoint(newPoint, newAnswer) {
  point = newPoint;
  answer = newAnswer;
  paint();
}

export function forget() {
  curve = null;
}

export function paint() {
  if (point) draw("curves", build);
}

const PANELS = [
  { parts: ["train_loss"], title: indexedLabel("training loss ε_t") },
  { parts: ["test_error"], title: indexedLabel("test error ε_g") },
  { parts: ["theta", "m"], title: "overlaps θ/σ², |m|/σ²" },
];
const EMPTY = { x: [null], y: [null], hoverinfo: "skip" };
// True for overlaps that are zero on a branch, which are not drawn.
const vanishes = (part, branch) => (part === "theta" && branch === "positional") || (part === "m" && branch === "semantic");

function build(width) {
  const narrow = width < 560;
  const layout = {
    grid: narrow ? { rows: 3, columns: 1, pattern: "independent", ygap: 0.28 } : { rows: 1, columns: 3, pattern: "independent", xgap: 0.32 },
    height: narrow ? 700 : 288, margin: { l: 52, r: 8, t: 18, b: 36 },
    legend: { orientation: "h", y: narrow ? -0.08 : -0.2, x: 0, font: { size: 11.5 } }, shapes: [], annotations: [],
  };
  const data = legend();
  const end = Math.max(2.55, Number(point.alpha) + 0.05);
  PANELS.forEach((panel, index) => {
    const number = index ? String(index + 1) : "";
    const axes = { xaxis: `x${number}`, yaxis: `y${number}` };
    layout[`xaxis${number}`] = { title: { text: "α", standoff: 2 }, range: [0.05, end], nticks: 6 };
    layout[`yaxis${number}`] = { title: { text: panel.title }, rangemode: "tozero", exponentformat: "power", nticks: 6 };
    data.push({ ...axes, ...EMPTY, showlegend: false }); // An empty trace keeps an empty panel.
    addVertical(layout, axes, Number(point.alpha), "dot");
    if (curve && curve.alpha_c) {
      addVertical(layout, axes, curve.alpha_c, "solid");
      layout.annotations.push({ xref: axes.xaxis, yref: `${axes.yaxis} domain`, x: curve.alpha_c, y: 1, yanchor: "bottom", showarrow: false,
        text: indexedLabel(index ? "α_c" : `α_c = ${curve.alpha_c.toFixed(2)}`), font: { size: 11.5, color: ink("ink") } });
    }
    for (const part of panel.parts) {
      if (curve) addBranches(data, axes, part);
      addPoint(data, axes, part, answer, 12);
      if (pinnedAnswer()) addPoint(data, axes, part, pinnedAnswer(), 9, "diamond");
      addRuns(data, axes, part, panel.parts.length > 1);
    }
    if (index === 1 && curve && curve.linear_test_error !== null) {
      data.push({ ...axes, x: [0.05, end], y: [curve.linear_test_error, curve.linear_test_error], mode: "lines", name: "linear layer",
        hoverinfo: "skip", line: { color: themeColor("linear"), dash: "dashdot", width: 1.5 } });
    }
  });
  return { data, layout };
}

function addVertical(layout, axes, alpha, dash) {
  layout.shapes.push({ type: "line", xref: axes.xaxis, yref: `${axes.yaxis} domain`, x0: alpha, x1: alpha, y0: 0, y1: 1, line: { color: ink("soft"), width: 1, dash } });
}

const scaled = (part, value, scale) => (value === null || value === undefined ? null : part === "theta" || part === "m" ? value / scale : value);

// Entries of the legend, with filled marks for every branch.
function legend() {
  const names = Object.keys(curve ? curve.branches : answer.value);
  const entry = (name, mode, marker, line) => ({ ...EMPTY, name, mode, marker, line });
  return [
    ...names.map((branch) => entry(branch, "lines+markers", { size: 7, symbol: SYMBOLS[branch], color: themeColor(branch) }, { color: themeColor(branch), width: 2 })),
    entry("not trusted", "markers", { size: 7, symbol: "circle-open", color: ink("ink"), line: { width: 1.4 } }),
    ...(curve && names.some((branch) => curve.branches[branch].kind.includes("saddle")) ? [entry("saddle", "markers", { size: 7, symbol: "hourglass-open", color: ink("ink") })] : []),
    ...(runsAt(point, true).length ? [entry("trained", "markers", { size: 9, symbol: "x-thin", line: { width: 2.2, color: ink("ink") } })] : []),
  ];
}

function addBranches(data, axes, part) {
  for (const [branch, series] of Object.entries(curve.branches)) {
    if (vanishes(part, branch)) continue;
    data.push({ ...axes, x: curve.alpha, y: series[part].map((value) => scaled(part, value, answer.scale)), mode: "lines+markers", name: branch, showlegend: false,
      hovertemplate: `${branch}: α %{x:.2f}, %{y:.4g}<extra></extra>`, line: { color: themeColor(branch), width: 2, dash: branch === "mixed" && part === "m" ? "dash" : "solid" },
      marker: { size: 5.5, symbol: series.kind.map((kind) => (kind === "saddle" ? "hourglass-open" : SYMBOLS[branch])),
        color: series.trusted.map((isTrusted) => (isTrusted ? themeColor(branch) : ink("card"))), line: { color: themeColor(branch), width: 1.4 } } });
  }
}

function addPoint(data, axes, part, numbers, size, symbol) {
  for (const [branch, solution] of Object.entries(numbers.value)) {
    if (!solution?.on_branch || vanishes(part, branch)) continue;
    data.push({ ...axes, x: [Number(numbers.point.alpha)], y: [scaled(part, valueOf(solution, part), numbers.scale)], mode: "markers", name: branch, showlegend: false,
      hovertemplate: `${symbol ? "pinned, " : ""}${branch}: α %{x:.2f}, %{y:.4g}<extra></extra>`,
      marker: { size, symbol: symbol ?? SYMBOLS[branch], color: themeColor(branch), line: { color: ink("ink"), width: symbol ? 1 : 2 } } });
  }
}

function addRuns(data, axes, part, hasSeveral) {
  const runs = runsAt(point, true).filter((run) => !hasSeveral || (part === "theta") === (run.mechanism === "semantic"));
  if (!runs.length) return;
  data.push({ ...axes, x: runs.map((run) => run.alpha), y: runs.map((run) => scaled(part, run[part], answer.scale)), mode: "markers",
    name: "trained", showlegend: false, hovertemplate: "trained: α %{x:.2f}, %{y:.4g}<extra></extra>",
    marker: { size: 10, symbol: "x-thin", line: { width: 2.2, color: runs.map((run) => themeColor(run.mechanism) ?? ink("ink")) } } });
}

table("curves", () => {
  const names = ["train_loss", "test_error", "theta", "m", "q", "V", "kind", "trusted"];
  const rows = [["alpha", "branch", ...names]];
  if (curve) for (const [branch, series] of Object.entries(curve.branches)) curve.alpha.forEach((alpha, i) => {
    rows.push([alpha, branch, ...names.map((name) => series[name][i])]);
  });
  return rows;
});
