// The phase diagram, and choosing a point on it by pointer or arrow keys.

import { byId, element } from "./dom.js";
import { between, colour, draw, ink, shift, table } from "./figure.js";
import { term } from "./terms.js";

const BRANCHES = ["semantic", "positional"];
let value = null;
let here = null; // the point that is shown
let kept = null; // the pinned one
let axis = null; // of the vertical axis: name and letter
let drawn = ""; // as far as the axes of the picture reach

export const setAxis = (given) => { axis = given; };

export function show(answer) {
  value = answer.value;
  byId("note-diagram").textContent = answer.error ? `There is no map: ${answer.error}.`
    : answer.done ? "" : `Computing this map in the background: ${Math.round(100 * answer.progress)}%.`;
  paint();
}

// The map stays as it is while the points on it move, unless one of them leaves it.
export function move(point) {
  here = point;
  if (!axis || sides() !== drawn || !shift("diagram", points())) paint();
}

export function pin(point) {
  kept = point;
  paint();
}

function paint() {
  if (here && axis) draw("diagram", build);
  if (value) key();
}

const isMinimum = (kind) => kind !== "missing" && kind !== "saddle";
// Where one branch alone is a minimum: that one; null where both are, "none" where none is.
function alone(i, j) {
  const there = BRANCHES.filter((branch) => isMinimum(value.kind[branch][i][j]));
  return there.length === 2 ? null : there[0] ?? "none";
}
const winner = (i, j) => alone(i, j) ?? (value.loss_difference[i][j] < 0 ? "semantic" : "positional");
// Weak where the cells around are filled by what gradient descent reaches.
const single = (branch) => between(colour(branch), ink("card"), value.reached ? 0.85 : 0.35);

// Lists of the cells for which something holds.
function cells(holds) {
  const found = { x: [], y: [] };
  value.across.forEach((y, i) => value.alpha.forEach((x, j) => {
    if (holds(i, j)) { found.x.push(x); found.y.push(y); }
  }));
  return found;
}

function build() {
  const data = [];
  const layout = {
    height: 312, xaxis: { title: { text: "α", standoff: 2 } }, yaxis: { title: { text: axis.letter } },
    margin: { l: 46, r: 6, t: 8, b: 34 }, showlegend: false, annotations: [], shapes: [],
  };
  if (value) {
    area(data);
    lines(data);
    layout.annotations = [...phases(), ...labels()];
  }
  data.push(...points());
  frame(layout);
  drawn = sides();
  return { data, layout };
}

// The pinned point and the chosen one, the last traces of the picture.
function points() {
  return [[kept, "diamond-open", "pinned", 14], [here, "circle", "your point", 15]].map(([point, symbol, name, size]) => ({
    x: point ? [Number(point.alpha)] : [], y: point ? [Number(point[axis.name])] : [], mode: "markers", name, cliponaxis: false,
    hovertemplate: `${name}: α %{x:.2f}, ${axis.letter} %{y:.3f}<extra></extra>`,
    marker: { size, symbol, color: symbol === "circle" ? "#F0E442" : ink("ink"), line: { color: symbol === "circle" ? "#000000" : ink("ink"), width: 2 } } }));
}

// What the map covers along an axis, and as far as the picture has to reach to hold the points.
function side(known, name) {
  const step = known.length > 1 ? (known[1] - known[0]) / 2 : 0.05;
  const [low, high] = known.length ? [known[0] - step, known.at(-1) + step] : [0, 1];
  const all = [here, kept].filter(Boolean).map((point) => Number(point[name]));
  const room = 0.06 * (high - low);
  const range = [low, high];
  if (all.some((one) => one < low)) range[0] = Math.min(...all) - room;
  if (all.some((one) => one > high)) range[1] = Math.max(...all) + room;
  return { inside: [low, high], range, beyond: range[0] < low || range[1] > high };
}

const axes = () => [side(value ? value.alpha : [], "alpha"), side(value ? value.across : [], axis.name)];
const sides = () => JSON.stringify(axes().map((one) => one.range));

// The axes; where they reach beyond the map, that nothing was computed there.
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

function area(data) {
  const gaps = value.loss_difference.flat().filter((gap) => gap !== null).map(Math.abs).sort((a, b) => a - b);
  const limit = 1e3 * (gaps[Math.floor(0.95 * (gaps.length - 1))] || 1e-3);
  const states = ["semantic", "positional", "none"];
  const shades = [single("semantic"), single("positional"), ink("missing")];
  data.push({ type: "heatmap", x: value.alpha, y: value.across, showscale: false, hoverinfo: "skip", zmin: 0, zmax: 3,
    z: value.across.map((_, i) => value.alpha.map((__, j) => { const one = alone(i, j); return one === null ? null : states.indexOf(one) + 0.5; })),
    colorscale: shades.flatMap((shade, index) => [[index / 3, shade], [(index + 1) / 3, shade]]) });
  data.push({
    type: "heatmap", x: value.alpha, y: value.across,
    z: value.loss_difference.map((row) => row.map((gap) => (gap === null ? null : 1e3 * gap))),
    zmin: -limit, zmax: limit, name: "", hovertemplate: `α %{x:.2f}, ${axis.letter} %{y:.3f}<br>semantic − positional loss %{z:.3f}·10⁻³<extra></extra>`,
    colorscale: [[0, colour("semantic")], [0.5, ink("middle")], [1, colour("positional")]],
    colorbar: { title: { text: "10⁻³", side: "top", font: { size: 11 } }, thickness: 8, outlinewidth: 0, len: 0.9, tickfont: { size: 10.5 }, nticks: 5, xpad: 4 },
  });
  data.push({ ...cells((i, j) => !value.trusted[i][j]), mode: "markers", name: "not trusted", hoverinfo: "skip",
    marker: { symbol: "x-thin", size: 5, opacity: 0.5, line: { width: 1, color: ink("ink") } } });
  for (const [branch, symbol] of [["semantic", "triangle-down"], ["positional", "triangle-up"]]) {
    for (const [kind, shape] of [["saddle", symbol], ["missing", "circle-open"]]) {
      data.push({ ...cells((i, j) => value.kind[branch][i][j] === kind), mode: "markers", name: `${branch} branch: ${kind}`,
        hovertemplate: `α %{x:.2f}, ${axis.letter} %{y:.3f}<br>${branch} branch: ${kind}<extra></extra>`,
        marker: { symbol: shape, size: 3.5, opacity: 0.55, color: ink("ink"), line: { width: 0.8, color: ink("ink") } } });
    }
  }
}

function lines(data) {
  for (const [name, label, dash] of [["alpha_c", "α_c: losses cross", "solid"], ["alpha_l", "α_l: beats the linear layer", "dash"]]) {
    data.push({ x: value[name], y: value.across, mode: "lines", name: label, connectgaps: false, hovertemplate: `${label}: α %{x:.3f}<extra></extra>`,
      line: { color: ink("ink"), width: 2, dash } });
  }
}

// The two phases by name, each in the middle of its cells.
function phases() {
  return BRANCHES.flatMap((branch) => {
    const own = cells((i, j) => winner(i, j) === branch);
    if (own.x.length < 12) return [];
    const middle = (list) => list.reduce((sum, one) => sum + one, 0) / list.length;
    return [{ x: middle(own.x), y: middle(own.y), text: `<b>${branch}</b>`, showarrow: false, font: { size: 14, color: ink("ink") },
      bgcolor: ink("card"), opacity: 0.82, borderpad: 3 }];
  });
}

// The names of the two lines, where they end.
function labels() {
  return [["alpha_c", "α_c", "bottom"], ["alpha_l", "α_l", "top"]].flatMap(([name, text, side]) => {
    const known = value[name].map((alpha, i) => [alpha, value.across[i]]).filter(([alpha]) => alpha !== null);
    if (known.length < 3) return [];
    const [x, y] = known[Math.floor(0.85 * known.length)];
    return [{ x, y, text, showarrow: false, xanchor: side === "bottom" ? "right" : "left", yanchor: side, xshift: side === "bottom" ? -3 : 3,
      font: { size: 14, color: ink("ink") } }];
  });
}

// What the colours and marks mean; those that are not on this map are left out.
function key() {
  const swatch = (shade, words) => element("span", {}, element("i", { style: `background:${shade}` }), words);
  const sign = (mark, ...words) => element("span", {}, element("b", {}, mark), ...words);
  const any = (holds) => cells(holds).x.length > 0;
  const kinds = (kind) => any((i, j) => BRANCHES.some((branch) => value.kind[branch][i][j] === kind));
  byId("key-diagram").replaceChildren(
    swatch(colour("positional"), "positional lower"), swatch(colour("semantic"), "semantic lower"),
    ...(!value.reached && any((i, j) => alone(i, j) === "positional") ? [swatch(single("positional"), "only positional a minimum")] : []),
    ...(!value.reached && any((i, j) => alone(i, j) === "semantic") ? [swatch(single("semantic"), "only semantic a minimum")] : []),
    ...(any((i, j) => alone(i, j) === "none") ? [swatch(ink("missing"), "neither")] : []),
    ...(kinds("missing") ? [sign("○", "one is missing")] : []), ...(kinds("saddle") ? [sign("▾▴", "one is a saddle")] : []),
    ...(value.reached ? [element("span", {}, "(there: where gradient descent ends)")] : []),
    sign("×", "not trusted"), sign("—", term("alpha_c", "α_c")), sign("- -", term("alpha_l", "α_l")),
  );
}

// Where a pointer is, in alpha and the other parameter, or null outside the plot.
function position(place, event) {
  const area = place.querySelector(".nsewdrag");
  if (!area) return null;
  const box = area.getBoundingClientRect();
  const across = (event.clientX - box.left) / box.width;
  const up = 1 - (event.clientY - box.top) / box.height;
  if (across < 0 || across > 1 || up < 0 || up > 1) return null;
  const [x, y] = [place.layout.xaxis.range, place.layout.yaxis.range];
  return [x[0] + across * (x[1] - x[0]), y[0] + up * (y[1] - y[0])];
}

// `choose` is given the point; `where` says where the controls are now, which may be ahead of the answers.
export function listen(choose, where, limits) {
  const place = byId("plot-diagram");
  let held = false;
  const go = (alpha, other) => {
    const within = (number, [low, high]) => Math.min(Math.max(number, low), high);
    choose({ alpha: within(alpha, limits("alpha")).toFixed(2), [axis.name]: String(Number(within(other, limits(axis.name)).toFixed(3))) });
  };
  const take = (event) => {
    const found = position(place, event);
    if (found) go(...found);
    return Boolean(found);
  };
  place.addEventListener("pointerdown", (event) => { held = take(event); }, true);
  window.addEventListener("pointermove", (event) => { if (held) take(event); });
  for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, () => { held = false; });
  const keys = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  place.addEventListener("keydown", (event) => {
    const step = keys[event.key];
    if (!step || !here || !axis) return;
    event.preventDefault();
    const [low, high] = limits(axis.name);
    const now = where();
    go(Number(now.alpha) + 0.02 * step[0], Number(now[axis.name]) + 0.01 * (high - low) * step[1]);
  });
}

table("diagram", () => {
  const rows = [["alpha", axis ? axis.name : "parameter", "loss_difference", "semantic_kind", "positional_kind", "trusted"]];
  if (value) value.across.forEach((across, i) => value.alpha.forEach((alpha, j) => {
    rows.push([alpha, across, value.loss_difference[i][j], value.kind.semantic[i][j], value.kind.positional[i][j], value.trusted[i][j]]);
  }));
  return rows;
});
