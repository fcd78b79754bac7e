// Drawing with plotly in the colours of the page, and what every view has: link, code, downloads.

/* global Plotly */
import { get } from "./api.js";
import { byId, element } from "./dom.js";

let colours = {};
const figures = new Map(); // id of a view -> its last data and layout
const shown = new Map(); // id of a view -> what is in its picture, as text
const tables = new Map(); // id of a view -> function that gives its rows
let context = { link: () => location.href, query: () => ({}) };

export function configure(given, functions) {
  colours = given;
  context = functions;
}

export const dark = () => document.documentElement.dataset.theme === "dark";
export const colour = (name) => (dark() ? colours.dark : colours.light)[name];
export const ink = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const axis = () => ({
  gridcolor: ink("grid"), linecolor: ink("line"), zerolinecolor: ink("line"), automargin: true,
  title: { standoff: 6 },
});

// `build` gives {data, layout}; it is called again when the theme or the width changes.
export function draw(view, build) {
  figures.set(view, build);
  const place = byId(`plot-${view}`);
  if (!place.clientWidth) return; // on the tab that is not open: drawn when it is
  const { data, layout } = build(place.clientWidth);
  const full = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: ink("ink"), size: 12, family: "system-ui, 'DejaVu Sans', sans-serif" },
    margin: { l: 54, r: 12, t: 12, b: 44 }, dragmode: false, hovermode: "closest",
    legend: { orientation: "h", y: -0.2, x: 0, font: { size: 12 } }, uirevision: view,
    width: place.clientWidth, height: 370,
    ...layout,
  };
  place.style.height = `${full.height}px`;
  for (const name of Object.keys(full)) {
    if (/^[xy]axis\d*$/.test(name)) {
      const title = { ...axis().title, ...full[name].title };
      full[name] = { ...axis(), fixedrange: true, ...full[name], title };
    }
  }
  if (same(view, { data, full }, place)) return;
  Plotly.react(place, data, full, { displayModeBar: false, responsive: true });
}

// Whether a picture is what it would be drawn as: answers come in steps, and change little each.
function same(view, content, place) {
  const text = JSON.stringify(content);
  if (place.data && shown.get(view) === text) return true;
  shown.set(view, text);
  return false;
}

// New marks on a figure that is otherwise the same: quick enough to be played.
export function mark(view, shapes) {
  const place = byId(`plot-${view}`);
  if (place.clientWidth && place.data && !same(view, { shapes }, place)) Plotly.relayout(place, { shapes });
}

// A colour of the page towards another, as what is between them.
export function between(one, other, share) {
  const parts = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  const [a, b] = [parts(one), parts(other)];
  return `#${a.map((value, i) => Math.round(value + share * (b[i] - value)).toString(16).padStart(2, "0")).join("")}`;
}

// Some traces of a figure moved, all else as it is: whether there was such a figure.
export function shift(view, traces) {
  const place = byId(`plot-${view}`);
  if (!place.clientWidth || !place.data) return false;
  if (same(view, traces.map(({ x, y }) => [x, y]), place)) return true;
  const numbers = traces.map((_, index) => place.data.length - traces.length + index);
  Plotly.restyle(place, { x: traces.map((one) => one.x), y: traces.map((one) => one.y) }, numbers);
  return true;
}

export function redraw() {
  for (const [view, build] of figures) draw(view, build);
}

export function table(view, rows) {
  tables.set(view, rows);
}

const button = (label, name, action) => {
  const made = element("button", { type: "button", onclick: action }, label);
  made.dataset.action = name;
  return made;
};

// Link, Python, command and downloads of a view, in a menu at its corner.
export function addTools(section, show, refuse) {
  const view = section.dataset.view;
  const tools = element("div");
  const menu = element("details", { className: "tools" }, element("summary", { ariaLabel: `Save or copy ${view}` }, "Save ▾"), tools);
  const guard = (action) => async () => {
    menu.open = false;
    try {
      await action();
    } catch (error) {
      refuse(error);
    }
  };
  const code = (kind) => guard(async () => {
    const all = await get("snippets", context.query());
    if (!all[view]) throw Object.assign(new Error("There is no code for this view of this model."), { field: "view" });
    await copy(all[view][kind], kind === "python" ? "Python" : "Command", show);
  });
  tools.append(
    button("Link", "link", guard(() => copy(context.link(section.id), "Link", show))),
    button("Copy as Python", "python", code("python")),
    button("Copy as command", "command", code("command")),
    button("PNG", "png", guard(() => image(view, "png"))),
    button("SVG", "svg", guard(() => image(view, "svg"))),
    button("CSV", "csv", guard(() => download(new Blob([csv(view)], { type: "text/csv" }), `${view}.csv`))),
  );
  for (const one of tools.children) {
    const label = one.textContent;
    one.ariaLabel = /^(PNG|SVG|CSV)$/.test(label) ? `Download ${view} as ${label}` : `${label} (${view})`;
  }
  document.addEventListener("pointerdown", (event) => { if (!menu.contains(event.target)) menu.open = false; });
  menu.addEventListener("keydown", (event) => { if (event.key === "Escape") menu.open = false; });
  section.querySelector("h2").after(menu);
}

async function copy(text, what, show) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    done = false; // not allowed by this browser: the text is shown to be copied by hand
  }
  show(done ? `${what} copied` : `${what}, to copy`, text);
}

function csv(view) {
  const quote = (cell) => {
    const text = cell === null || cell === undefined ? "" : String(cell);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return tables.get(view)().map((row) => row.map(quote).join(",")).join("\r\n") + "\r\n";
}

async function image(view, format) {
  const place = byId(`plot-${view}`);
  const size = place && place.clientWidth ? { width: place.clientWidth, height: place.clientHeight } : { width: 760, height: 420 };
  const figure = figures.has(view) ? { data: place.data, layout: { ...place.layout, paper_bgcolor: ink("card") } } : asTable(tables.get(view)());
  const address = await Plotly.toImage(figure, { format, ...size, scale: format === "png" ? 2 : 1 });
  download(asBlob(address), `${view}.${format}`);
}

// Without fetch: the policy of the page lets data addresses be images only.
function asBlob(address) {
  const [head, body] = [address.slice(0, address.indexOf(",")), address.slice(address.indexOf(",") + 1)];
  const type = head.slice(5).split(";")[0];
  if (!head.includes("base64")) return new Blob([decodeURIComponent(body)], { type });
  const bytes = Uint8Array.from(atob(body), (letter) => letter.charCodeAt(0));
  return new Blob([bytes], { type });
}

function asTable(rows) {
  const [head, ...body] = rows;
  const columns = head.map((_, index) => body.map((row) => row[index] ?? ""));
  const cells = { fill: { color: ink("card") }, font: { color: ink("ink") }, line: { color: ink("line") }, align: "left" };
  return {
    data: [{ type: "table", header: { ...cells, values: head }, cells: { ...cells, values: columns } }],
    layout: { margin: { l: 8, r: 8, t: 8, b: 8 }, paper_bgcolor: ink("card") },
  };
}

function download(blob, name) {
  const link = element("a", { href: URL.createObjectURL(blob), download: `dotphase-${name}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
