// The branches as a table, with errors, the winner, what was pinned, and whether to trust it.

import { BESIDE, poll } from "./api.js";
import { letter } from "./controls.js";
import { byId, element, line } from "./dom.js";
import { table } from "./figure.js";
import { term } from "./terms.js";

const QUANTITIES = [
  ["train_loss", "training loss ε_t ·10³", 1e3], ["test_error", "test error ε_g ·10³", 1e3], ["theta", "θ"], ["m", "|m|"],
  ["q", "q"], ["V", "V"],
];
const MEANS = { semantic: "semantic: attention by what tokens mean", positional: "positional: attention by where tokens are", mixed: "mixed: attention by both" };
let last = null;
let kept = null; // the pinned answer
let pins = 0; // counts pins: an answer to an older one is thrown away

export const valueOf = (branch, name) => (name in branch.norms ? branch.norms[name] : branch[name]);

// A number and its error with matching digits.
export function withError(value, error) {
  if (Math.abs(value) < 1e-9 && !(error > 1e-9)) return "0";
  if (!(error > 0)) return String(Number(value.toPrecision(5)));
  const digits = Math.min(Math.max(1 - Math.floor(Math.log10(error)), 0), 12);
  return `${value.toFixed(digits)} ± ${error.toFixed(digits)}`;
}

function cell(row, id, text, value) {
  const made = row.insertCell();
  made.id = id;
  made.textContent = text;
  if (value !== undefined) made.dataset.value = String(value);
  return made;
}

// "saddle (towards semantic)", as stability.described of the library says it.
function kindOf(verdict) {
  const where = verdict.towards.length ? ` (towards ${verdict.towards.join(", ")})` : "";
  return verdict.kind === "marginal" ? "minimum or saddle: cannot be told" : verdict.kind + where;
}

function trustOf(found) {
  if (!found) return "…";
  if (!found.on_branch && found.stage === "first look") return "no such fixed point at first look: searching further";
  if (!found.on_branch) return found.converged ? `no such fixed point was found: leads to the ${found.found} one` : found.message;
  return `${found.stability.trusted ? "trusted" : "not trusted"}: ${found.stability.reason}`;
}

// What is lowest, in words that say no more than is known.
function judged(answer) {
  const winner = answer.winner && answer.value[answer.winner];
  if (!winner) return "Looking for the minima…";
  const all = Object.values(answer.value);
  const open = all.some((found) => !found || (!found.on_branch && found.stage === "first look"));
  if (!winner.stability.trusted) return `By this theory, which is not trusted here, the lowest minimum would be ${MEANS[answer.winner]}.`;
  return `The lowest minimum${open ? " found so far" : ""} is ${MEANS[answer.winner]}.`;
}

export function show(answer) {
  last = answer;
  const branches = Object.keys(answer.value);
  const pinned = kept ? Object.keys(kept.value) : [];
  heads(answer, branches, pinned);
  const body = byId("numbers").tBodies[0];
  body.replaceChildren();
  byId("numbers").dataset.point = JSON.stringify(answer.point);
  for (const [name, title, unit = 1] of QUANTITIES) {
    const row = line(body, term(name, title));
    for (const branch of branches) {
      const found = answer.value[branch];
      const there = found && found.on_branch;
      const value = there ? valueOf(found, name) : null;
      const made = cell(row, `${branch}-${name}`, value !== null ? withError(unit * value, unit * found.stderr[name]) : "—", value ?? undefined);
      if (there && found.stage === "first look") made.className = "first-look";
    }
    for (const branch of pinned) {
      const found = kept.value[branch];
      const value = found && found.on_branch ? unit * valueOf(found, name) : null;
      const made = cell(row, `pinned-${branch}-${name}`, value === null ? "—" : String(Number(value.toPrecision(4))), value ?? undefined);
      made.className = "kept";
    }
  }
  const rows = [line(body, term("kind", "kind")), line(body, term("trusted", "trust")), line(body, term("precision", "precision"))];
  for (const branch of branches) {
    const found = answer.value[branch];
    cell(rows[0], `${branch}-kind`, found && found.on_branch ? kindOf(found.stability) : "—");
    cell(rows[1], `${branch}-trust`, trustOf(found)).className = "why";
    const how = found ? (found.stage === "final" ? `final, 2^${found.log2_points} points` : `${found.stage}, refining`) : "searching";
    cell(rows[2], `${branch}-stage`, how).dataset.stage = found ? found.stage : "";
  }
  for (const branch of pinned) {
    const found = kept.value[branch];
    rows[0].insertCell().textContent = found && found.on_branch ? found.stability.kind : "—";
    rows[1].insertCell().textContent = found && found.on_branch ? (found.stability.trusted ? "trusted" : "not trusted") : "—";
    rows[2].insertCell().textContent = found ? found.stage : "";
    for (const row of rows) row.lastElementChild.className = "kept why";
  }
  const verdict = byId("verdict");
  verdict.dataset.winner = answer.winner ?? "";
  const words = judged(answer);
  // Said once for a screen reader, not with every refinement.
  if (verdict.textContent !== words) verdict.textContent = words;
  const linear = Object.values(answer.value).find((found) => found);
  byId("note-numbers").replaceChildren(...(linear ? [term("linear", "Linear positional layer"),
    `: test error ${linear.linear_test_error === null ? "unknown" : (1e3 * linear.linear_test_error).toPrecision(4) + "·10⁻³"}. ± is one standard error of the quadrature. Which minimum training finds from its start is another question: train it and see.`] : []));
}

function heads(answer, branches, pinned) {
  const row = byId("numbers").tHead.rows[0];
  row.replaceChildren(element("th", { scope: "col" }, "Quantity"));
  for (const branch of branches) {
    const wins = answer.winner === branch;
    row.append(element("th", { scope: "col", id: `head-${branch}`, className: wins ? "winner" : "" }, wins ? `${branch} ✓ lowest loss` : branch));
  }
  for (const branch of pinned) row.append(element("th", { scope: "col", className: "kept" }, `pinned ${branch}`));
}

// alpha_c and alpha_l of the model that the point belongs to, from its curve.
export function critical(curve, across) {
  const place = byId("critical");
  place.dataset.value = curve?.alpha_c ?? "";
  if (!curve || curve.alpha_c === undefined) {
    place.textContent = curve ? "Looking for where the losses cross…" : "";
    return;
  }
  const doubt = curve.alpha_c_trusted ? "" : " (theory not trusted there)";
  const crossing = curve.alpha_c === null ? ["No crossing of the losses between α = 0.1 and 2.5"]
    : [across, "losses cross at ", term("alpha_c", "α_c"), ` = ${withError(curve.alpha_c, curve.alpha_c_stderr)}${doubt}`];
  const better = curve.alpha_l === null ? [] : ["; better than a linear layer from ", term("alpha_l", "α_l"), ` = ${curve.alpha_l.toFixed(2)} on`];
  place.replaceChildren(...crossing, ...better, ".");
}

// Keep a point to compare others with; without one, let it go.
export function pin(point, whenKnown, refuse) {
  const mine = (pins += 1);
  kept = null;
  byId("pin").textContent = point ? "Unpin" : "Pin";
  byId("pin").setAttribute("aria-pressed", String(Boolean(point)));
  const said = point && Object.entries(point).filter(([name]) => name !== "reference").map(([name, value]) => `${letter(name)} = ${value}`).join(", ");
  byId("note-pin").textContent = point ? `Pinned: ${said}.` : "";
  const know = (answer) => {
    kept = answer;
    if (last) show(last);
    whenKnown(answer);
  };
  if (!point) know(null);
  else poll("point", { ...point, ...BESIDE }, () => mine !== pins, know).catch(refuse);
}

export const pinned = () => kept;

table("numbers", () => {
  const rows = [["branch", "quantity", "value", "stderr", "stage", "trusted", "winner", "pinned"]];
  for (const answer of [last, kept]) {
    if (!answer) continue;
    for (const [branch, found] of Object.entries(answer.value)) {
      if (!found || !found.on_branch) continue;
      for (const [name] of QUANTITIES) {
        rows.push([branch, name, valueOf(found, name), found.stderr[name], found.stage, found.stability.trusted, answer.winner === branch, answer === kept]);
      }
    }
  }
  return rows;
});
