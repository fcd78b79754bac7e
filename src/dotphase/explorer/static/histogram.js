// The histogram tab: attention and counts of two transformers for a typed sequence.

import { get } from "./api.js";
import { addRow, byId } from "./dom.js";
import { draw, ink, table } from "./figure.js";

const NETWORKS = ["semantic", "positional"];
let answer = null;
let requests = 0; // number of requests: only the answer to the last one is shown
let refuse = () => {};
let accept = () => {};
let remember = () => {};

const field = () => byId("sequence");

export const query = () => ({ sequence: field() ? field().value.trim() : "" });

export function write({ sequence }) {
  if (sequence) field().value = sequence;
}

export function build(whenChanged) {
  remember = whenChanged;
  field().addEventListener("input", () => update().then(remember));
  byId("sequence-form").addEventListener("submit", (event) => {
    event.preventDefault();
    update().then(remember);
  });
}

export function open(onRefuse, onAccept) {
  refuse = onRefuse;
  accept = onAccept;
  return update();
}

async function update() {
  const mine = (requests += 1);
  try {
    const newAnswer = await get("histogram", query());
    if (mine !== requests) return;
    accept();
    answer = newAnswer;
    show();
  } catch (error) {
    if (mine === requests) refuse(error);
  }
}

function show() {
  const body = document.querySelector("#counts tbody");
  body.replaceChildren();
  const rows = [["token", [...answer.sequence]], ["true count", answer.counts], ...NETWORKS.map((network) => [network, answer.networks[network].counts])];
  for (const [title, cells] of rows) {
    const row = addRow(body, title);
    cells.forEach((text, index) => {
      const cell = row.insertCell();
      cell.textContent = text;
      const isWrong = NETWORKS.includes(title) && text !== answer.counts[index];
      cell.className = isWrong ? "off" : "";
      if (isWrong) cell.title = `the true count is ${answer.counts[index]}`;
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
  const top = Math.max(...NETWORKS.flatMap((network) => answer.networks[network].attention.flat()));
  const data = NETWORKS.map((network, index) => {
    const end = index ? "2" : "";
    const axis = { tickvals: ticks, ticktext: letters, showgrid: false, zeroline: false };
    layout[`xaxis${end}`] = { ...axis, title: { text: "token attended to" } };
    layout[`yaxis${end}`] = { ...axis, autorange: "reversed", title: { text: index && !narrow ? "" : "token that attends" } };
    layout.annotations.push({ text: network, showarrow: false, xref: `x${end} domain`, yref: `y${end} domain`, x: 0.5, y: 1, yanchor: "bottom",
      font: { size: 13, color: ink("ink") } });
    return { type: "heatmap", z: answer.networks[network].attention, zmin: 0, zmax: top, xaxis: `x${end}`, yaxis: `y${end}`, colorscale: "Cividis",
      showscale: index === 1 && !narrow, colorbar: { thickness: 10, outlinewidth: 0 },
      hovertemplate: `${network}: position %{y} on %{x}, %{z:.3f}<extra></extra>` };
  });
  return { data, layout };
}

table("histogram", () => {
  const rows = [["network", "position", "token", "true_count", "count", ...Array.from({ length: 10 }, (_, j) => `attention_${j + 1}`)]];
  if (answer) for (const network of NETWORKS) answer.networks[network].counts.forEach((count, i) => {
    rows.push([network, i + 1, answer.sequence[i], answer.counts[i], count, ...answer.networks[network].attention[i]]);
  });
  return rows;
});
