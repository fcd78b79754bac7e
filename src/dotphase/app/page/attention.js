// Attention matrices of the teacher and of both students.

import { draw, ink, table } from "./figure.js";

const WHO = ["teacher", "semantic", "positional"];
const KINDS = [["mean", "average"], ["sample", "one sentence"]];
let matrices = null;

export function show(answer) {
  matrices = answer;
  draw("attention", build);
}

function build(width) {
  const narrow = width < 420;
  const layout = { grid: { rows: 2, columns: 3, pattern: "independent", xgap: 0.12, ygap: 0.3 }, annotations: [],
    margin: { l: narrow ? 30 : 46, r: 8, t: 28, b: 24 }, height: 350, showlegend: false };
  const data = [];
  KINDS.forEach(([kind, label], row) => WHO.forEach((who, column) => {
    const number = 3 * row + column + 1;
    const end = number === 1 ? "" : String(number);
    const matrix = matrices[kind][who];
    const tokens = ["1", "2"];
    layout[`xaxis${end}`] = { tickvals: tokens, side: "bottom", showgrid: false, type: "category" };
    layout[`yaxis${end}`] = { autorange: "reversed", showgrid: false, type: "category", showticklabels: !narrow || column === 0,
      title: column ? undefined : { text: label, standoff: 4 } };
    data.push({ type: "heatmap", x: tokens, y: tokens, z: matrix ?? [[null, null], [null, null]], zmin: 0.3, zmax: 0.7, xaxis: `x${end}`, yaxis: `y${end}`,
      colorscale: "Cividis", showscale: false, texttemplate: "%{z:.2f}", textfont: { size: 13 }, hovertemplate: `${who}, token %{y} on %{x}: %{z:.4f}<extra></extra>` });
    layout.annotations.push({ text: matrix ? (row ? "" : who) : `${who}: none`, showarrow: false, xref: `x${end} domain`, yref: `y${end} domain`,
      x: 0.5, y: 1, yanchor: "bottom", font: { size: 12.5, color: ink("ink") } });
  }));
  return { data, layout };
}

table("attention", () => {
  const rows = [["kind", "who", "row", "column", "weight"]];
  if (matrices) for (const [kind] of KINDS) for (const who of WHO) {
    (matrices[kind][who] ?? []).forEach((line, i) => line.forEach((weight, j) => rows.push([kind, who, i + 1, j + 1, weight])));
  }
  return rows;
});
