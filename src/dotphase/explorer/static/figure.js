// Figures in the colors of the page, and the menu of every view: link, code, downloads.

/* global Plotly */
import { get } from "./api.js";
import { byId, element } from "./dom.js";

let colors = {};
const figures = new Map(); // id of a view -> function that builds its data and layout
const drawnText = new Map(); // id of a view -> its drawn data as text
const tables = new Map(); // id of a view -> function that returns its rows
let context = { link: () => location.href, query: () => ({}) };

export function configure(themes, functions) {
  colors = themes;
  context = functions;
}

export const dark = () => document.documentElement.dataset.theme === "dark";
export const themeColor = (name) => (dark() ? colors.dark : colors.light)[name];
export const ink = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const axis = () => ({
  gridcolor: ink("grid"), linecolor: ink("line"), zerolinecolor: ink("line"), automargin: true,
  title: { standoff: 6 },
});

// Draw a view. `build` returns {data, layout}; it runs again when the theme or the width changes.
export function draw(view, build) {
  figures.set(view, build);
  const container = byId(`plot-${view}`);
  if (!container.clientWidth) return; // On a closed tab; `redraw` draws it when the tab opens.
  const { data, layout } = build(container.clientWidth);
  const full = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: ink("ink"), size: 12, family: "system-ui, 'DejaVu Sans', sans-serif" },
    margin: { l: 54, r: 12, t: 12, b: 44 }, dragmode: false, hovermode: "closest",
    legend: { orientation: "h", y: -0.2, x: 0, font: { size: 12 } }, uirevision: view,
    width: container.clientWidth, height: 370,
    ...layout,
  };
  container.style.height = `${full.height}px`;
  for (const name of Object.keys(full)) {
    if (/^[xy]axis\d*$/.test(name)) {
      const title = { ...axis().title, ...full[name].title };
      full[name] = { ...axis(), fixedrange: true, ...full[name], title };
    }
  }
  if (isDrawn(view, { data, full }, container)) return;
  Plotly.react(container, data, full, { displayModeBar: false, responsive: true });
}

// True if a view shows this content already: most answers of a job change little.
function isDrawn(view, content, container) {
  const text = JSON.stringify(content);
  if (container.data && drawnText.get(view) === text) return true;
  drawnText.set(view, text);
  return false;
}

// Replace only the shapes of a figure, which is fast enough for animations.
export function drawShapes(view, shapes) {
  const container = byId(`plot-${view}`);
  if (container.clientWidth && container.data && !isDrawn(view, { shapes }, container)) Plotly.relayout(container, { shapes });
}

// Mix two colors, #rrggbb.
export function mixColors(first, second, share) {
  const parts = (text) => [1, 3, 5].map((start) => parseInt(text.slice(start, start + 2), 16));
  const [a, b] = [parts(first), parts(second)];
  return `#${a.map((value, i) => Math.round(value + share * (b[i] - value)).toString(16).padStart(2, "0")).join("")}`;
}

// Attention is colored by its difference from uniform attention: green above, purple below.
const LESS = "#9a4fb0", MORE = "#2f8f57";
const FULL = 0.15; // difference with the full color

export function differenceScale(largest) {
  return { zmin: -largest, zmax: largest, colorscale: [[0, LESS], [0.5, ink("middle")], [1, MORE]] };
}

export function differenceColor(difference) {
  const share = Math.min(Math.abs(difference) / FULL, 1);
  return mixColors(ink("middle"), difference > 0 ? MORE : LESS, share);
}

// Move the last traces of a figure. Returns false if the figure is not drawn yet.
export function moveTraces(view, traces) {
  const container = byId(`plot-${view}`);
  if (!container.clientWidth || !container.data) return false;
  if (isDrawn(view, traces.map(({ x, y }) => [x, y]), container)) return true;
  const numbers = traces.map((_, index) => container.data.length - traces.length + index);
  Plotly.restyle(container, { x: traces.map((trace) => trace.x), y: traces.map((trace) => trace.y) }, numbers);
  return true;
}

export function redraw() {
  for (const [view, build] of figures) draw(view, build);
}

export function table(view, rows) {
  tables.set(view, rows);
}

const button = (label, name, action) => {
  const node = element("button", { type: "button", onclick: action }, label);
  node.dataset.action = name;
  return node;
};

// Add the menu of a view: link, Python, command and downloads.
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
    const snippets = await get("snippets", context.query());
    if (!snippets[view]) throw Object.assign(new Error("This view has no code for this model."), { field: "view" });
    await copy(snippets[view][kind], kind === "python" ? "Python" : "Command", show);
  });
  tools.append(
    button("Link", "link", guard(() => copy(context.link(section.id), "Link", show))),
    button("Copy as Python", "python", code("python")),
    button("Copy as command", "command", code("command")),
    button("PNG", "png", guard(() => image(view, "png"))),
    button("SVG", "svg", guard(() => image(view, "svg"))),
    button("CSV", "csv", guard(() => download(new Blob([csv(view)], { type: "text/csv" }), `${view}.csv`))),
  );
  for (const tool of tools.children) {
    const label = tool.textContent;
    tool.ariaLabel = /^(PNG|SVG|CSV)$/.test(label) ? `Download ${view} as ${label}` : `${label} (${view})`;
  }
  document.addEventListener("pointerdown", (event) => { if (!menu.contains(event.target)) menu.open = false; });
  menu.addEventListener("keydown", (event) => { if (event.key === "Escape") menu.open = false; });
  section.querySelector("h2").after(menu);
}

async function copy(text, kind, show) {
  let copied = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copied = false; // The browser forbids it: the user copies the text by hand.
  }
  show(copied ? `${kind} copied` : `${kind}: copy it from here`, text);
}

function csv(view) {
  const quote = (cell) => {
    const text = cell === null || cell === undefined ? "" : String(cell);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return tables.get(view)().map((row) => row.map(quote).join(",")).join("\r\n") + "\r\n";
}

async function image(view, format) {
  const container = byId(`plot-${view}`);
  const size = container && container.clientWidth ? { width: container.clientWidth, height: container.clientHeight } : { width: 760, height: 420 };
  const figure = figures.has(view) ? { data: container.data, layout: { ...container.layout, paper_bgcolor: ink("card") } } : asTable(tables.get(view)());
  const address = await Plotly.toImage(figure, { format, ...size, scale: format === "png" ? 2 : 1 });
  download(asBlob(address), `${view}.${format}`);
}

// Does not use fetch, which the policy of the page forbids for data addresses.
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
