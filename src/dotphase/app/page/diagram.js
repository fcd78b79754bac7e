// The phase diagram, and choosing a point on it by pointer or arrow keys.

import { byId } from "./dom.js";
import { colour, draw, ink, table } from "./figure.js";

let value = null;
let here = null;

export function show(answer) {
  value = answer.value;
  const note = byId("note-diagram");
  const state = answer.error ? `It could not be computed (${answer.error}).`
    : answer.done ? "" : `Computing this diagram in the background: ${Math.round(100 * answer.progress)}%. `;
  note.textContent = `${state}Colour: semantic minus positional training loss, grey where one branch is no minimum: triangles point down where the semantic branch is a saddle, up where the positional one is, rings where one is missing. Solid line: α_c, the losses cross. Dashed: α_l, the lower minimum beats a linear layer. Crosses: the theory of the lower minimum is not to be trusted. Click or drag to move the point.`;
  paint();
}

export function move(point) {
  here = point;
  paint();
}

function paint() {
  if (here) draw("diagram", build);
}

function build() {
  const data = [];
  if (value) {
    const gaps = value.loss_difference.flat().filter((gap) => gap !== null).map(Math.abs).sort((a, b) => a - b);
    const limit = 1e3 * (gaps[Math.floor(0.95 * (gaps.length - 1))] || 1e-3);
    data.push({
      type: "heatmap", x: value.alpha, y: value.omega,
      z: value.loss_difference.map((row) => row.map((gap) => (gap === null ? null : 1e3 * gap))),
      zmin: -limit, zmax: limit, name: "", hovertemplate: "α %{x:.2f}, ω %{y:.3f}<br>difference %{z:.3f}·10⁻³",
      colorscale: [[0, colour("semantic")], [0.5, ink("middle")], [1, colour("positional")]],
      colorbar: { title: { text: "10⁻³", side: "top" }, thickness: 10, outlinewidth: 0, len: 0.9,
        tickfont: { size: 11 } },
    });
    const doubtful = { x: [], y: [] };
    value.trusted.forEach((row, i) => row.forEach((good, j) => {
      if (!good) { doubtful.x.push(value.alpha[j]); doubtful.y.push(value.omega[i]); }
    }));
    data.push({ ...doubtful, mode: "markers", name: "not trusted", hoverinfo: "skip",
      marker: { symbol: "x-thin", size: 5, opacity: 0.45, line: { width: 1, color: ink("ink") } } });
    for (const [branch, symbol] of [["semantic", "triangle-down"], ["positional", "triangle-up"]]) {
      for (const [kind, shape] of [["saddle", symbol], ["missing", "circle-open"]]) {
        const cells = { x: [], y: [] };
        value.kind[branch].forEach((row, i) => row.forEach((found, j) => {
          if (found === kind) { cells.x.push(value.alpha[j]); cells.y.push(value.omega[i]); }
        }));
        data.push({ ...cells, mode: "markers", name: `${branch} branch: ${kind}`, hovertemplate: `α %{x:.2f}, ω %{y:.3f}<br>${branch} branch: ${kind}<extra></extra>`,
          marker: { symbol: shape, size: 4, opacity: 0.7, color: colour(branch), line: { width: 1, color: colour(branch) } } });
      }
    }
    for (const [name, label, dash] of [["alpha_c", "α_c: losses cross", "solid"], ["alpha_l", "α_l: beats the linear layer", "dash"]]) {
      data.push({ x: value[name], y: value.omega, mode: "lines", name: label, connectgaps: false,
        line: { color: ink("ink"), width: 2, dash } });
    }
  }
  data.push({ x: [Number(here.alpha)], y: [Number(here.omega)], mode: "markers", name: "your point", cliponaxis: false,
    marker: { size: 15, color: "#F0E442", line: { color: "#000000", width: 2 } }, showlegend: false });
  const top = Math.max(0.6125, Number(here.omega) + 0.02);
  return {
    data,
    layout: {
      xaxis: { title: { text: "α" }, range: [0.05, Math.max(2.55, Number(here.alpha) + 0.05)] },
      yaxis: { title: { text: "ω" }, range: [-0.0125, top] },
      plot_bgcolor: ink("missing"), margin: { l: 50, r: 8, t: 10, b: 40 }, showlegend: false, annotations: value ? labels() : [],
    },
  };
}

// The names of the two lines, where they end.
function labels() {
  return [["alpha_c", "α_c", "bottom"], ["alpha_l", "α_l", "top"]].flatMap(([name, text, side]) => {
    const known = value[name].map((alpha, i) => [alpha, value.omega[i]]).filter(([alpha]) => alpha !== null);
    if (known.length < 3) return [];
    const [x, y] = known[Math.floor(0.75 * known.length)];
    return [{ x, y, text, showarrow: false, xanchor: side === "bottom" ? "right" : "left", yanchor: side, xshift: side === "bottom" ? -3 : 3,
      font: { size: 14, color: ink("ink") } }];
  });
}

// Where a pointer is, in alpha and omega, or null outside the plot.
function position(place, event) {
  const area = place.querySelector(".nsewdrag");
  if (!area) return null;
  const box = area.getBoundingClientRect();
  const across = (event.clientX - box.left) / box.width;
  const up = 1 - (event.clientY - box.top) / box.height;
  if (across < 0 || across > 1 || up < 0 || up > 1) return null;
  const [x, y] = [place.layout.xaxis.range, place.layout.yaxis.range];
  return { alpha: x[0] + across * (x[1] - x[0]), omega: y[0] + up * (y[1] - y[0]) };
}

export function listen(choose) {
  const place = byId("plot-diagram");
  let held = false;
  const take = (event) => {
    const found = position(place, event);
    if (!found) return false;
    const within = (number, low, high) => Math.min(Math.max(number, low), high);
    choose({ alpha: within(found.alpha, 0.05, 5).toFixed(2), omega: within(found.omega, 0, 1).toFixed(3) });
    return true;
  };
  place.addEventListener("pointerdown", (event) => { held = take(event); }, true);
  window.addEventListener("pointermove", (event) => { if (held) take(event); });
  for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, () => { held = false; });
  const keys = { ArrowLeft: [-0.02, 0], ArrowRight: [0.02, 0], ArrowUp: [0, 0.01], ArrowDown: [0, -0.01] };
  place.addEventListener("keydown", (event) => {
    const step = keys[event.key];
    if (!step || !here) return;
    event.preventDefault();
    const alpha = Math.min(Math.max(Number(here.alpha) + step[0], 0.05), 5);
    const omega = Math.min(Math.max(Number(here.omega) + step[1], 0), 1);
    choose({ alpha: alpha.toFixed(2), omega: omega.toFixed(3) });
  });
}

table("diagram", () => {
  const rows = [["alpha", "omega", "loss_difference", "semantic_kind", "positional_kind", "trusted"]];
  if (value) value.omega.forEach((omega, i) => value.alpha.forEach((alpha, j) => {
    rows.push([alpha, omega, value.loss_difference[i][j], value.kind.semantic[i][j], value.kind.positional[i][j], value.trusted[i][j]]);
  }));
  return rows;
});
