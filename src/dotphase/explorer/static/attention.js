// Attention matrices of the teacher and of the students: always those of the numbers beside them.

import { get } from "./api.js";
import { byId } from "./dom.js";
import { draw, ink, table } from "./figure.js";

const KINDS = [["mean", "average"], ["sample", "one sentence"]];
let matrices = null;
let wanted = null; // what is asked for next; the newest alone
let shown = ""; // what the picture is of
let asking = false;

const sentence = () => byId("sentence").value.trim();

// Follow an answer about a point: asked again whenever a minimum of it is new or better known.
export async function follow(answer, refuse) {
  const stages = Object.entries(answer.value).map(([branch, found]) => [branch, found && found.stage, found && found.on_branch]);
  const key = JSON.stringify([answer.point, stages, sentence()]);
  if (key === shown) return;
  wanted = { key, query: { ...answer.point, sentence: sentence() }, point: JSON.stringify(answer.point) };
  byId("view-attention").dataset.stale = String(wanted.point !== byId("plot-attention").dataset.point);
  if (asking) return;
  asking = true;
  while (wanted) {
    const mine = wanted;
    wanted = null;
    try {
      const got = await get("attention", mine.query);
      shown = mine.key;
      if (!wanted || wanted.point === mine.point) show(got);
    } catch (error) {
      refuse(error);
    }
  }
  asking = false;
}

function show(answer) {
  matrices = answer;
  const place = byId("plot-attention");
  place.dataset.point = JSON.stringify(answer.point);
  place.dataset.stages = JSON.stringify(answer.stages);
  byId("view-attention").dataset.stale = "false";
  draw("attention", build);
}

const who = () => ["teacher", ...Object.keys(matrices.stages)];

function build(width) {
  const students = who();
  const narrow = width < 420;
  const layout = { grid: { rows: 2, columns: students.length, pattern: "independent", xgap: 0.1, ygap: 0.22 }, annotations: [],
    margin: { l: narrow ? 40 : 46, r: 4, t: 22, b: 20 }, height: 262, showlegend: false };
  const data = [];
  const tokens = matrices.mean.teacher.map((_, index) => String(index + 1));
  const all = KINDS.flatMap(([kind]) => Object.values(matrices[kind]).flat(2));
  // Two tokens: the same colours for all settings. More of them share what there is.
  const [low, high] = tokens.length === 2 ? [0.3, 0.7] : [Math.min(...all), Math.max(...all)];
  KINDS.forEach(([kind, label], row) => students.forEach((name, column) => {
    const number = students.length * row + column + 1;
    const end = number === 1 ? "" : String(number);
    const matrix = matrices[kind][name];
    layout[`xaxis${end}`] = { tickvals: tokens, side: "bottom", showgrid: false, type: "category" };
    layout[`yaxis${end}`] = { autorange: "reversed", showgrid: false, type: "category", showticklabels: column === 0,
      title: column ? undefined : { text: label, standoff: 3 } };
    data.push({ type: "heatmap", x: tokens, y: tokens, z: matrix ?? tokens.map(() => tokens.map(() => null)), zmin: low, zmax: high, xaxis: `x${end}`, yaxis: `y${end}`,
      colorscale: "Cividis", showscale: false, texttemplate: tokens.length > 4 ? "" : "%{z:.2f}", textfont: { size: tokens.length > 2 ? 10 : 12.5 },
      hovertemplate: `${name}, token %{y} on %{x}: %{z:.4f}<extra></extra>` });
    const title = row ? "" : name;
    layout.annotations.push({ text: matrix ? title : `${title}<br>${matrices.stages[name] === "final" ? "no such minimum" : "searching"}`, showarrow: false, xref: `x${end} domain`, yref: `y${end} domain`,
      x: 0.5, y: matrix ? 1 : 0.5, yanchor: matrix ? "bottom" : "middle", font: { size: matrix ? 12.5 : 11.5, color: ink(matrix ? "ink" : "soft") } });
  }));
  return { data, layout };
}

table("attention", () => {
  const rows = [["kind", "who", "row", "column", "weight"]];
  if (matrices) for (const [kind] of KINDS) for (const name of who()) {
    (matrices[kind][name] ?? []).forEach((line, i) => line.forEach((weight, j) => rows.push([kind, name, i + 1, j + 1, weight])));
  }
  return rows;
});
