// The phase diagram, on which pointer and arrow keys choose a point.

import { byId, element, indexedLabel } from "./dom.js";
import { mixColors, themeColor, draw, ink, moveTraces, table } from "./figure.js";
import { term } from "./terms.js";

const BRANCHES = ["semantic", "positional"];
let value = null;
let current = null; // the point of the page
let pinned = null; // the pinned point
let axis = null; // name and letter of the vertical axis
let drawn = ""; // ranges of the drawn axes

export const setAxis = (vertical) => { axis = vertical; };

export function show(answer) {
  value = answer.value;
  byId("note-diagram").textContent = answer.error ? `No phase diagram: ${answer.error}.`
    : answer.done ? "" : `Computing this diagram in the background: ${Math.round(100 * answer.progress)}%.`;
  paint();
}

// Move the point. The cells are drawn again only if the axes change.
export function move(point) {
  current = point;
  if (!axis || ranges() !== drawn || !moveTraces("diagram", points())) paint();
}

export function pin(point) {
  pinned = point;
  paint();
}

function paint() {
  if (current && axis) draw("diagram", build);
  if (value) drawKey();
}

const isMinimum = (kind) => kind !== "missing" && kind !== "saddle";
// The only branch that is a minimum in a cell; null if both are, "none" if none is.
function onlyMinimum(i, j) {
  const minima = BRANCHES.filter((branch) => isMinimum(value.kind[branch][i][j]));
  return minima.length === 2 ? null : minima[0] ?? "none";
}
const winner = (i, j) => onlyMinimum(i, j) ?? (value.loss_difference[i][j] < 0 ? "semantic" : "positional");
// Color of cells with one minimum: paler if gradient descent fills such cells.
const paleColor = (branch) => mixColors(themeColor(branch), ink("card"), value.reached ? 0.85 : 0.35);

// Coordinates of the cells that fulfill a condition.
function selectCells(condition) {
  const selected = { x: [], y: [] };
  value.vertical.forEach((y, i) => value.alpha.forEach((x, j) => {
    if (condition(i, j)) { selected.x.push(x); selected.y.push(y); }
  }));
  return selected;
}

function build() {
  const data = [];
  const layout = {
    height: 312, xaxis: { title: { text: "α", standoff: 2 } }, yaxis: { title: { text: axis.letter } },
    margin: { l: 46, r: 6, t: 8, b: 34 }, showlegend: false, annotations: [], shapes: [],
  };
  if (value) {
    drawCells(data);
    lines(data);
    layout.annotations = [...phases(), ...labels()];
  }
  data.push(...points());
  frame(layout);
  drawn = ranges();
  return { data, layout };
}

// Traces of the pinned point and of the point of the page, drawn last.
function points() {
  return [[pinned, "diamond-open", "pinned", 14], [current, "circle", "your point", 15]].map(([point, symbol, name, size]) => ({
    x: point ? [Number(point.alpha)] : [], y: point ? [Number(point[axis.name])] : [], mode: "markers", name, cliponaxis: false,
    hovertemplate: `${name}: α %{x:.2f}, ${axis.letter} %{y:.3f}<extra></extra>`,
    marker: { size, symbol, color: symbol === "circle" ? "#F0E442" : ink("ink"), line: { color: symbol === "circle" ? "#000000" : ink("ink"), width: 2 } } }));
}

// Extent of the cells along an axis, and the range that contains the points as well.
function extent(values, name) {
  const step = values.length > 1 ? (values[1] - values[0]) / 2 : 0.05;
  const [low, high] = values.length ? [values[0] - step, values.at(-1) + step] : [0, 1];
  const positions = [current, pinned].filter(Boolean).map((point) => Number(point[name]));
  const room = 0.06 * (high - low);
  const range = [low, high];
  if (positions.some((position) => position < low)) range[0] = Math.min(...positions) - room;
  if (positions.some((position) => position > high)) range[1] = Math.max(...positions) + room;
  return { inside: [low, high], range, beyond: range[0] < low || range[1] > high };
}

const axes = () => [extent(value ? value.alpha : [], "alpha"), extent(value ? value.vertical : [], axis.name)];
const ranges = () => JSON.stringify(axes().map(({ range }) => range));

// Set the ranges of the axes, and label the area outside the cells.
function frame(layout) {
  const [x, y] = axes();
  layout.xaxis.range = x.range;
  layout.yaxis.range = y.range;
  if (!value || !(x.beyond || y.beyond)) return;
  layout.shapes.push({ type: "rect", x0: x.inside[0], x1: x.inside[1], y0: y.inside[0], y1: y.inside[1], line: { color: ink("soft"), width: 1, dash: "dot" } });
  const right = x.range[1] > x.inside[1];
  layout.annotations.push({ text: "not computed here", showarrow: false, font: { size: 11.5, color: ink("soft") },
    x: right ? (x.inside[1] + x.range[1]) / 2 : (x.inside[0] + x.inside[1]) / 2,
    y: right ? (y.inside[0] + y.inside[1]) / 2 : (y.inside[1] + y.range[1]) / 2, textangle: right ? -90 : 0 });
}

function drawCells(data) {
  const gaps = value.loss_difference.flat().filter((gap) => gap !== null).map(Math.abs).sort((a, b) => a - b);
  const limit = 1e3 * (gaps[Math.floor(0.95 * (gaps.length - 1))] || 1e-3);
  const states = ["semantic", "positional", "none"];
  const shades = [paleColor("semantic"), paleColor("positional"), ink("missing")];
  data.push({ type: "heatmap", x: value.alpha, y: value.vertical, showscale: false, hoverinfo: "skip", zmin: 0, zmax: 3,
    z: value.vertical.map((_, i) => value.alpha.map((__, j) => { const state = onlyMinimum(i, j); return state === null ? null : states.indexOf(state) + 0.5; })),
    colorscale: shades.flatMap((shade, index) => [[index / 3, shade], [(index + 1) / 3, shade]]) });
  data.push({
    type: "heatmap", x: value.alpha, y: value.vertical,
    z: value.loss_difference.map((row) => row.map((gap) => (gap === null ? null : 1e3 * gap))),
    zmin: -limit, zmax: limit, name: "", hovertemplate: `α %{x:.2f}, ${axis.letter} %{y:.3f}<br>semantic − positional loss %{z:.3f}·10⁻³<extra></extra>`,
    colorscale: [[0, themeColor("semantic")], [0.5, ink("middle")], [1, themeColor("positional")]],
    colorbar: { title: { text: "10⁻³", side: "top", font: { size: 11 } }, thickness: 8, outlinewidth: 0, len: 0.9, tickfont: { size: 10.5 }, nticks: 5, xpad: 4 },
  });
  data.push({ ...selectCells((i, j) => !value.trusted[i][j]), mode: "markers", name: "not trusted", hoverinfo: "skip",
    marker: { symbol: "x-thin", size: 5, opacity: 0.5, line: { width: 1, color: ink("ink") } } });
  for (const [branch, symbol] of [["semantic", "triangle-down"], ["positional", "triangle-up"]]) {
    for (const [kind, shape] of [["saddle", symbol], ["missing", "circle-open"]]) {
      data.push({ ...selectCells((i, j) => value.kind[branch][i][j] === kind), mode: "markers", name: `${branch} branch: ${kind}`,
        hovertemplate: `α %{x:.2f}, ${axis.letter} %{y:.3f}<br>${branch} branch: ${kind}<extra></extra>`,
        marker: { symbol: shape, size: 3.5, opacity: 0.55, color: ink("ink"), line: { width: 0.8, color: ink("ink") } } });
    }
  }
}

function lines(data) {
  for (const [name, label, dash] of [["alpha_c", indexedLabel("α_c: losses cross"), "solid"], ["alpha_l", indexedLabel("α_l: beats the linear layer"), "dash"]]) {
    data.push({ x: value[name], y: value.vertical, mode: "lines", name: label, connectgaps: false, hovertemplate: `${label}: α %{x:.3f}<extra></extra>`,
      line: { color: ink("ink"), width: 2, dash } });
  }
}

// Names of the two phases, each in the middle of its cells.
function phases() {
  return BRANCHES.flatMap((branch) => {
    const own = selectCells((i, j) => winner(i, j) === branch);
    if (own.x.length < 12) return [];
    const middle = (list) => list.reduce((sum, number) => sum + number, 0) / list.length;
    return [{ x: middle(own.x), y: middle(own.y), text: `<b>${branch}</b>`, showarrow: false, font: { size: 14, color: ink("ink") },
      bgcolor: ink("card"), opacity: 0.82, borderpad: 3 }];
  });
}

// Names of the two lines, near their ends.
function labels() {
  return [["alpha_c", indexedLabel("α_c"), "bottom"], ["alpha_l", indexedLabel("α_l"), "top"]].flatMap(([name, text, side]) => {
    const line = value[name].map((alpha, i) => [alpha, value.vertical[i]]).filter(([alpha]) => alpha !== null);
    if (line.length < 3) return [];
    const [x, y] = line[Math.floor(0.85 * line.length)];
    return [{ x, y, text, showarrow: false, xanchor: side === "bottom" ? "right" : "left", yanchor: side, xshift: side === "bottom" ? -3 : 3,
      font: { size: 14, color: ink("ink") } }];
  });
}

// Legend of the colors and marks that occur in this diagram.
function drawKey() {
  const swatch = (color, text) => element("span", {}, element("i", { style: `background:${color}` }), text);
  const sign = (mark, ...text) => element("span", {}, element("b", {}, mark), ...text);
  const any = (condition) => selectCells(condition).x.length > 0;
  const hasKind = (kind) => any((i, j) => BRANCHES.some((branch) => value.kind[branch][i][j] === kind));
  byId("key-diagram").replaceChildren(
    swatch(themeColor("positional"), "positional loss lower"), swatch(themeColor("semantic"), "semantic loss lower"),
    ...(!value.reached && any((i, j) => onlyMinimum(i, j) === "positional") ? [swatch(paleColor("positional"), "only the positional one is a minimum")] : []),
    ...(!value.reached && any((i, j) => onlyMinimum(i, j) === "semantic") ? [swatch(paleColor("semantic"), "only the semantic one is a minimum")] : []),
    ...(any((i, j) => onlyMinimum(i, j) === "none") ? [swatch(ink("missing"), "no minimum")] : []),
    ...(hasKind("missing") ? [sign("○", "one branch is missing")] : []), ...(hasKind("saddle") ? [sign("▾▴", "one branch is a saddle")] : []),
    ...(value.reached ? [element("span", {}, "(color: end of gradient descent)")] : []),
    sign("×", "not trusted"), sign("—", term("alpha_c", "α_c")), sign("- -", term("alpha_l", "α_l")),
  );
}

// Coordinates of a pointer in the plot, or null outside of it.
function position(container, event) {
  const plot = container.querySelector(".nsewdrag");
  if (!plot) return null;
  const box = plot.getBoundingClientRect();
  const right = (event.clientX - box.left) / box.width;
  const up = 1 - (event.clientY - box.top) / box.height;
  if (right < 0 || right > 1 || up < 0 || up > 1) return null;
  const [x, y] = [container.layout.xaxis.range, container.layout.yaxis.range];
  return [x[0] + right * (x[1] - x[0]), y[0] + up * (y[1] - y[0])];
}

// `choose` receives a chosen point. `controls` returns the values of the controls, which may be
// ahead of the answers.
export function listen(choose, controls, limits) {
  const container = byId("plot-diagram");
  let isDragging = false;
  const moveTo = (alpha, other) => {
    const within = (number, [low, high]) => Math.min(Math.max(number, low), high);
    choose({ alpha: within(alpha, limits("alpha")).toFixed(2), [axis.name]: String(Number(within(other, limits(axis.name)).toFixed(3))) });
  };
  const follow = (event) => {
    const target = position(container, event);
    if (target) moveTo(...target);
    return Boolean(target);
  };
  container.addEventListener("pointerdown", (event) => { isDragging = follow(event); }, true);
  window.addEventListener("pointermove", (event) => { if (isDragging) follow(event); });
  for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, () => { isDragging = false; });
  const keys = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  container.addEventListener("keydown", (event) => {
    const step = keys[event.key];
    if (!step || !current || !axis) return;
    event.preventDefault();
    const [low, high] = limits(axis.name);
    const now = controls();
    moveTo(Number(now.alpha) + 0.02 * step[0], Number(now[axis.name]) + 0.01 * (high - low) * step[1]);
  });
}

table("diagram", () => {
  const rows = [["alpha", axis ? axis.name : "parameter", "loss_difference", "semantic_kind", "positional_kind", "trusted"]];
  if (value) value.vertical.forEach((vertical, i) => value.alpha.forEach((alpha, j) => {
    rows.push([alpha, vertical, value.loss_difference[i][j], value.kind.semantic[i][j], value.kind.positional[i][j], value.trusted[i][j]]);
  }));
  return rows;
});
