// Losses, errors and overlaps against alpha, with the chosen point and trained students on them.

import { byId } from "./dom.js";
import { colour, draw, ink, table } from "./figure.js";
import { dots } from "./train.js";
import { valueOf } from "./numbers.js";

const BRANCHES = ["semantic", "positional"];
let curve = null;
let point = null;
let answer = null;

export function show(got) {
  curve = got.value;
  byId("note-curves").textContent = got.error ? `The curve could not be computed (${got.error}).`
    : `${got.done ? "" : `Computing: ${Math.round(100 * got.progress)}%. `}Hollow: theory not trusted. Hourglass: a saddle, which training leaves. Large: your point. Crosses: trained students.`;
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
  { parts: ["theta", "m"], title: "overlaps θ/σ², |m|" },
];

function build(width) {
  const narrow = width < 640;
  const layout = {
    grid: narrow ? { rows: 3, columns: 1, pattern: "independent", ygap: 0.28 } : { rows: 1, columns: 3, pattern: "independent", xgap: 0.22 },
    height: narrow ? 720 : 320, margin: { l: 58, r: 12, t: 10, b: 44 },
    legend: { orientation: "h", y: narrow ? -0.09 : -0.24, x: 0 }, shapes: [],
  };
  const data = [];
  const scale = Number(point.sigma) ** 2;
  const size = (name, value) => (value === null || value === undefined ? null : name === "theta" ? value / scale : value);
  PANELS.forEach((panel, index) => {
    const end = index ? String(index + 1) : "";
    const axes = { xaxis: `x${end}`, yaxis: `y${end}` };
    layout[`xaxis${end}`] = { title: { text: "α" }, range: [0.05, Math.max(2.55, Number(point.alpha) + 0.05)] };
    layout[`yaxis${end}`] = { title: { text: panel.title }, rangemode: "tozero", exponentformat: "power", nticks: 6 };
    layout.shapes.push({ type: "line", xref: axes.xaxis, yref: `${axes.yaxis} domain`, x0: Number(point.alpha), x1: Number(point.alpha), y0: 0, y1: 1,
      line: { color: ink("soft"), width: 1, dash: "dot" } });
    for (const branch of BRANCHES) for (const part of panel.parts) {
      const vanishing = (part === "theta") !== (branch === "semantic") && panel.parts.length > 1;
      if (vanishing) continue;
      const common = { ...axes, legendgroup: branch, hovertemplate: `${branch}: α %{x:.2f}, %{y:.4g}<extra></extra>` };
      if (curve) {
        data.push({ ...common, x: curve.alpha, y: curve[branch][part].map((value) => size(part, value)), mode: "lines+markers",
          name: branch, showlegend: index === 0, line: { color: colour(branch), width: 2 },
          marker: { size: 6, symbol: curve[branch].kind.map((kind) => (kind === "saddle" ? "hourglass-open" : branch === "semantic" ? "circle" : "square")),
            color: curve[branch].trusted.map((good) => (good ? colour(branch) : ink("card"))), line: { color: colour(branch), width: 1.4 } } });
      }
      const found = answer && answer.value[branch];
      if (found && found.there) {
        data.push({ ...common, x: [Number(point.alpha)], y: [size(part, valueOf(found, part))], mode: "markers", showlegend: false,
          marker: { size: 13, symbol: branch === "semantic" ? "circle" : "square", color: colour(branch), line: { color: ink("ink"), width: 2 } } });
      }
    }
    if (index === 1 && curve && curve.linear_test_error !== null) {
      data.push({ ...axes, x: layout.xaxis.range, y: [curve.linear_test_error, curve.linear_test_error], mode: "lines", name: "linear layer",
        hoverinfo: "skip", line: { color: colour("linear"), dash: "dashdot", width: 1.5 } });
    }
    for (const part of panel.parts) {
      const trained = dots(point, true).filter((run) => panel.parts.length === 1 || (part === "theta") === (run.mechanism === "semantic"));
      if (trained.length) {
        data.push({ ...axes, x: trained.map((run) => run.alpha), y: trained.map((run) => size(part, run[part])), mode: "markers",
          name: "trained", showlegend: index === 0, hovertemplate: "trained: α %{x:.2f}, %{y:.4g}<extra></extra>",
          marker: { size: 10, symbol: "hourglass-open", line: { width: 2.4, color: trained.map((run) => colour(run.mechanism) ?? ink("ink")) } } });
      }
    }
  });
  return { data, layout };
}

table("curves", () => {
  const names = ["train_loss", "test_error", "theta", "m", "q", "V", "kind", "trusted"];
  const rows = [["alpha", "branch", ...names]];
  if (curve) for (const branch of BRANCHES) curve.alpha.forEach((alpha, i) => {
    rows.push([alpha, branch, ...names.map((name) => curve[branch][name][i])]);
  });
  return rows;
});
