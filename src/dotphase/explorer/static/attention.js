// Attention matrices of the teacher and of the students, for the numbers that the page shows.

import { get } from "./api.js";
import { byId } from "./dom.js";
import { differenceScale, draw, ink, table } from "./figure.js";

const KINDS = [["mean", "average"], ["sample", "one sentence"]];
let matrices = null;
let next = null; // the next request; a newer one replaces it
let shown = ""; // key of the drawn matrices
let isAsking = false;

const sentence = () => byId("sentence").value.trim();

// Request matrices when a branch of the point is new or more precise.
export async function follow(answer, refuse) {
  const stages = Object.entries(answer.value).map(([branch, solution]) => [branch, solution?.stage, solution?.on_branch]);
  const key = JSON.stringify([answer.point, stages, sentence()]);
  if (key === shown) return;
  next = { key, query: { ...answer.point, sentence: sentence() }, point: JSON.stringify(answer.point) };
  byId("view-attention").dataset.stale = String(next.point !== byId("plot-attention").dataset.point);
  if (isAsking) return;
  isAsking = true;
  while (next) {
    const request = next;
    next = null;
    try {
      const answer = await get("attention", request.query);
      shown = request.key;
      if (!next || next.point === request.point) show(answer);
    } catch (error) {
      refuse(error);
    }
  }
  isAsking = false;
}

function show(answer) {
  matrices = answer;
  const container = byId("plot-attention");
  container.dataset.point = JSON.stringify(answer.point);
  container.dataset.stages = JSON.stringify(answer.stages);
  byId("view-attention").dataset.stale = "false";
  draw("attention", build);
}

const learners = () => ["teacher", ...Object.keys(matrices.stages)];

function build(width) {
  const names = learners();
  const narrow = width < 420;
  const layout = { grid: { rows: 2, columns: names.length, pattern: "independent", xgap: 0.1, ygap: 0.22 }, annotations: [],
    margin: { l: narrow ? 40 : 46, r: 4, t: 22, b: 20 }, height: 262, showlegend: false };
  const data = [];
  const tokens = matrices.mean.teacher.map((_, index) => String(index + 1));
  const uniform = 1 / tokens.length;
  KINDS.forEach(([kind, label], row) => names.forEach((name, column) => {
    // Small differences of the averages stay visible: each row of matrices has its own scale.
    const largest = Math.max(0.02, ...Object.values(matrices[kind]).flat(2).filter((weight) => weight !== null).map((weight) => Math.abs(weight - uniform)));
    const number = names.length * row + column + 1;
    const end = number === 1 ? "" : String(number);
    const matrix = matrices[kind][name];
    layout[`xaxis${end}`] = { tickvals: tokens, side: "bottom", showgrid: false, type: "category" };
    layout[`yaxis${end}`] = { autorange: "reversed", showgrid: false, type: "category", showticklabels: column === 0,
      title: column ? undefined : { text: label, standoff: 3 } };
    data.push({ type: "heatmap", x: tokens, y: tokens, z: (matrix ?? tokens.map(() => tokens.map(() => null))).map((line) => line.map((weight) => (weight === null ? null : weight - uniform))),
      text: matrix ?? [], ...differenceScale(largest), xaxis: `x${end}`, yaxis: `y${end}`,
      showscale: false, texttemplate: tokens.length > 4 ? "" : "%{text:.2f}", textfont: { size: tokens.length > 2 ? 10 : 12.5 },
      hovertemplate: `${name}, token %{y} on %{x}: %{text:.4f}<extra></extra>` });
    const title = row ? "" : name;
    layout.annotations.push({ text: matrix ? title : `${title}<br>${matrices.stages[name] === "final" ? "no minimum" : "searching"}`, showarrow: false, xref: `x${end} domain`, yref: `y${end} domain`,
      x: 0.5, y: matrix ? 1 : 0.5, yanchor: matrix ? "bottom" : "middle", font: { size: matrix ? 12.5 : 11.5, color: ink(matrix ? "ink" : "soft") } });
  }));
  return { data, layout };
}

table("attention", () => {
  const rows = [["kind", "learner", "row", "column", "weight"]];
  if (matrices) for (const [kind] of KINDS) for (const name of learners()) {
    (matrices[kind][name] ?? []).forEach((line, i) => line.forEach((weight, j) => rows.push([kind, name, i + 1, j + 1, weight])));
  }
  return rows;
});
