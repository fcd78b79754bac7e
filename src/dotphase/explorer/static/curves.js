// Losses, errors and overlaps against alpha, with the chosen point and trained students on them.

import { byId } from "./dom.js";
import { colour, draw, ink, table } from "./figure.js";
import { dots } from "./train.js";
import { pinned, valueOf } from "./numbers.js";

export const SYMBOLS = { semantic: "circle", positional: "square", mixed: "diamond" };
let curve = null;
let point = null;
let answer = null;

export function show(got) {
  curve = got.value;
  byId("note-curves").textContent = got.error ? `The curve could not be computed (${got.error}).`
    : `${got.done ? "" : `Computing: ${Math.round(100 * got.progress)}%. `}Large: your point${pinned() ? "; diamonds: the pinned one" : ""}. Training loss: the lowest minimum wins.`;
  paint();
}

export function mark(where, numbers) {
  point = where;
  answer = numbers;
  paint();
}

export function forget() {
  curve = null;
}

export function paint() {
  if (point) draw("curves", build);
}

const PANELS = [
  { parts: ["train_loss"], title: "training loss ε_t" },
  { parts: ["test_error"], title: "test error ε_g" },
  { parts: ["theta", "m"], title: "overlaps θ/σ², |m|/σ²" },
];
const NOTHING = { x: [null], y: [null], hoverinfo: "skip" };
// Overlaps that are zero on a branch are not drawn.
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
    data.push({ ...axes, ...NOTHING, showlegend: false }); // a panel is there before anything is on it
    upright(layout, axes, Number(point.alpha), "dot");
    if (curve && curve.alpha_c) {
      upright(layout, axes, curve.alpha_c, "solid");
      layout.annotations.push({ xref: axes.xaxis, yref: `${axes.yaxis} domain`, x: curve.alpha_c, y: 1, yanchor: "bottom", showarrow: false,
        text: index ? "α_c" : `α_c = ${curve.alpha_c.toFixed(2)}`, font: { size: 11.5, color: ink("ink") } });
    }
    for (const part of panel.parts) {
      if (curve) followed(data, axes, part);
      here(data, axes, part, answer, 12);
      if (pinned()) here(data, axes, part, pinned(), 9, "diamond");
      trained(data, axes, part, panel.parts.length > 1);
    }
    if (index === 1 && curve && curve.linear_test_error !== null) {
      data.push({ ...axes, x: [0.05, end], y: [curve.linear_test_error, curve.linear_test_error], mode: "lines", name: "linear layer",
        hoverinfo: "skip", line: { color: colour("linear"), dash: "dashdot", width: 1.5 } });
    }
  });
  return { data, layout };
}

function upright(layout, axes, alpha, dash) {
  layout.shapes.push({ type: "line", xref: axes.xaxis, yref: `${axes.yaxis} domain`, x0: alpha, x1: alpha, y0: 0, y1: 1, line: { color: ink("soft"), width: 1, dash } });
}

const scaled = (part, value, scale) => (value === null || value === undefined ? null : part === "theta" || part === "m" ? value / scale : value);

// Marks of the legend are full ones, whatever the first point of a line is.
function legend() {
  const names = Object.keys(curve ? curve.branches : answer.value);
  const entry = (name, mode, marker, line) => ({ ...NOTHING, name, mode, marker, line });
  return [
    ...names.map((branch) => entry(branch, "lines+markers", { size: 7, symbol: SYMBOLS[branch], color: colour(branch) }, { color: colour(branch), width: 2 })),
    entry("not trusted", "markers", { size: 7, symbol: "circle-open", color: ink("ink"), line: { width: 1.4 } }),
    ...(curve && names.some((branch) => curve.branches[branch].kind.includes("saddle")) ? [entry("saddle", "markers", { size: 7, symbol: "hourglass-open", color: ink("ink") })] : []),
    ...(dots(point, true).length ? [entry("trained", "markers", { size: 9, symbol: "x-thin", line: { width: 2.2, color: ink("ink") } })] : []),
  ];
}

function followed(data, axes, part) {
  for (const [branch, found] of Object.entries(curve.branches)) {
    if (vanishes(part, branch)) continue;
    data.push({ ...axes, x: curve.alpha, y: found[part].map((value) => scaled(part, value, answer.scale)), mode: "lines+markers", name: branch, showlegend: false,
      hovertemplate: `${branch}: α %{x:.2f}, %{y:.4g}<extra></extra>`, line: { color: colour(branch), width: 2, dash: branch === "mixed" && part === "m" ? "dash" : "solid" },
      marker: { size: 5.5, symbol: found.kind.map((kind) => (kind === "saddle" ? "hourglass-open" : SYMBOLS[branch])),
        color: found.trusted.map((good) => (good ? colour(branch) : ink("card"))), line: { color: colour(branch), width: 1.4 } } });
  }
}

function here(data, axes, part, numbers, size, symbol) {
  for (const [branch, found] of Object.entries(numbers.value)) {
    if (!found || !found.on_branch || vanishes(part, branch)) continue;
    data.push({ ...axes, x: [Number(numbers.point.alpha)], y: [scaled(part, valueOf(found, part), numbers.scale)], mode: "markers", name: branch, showlegend: false,
      hovertemplate: `${symbol ? "pinned, " : ""}${branch}: α %{x:.2f}, %{y:.4g}<extra></extra>`,
      marker: { size, symbol: symbol ?? SYMBOLS[branch], color: colour(branch), line: { color: ink("ink"), width: symbol ? 1 : 2 } } });
  }
}

function trained(data, axes, part, several) {
  const runs = dots(point, true).filter((run) => !several || (part === "theta") === (run.mechanism === "semantic"));
  if (!runs.length) return;
  data.push({ ...axes, x: runs.map((run) => run.alpha), y: runs.map((run) => scaled(part, run[part], answer.scale)), mode: "markers",
    name: "trained", showlegend: false, hovertemplate: "trained: α %{x:.2f}, %{y:.4g}<extra></extra>",
    marker: { size: 10, symbol: "x-thin", line: { width: 2.2, color: runs.map((run) => colour(run.mechanism) ?? ink("ink")) } } });
}

table("curves", () => {
  const names = ["train_loss", "test_error", "theta", "m", "q", "V", "kind", "trusted"];
  const rows = [["alpha", "branch", ...names]];
  if (curve) for (const [branch, found] of Object.entries(curve.branches)) curve.alpha.forEach((alpha, i) => {
    rows.push([alpha, branch, ...names.map((name) => found[name][i])]);
  });
  return rows;
});
