// The histogram tab: a typed sequence, the attention of both transformers, and their counts.

import { get } from "./api.js";
import { byId, line } from "./dom.js";
import { draw, ink, table } from "./figure.js";

const WHO = ["semantic", "positional"];
let answer = null;
let asked = 0;
let wrong = () => {};
let right = () => {};
let remember = () => {};

const field = () => byId("sequence");

export const query = () => ({ sequence: field() ? field().value.trim() : "" });

export function write(given) {
  if (given.sequence) field().value = given.sequence;
}

export function build(whenChanged) {
  remember = whenChanged;
  field().addEventListener("input", () => look().then(remember));
  byId("sequence-form").addEventListener("submit", (event) => {
    event.preventDefault();
    look().then(remember);
  });
}

export function open(refuse, accept) {
  wrong = refuse;
  right = accept;
  return look();
}

async function look() {
  const mine = (asked += 1);
  try {
    const got = await get("histogram", query());
    if (mine !== asked) return;
    right();
    answer = got;
    show();
  } catch (error) {
    if (mine === asked) wrong(error);
  }
}

function show() {
  const body = document.querySelector("#counts tbody");
  body.replaceChildren();
  const rows = [["token", [...answer.sequence]], ["true count", answer.counts], ...WHO.map((who) => [who, answer.networks[who].counts])];
  for (const [title, cells] of rows) {
    const row = line(body, title);
    cells.forEach((text, index) => {
      const made = row.insertCell();
      made.textContent = text;
      const off = WHO.includes(title) && text !== answer.counts[index];
      made.className = off ? "off" : "";
      if (off) made.title = `the true count is ${answer.counts[index]}`;
    });
    row.dataset.row = title;
  }
  draw("histogram", figure);
}

function figure(width) {
  const narrow = width < 640;
  const letters = [...answer.sequence];
  const ticks = letters.map((_, index) => index);
  const layout = { grid: narrow ? { rows: 2, columns: 1, pattern: "independent", ygap: 0.2 } : { rows: 1, columns: 2, pattern: "independent", xgap: 0.12 },
    height: narrow ? 760 : 430, annotations: [], margin: { l: 40, r: 8, t: 30, b: 40 }, showlegend: false };
  const top = Math.max(...WHO.flatMap((who) => answer.networks[who].attention.flat()));
  const data = WHO.map((who, index) => {
    const end = index ? "2" : "";
    const axis = { tickvals: ticks, ticktext: letters, showgrid: false, zeroline: false };
    layout[`xaxis${end}`] = { ...axis, title: { text: "token attended to" } };
    layout[`yaxis${end}`] = { ...axis, autorange: "reversed", title: { text: index && !narrow ? "" : "token that attends" } };
    layout.annotations.push({ text: who, showarrow: false, xref: `x${end} domain`, yref: `y${end} domain`, x: 0.5, y: 1, yanchor: "bottom",
      font: { size: 13, color: ink("ink") } });
    return { type: "heatmap", z: answer.networks[who].attention, zmin: 0, zmax: top, xaxis: `x${end}`, yaxis: `y${end}`, colorscale: "Cividis",
      showscale: index === 1 && !narrow, colorbar: { thickness: 10, outlinewidth: 0 },
      hovertemplate: `${who}: position %{y} on %{x}, %{z:.3f}<extra></extra>` };
  });
  return { data, layout };
}

table("histogram", () => {
  const rows = [["network", "position", "token", "true_count", "count", ...Array.from({ length: 10 }, (_, j) => `attention_${j + 1}`)]];
  if (answer) for (const who of WHO) answer.networks[who].counts.forEach((count, i) => {
    rows.push([who, i + 1, answer.sequence[i], answer.counts[i], count, ...answer.networks[who].attention[i]]);
  });
  return rows;
});
