// The effective landscape in the plane of m and theta.

import { byId } from "./dom.js";
import { pause } from "./api.js";
import { SYMBOLS } from "./curves.js";
import { themeColor, dark, draw, drawShapes, ink, table } from "./figure.js";
import { runsAt } from "./train.js";

let frames = []; // m and theta of every run after more and more steps
let ended = true;
let moving = null; // m and theta of every run in this frame of the animation
let value = null;
let point = null;
let answer = null;
let painted = -Infinity; // time of the last drawing, in milliseconds

const MIN_INTERVAL = 700; // milliseconds between two drawings of an incomplete landscape

export function show(job) {
  value = job.value;
  const minima = value && value.minima.length
    ? `On this grid the minima are at (m, θ) = ${value.minima.map(([m, theta]) => `(${m.toFixed(2)}, ${theta.toFixed(3)})`).join(" and ")}, the lowest first. The landscape is trusted in ${Math.round(100 * value.trusted)}% of the cells: it assumes replica symmetry, which fails where the proximal map jumps often. ` : "";
  byId("note-landscape").textContent = job.error ? `No landscape: ${job.error}.`
    : `${job.done ? minima : `Computing: ${Math.round(100 * job.progress)}%. `}Filled marks show the branches of state evolution, moving dots gradient descent, and crosses trained students.`;
  if (!job.done && !job.error && performance.now() - painted < MIN_INTERVAL) return;
  painted = performance.now();
  paint();
}

export function setPoint(newPoint, newAnswer) {
  point = newPoint;
  answer = newAnswer;
  paint();
}

export function forget() {
  value = null;
  painted = performance.now();
  byId("note-landscape").textContent = "The landscape starts when the point stops moving.";
}

// Animate gradient descent while it runs, if the page shows its point.
export async function follow(newFrames, trainingPoint, hasEnded) {
  frames = newFrames;
  ended = hasEnded;
  if (moving || ended || !frames.length) return;
  const isShown = () => point && Object.keys(trainingPoint).every((name) => String(trainingPoint[name]) === String(point[name]));
  for (let now = 0; isShown() && !(ended && now >= frames.length - 1); now = Math.min(now + 0.1, frames.length - 1)) {
    const [from, to] = [frames[Math.floor(now)], frames[Math.ceil(now)]];
    moving = from.map((dot, run) => dot.map((start, axis) => start + (now % 1) * (to[run][axis] - start))).filter((dot) => dot.every(Number.isFinite));
    drawShapes("landscape", shapes());
    byId("plot-landscape").dataset.dots = String(moving.length);
    await pause(40);
  }
  moving = null;
  drawShapes("landscape", shapes());
}

const shapes = () => (moving ?? []).map(([m, theta]) => ({ type: "circle", xref: "x", yref: "y", xsizemode: "pixel", ysizemode: "pixel",
  xanchor: m, yanchor: theta, x0: -6, x1: 6, y0: -6, y1: 6, fillcolor: "#F0E442", line: { color: "#000000", width: 1.5 } }));

export function paint() {
  if (point) draw("landscape", build);
}

function build() {
  const data = [];
  const top = answer.scale;
  if (value && value.loss.some((row) => row)) {
    const height = value.loss.map((row) => (row ? row.map((loss) => (loss === null ? null : 1e3 * loss)) : value.m.map(() => null)));
    const losses = height.flat().filter((loss) => loss !== null);
    const low = Math.min(...losses);
    // Basins are shallow and walls are steep: the levels are equidistant in the root of the height.
    const root = height.map((row) => row.map((loss) => (loss === null ? null : Math.sqrt(loss - low))));
    const reach = Math.sqrt(losses.sort((a, b) => a - b)[Math.floor(0.8 * (losses.length - 1))] - low) || 1;
    const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => share * reach);
    data.push({ type: "contour", x: value.m, y: value.theta, z: root, zmin: 0, zmax: reach, autocontour: false, connectgaps: false,
      contours: { start: 0, end: reach, size: reach / 22, coloring: "heatmap" }, line: { width: 0.6, color: dark() ? "#00000066" : "#ffffff88" },
      colorscale: "Viridis", reversescale: false, customdata: height, hovertemplate: "m %{x:.2f}, θ %{y:.3f}<br>loss %{customdata:.4f}·10⁻³<extra></extra>",
      colorbar: { thickness: 10, outlinewidth: 0, len: 0.9, tickvals: ticks, ticktext: ticks.map((tick) => (tick * tick + low).toFixed(2)),
        title: { text: "10⁻³", side: "top" } } });
    if (value.minima.length) {
      data.push({ x: value.minima.map((cell) => cell[0]), y: value.minima.map((cell) => cell[1]), mode: "markers", name: "minima on the grid",
        cliponaxis: false, hoverinfo: "skip", marker: { symbol: "circle-open", size: 20, color: "#F0E442", line: { width: 2.5 } } });
    }
  }
  for (const [branch, solution] of Object.entries(answer.value)) {
    if (!solution?.on_branch) continue;
    data.push({ x: [solution.norms.m], y: [solution.norms.theta], mode: "markers", name: branch, cliponaxis: false,
      hovertemplate: `${branch}: m %{x:.3f}, θ %{y:.4f}<extra></extra>`,
      marker: { size: 13, symbol: SYMBOLS[branch], color: themeColor(branch), line: { color: "#ffffff", width: 2 } } });
  }
  const trained = runsAt(point, false);
  for (const [width, color] of trained.length ? [[5, "#000000"], [2.2, "#ffffff"]] : []) { // visible on every color
    data.push({ x: trained.map((run) => run.m), y: trained.map((run) => run.theta), mode: "markers", name: "trained", showlegend: width > 4,
      hovertemplate: "trained: m %{x:.3f}, θ %{y:.4f}<extra></extra>", marker: { symbol: "x-thin", size: 10, line: { width, color } } });
  }
  return { data, layout: {
    xaxis: { title: { text: "m" }, range: [-0.012, 0.612] },
    yaxis: { title: { text: "θ" }, range: [-0.02 * top, 1.02 * top] },
    plot_bgcolor: ink("missing"), height: 340, shapes: shapes(),
  } };
}

table("landscape", () => {
  const rows = [["m", "theta", "loss"]];
  if (value) value.theta.forEach((theta, i) => value.m.forEach((m, j) => {
    rows.push([m, theta, value.loss[i] ? value.loss[i][j] : null]);
  }));
  return rows;
});
