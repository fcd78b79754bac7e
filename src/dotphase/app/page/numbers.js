// Both branches as a table, with errors, the winner, and whether the theory is to be trusted.

import { byId, line } from "./dom.js";
import { table } from "./figure.js";

const BRANCHES = ["semantic", "positional"];
const QUANTITIES = [
  ["train_loss", "training loss ε_t ·10³", 1e3], ["test_error", "test error ε_g ·10³", 1e3], ["theta", "θ"], ["m", "|m|"],
  ["q", "q"], ["V", "V"],
];
let last = null;

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

export function show(answer) {
  last = answer;
  const body = document.querySelector("#numbers tbody");
  body.replaceChildren();
  byId("numbers").dataset.point = JSON.stringify(answer.point);
  for (const [name, title, unit = 1] of QUANTITIES) {
    const row = line(body, title);
    for (const branch of BRANCHES) {
      const found = answer.value[branch];
      const there = found && found.there;
      const value = there ? valueOf(found, name) : null;
      const made = cell(row, `${branch}-${name}`, value !== null ? withError(unit * value, unit * found.stderr[name]) : "—", value ?? undefined);
      if (there && found.stage === "first look") made.className = "first-look";
    }
  }
  const kinds = line(body, "kind");
  const trust = line(body, "lowest of its kind? (theory)");
  const stage = line(body, "precision");
  for (const branch of BRANCHES) {
    const found = answer.value[branch];
    const verdict = found && found.stability;
    let text = "…";
    if (found && !found.there && found.stage === "first look") text = "no such fixed point at first look: searching further";
    else if (found && !found.there) text = found.converged ? `no such fixed point was found: leads to the ${found.found} one` : found.message;
    else if (found) text = `${verdict.trusted ? "trusted" : "not trusted"}: ${verdict.reason}`;
    cell(kinds, `${branch}-kind`, found && found.there ? kindOf(verdict) : "—");
    cell(trust, `${branch}-trust`, text);
    const how = found ? (found.stage === "final" ? `final, 2^${found.log2_points} points` : `${found.stage}, refining`) : "searching";
    cell(stage, `${branch}-stage`, how).dataset.stage = found ? found.stage : "";
    const head = byId(`head-${branch}`);
    const wins = answer.winner === branch;
    head.className = wins ? "winner" : "";
    head.textContent = wins ? `${branch} ✓ lowest loss` : branch;
  }
  const linear = BRANCHES.map((branch) => answer.value[branch]).find((found) => found);
  const winner = answer.winner && answer.value[answer.winner];
  const verdict = byId("verdict");
  verdict.dataset.winner = answer.winner ?? "";
  const words = !winner ? "Looking for the minima…"
    : `The lowest minimum is ${answer.winner === "semantic" ? "semantic: attention by what tokens mean" : "positional: attention by where tokens are"}.`;
  // Said once for a screen reader, not with every refinement.
  if (verdict.textContent !== words) verdict.textContent = words;
  const note = byId("note-numbers");
  note.textContent = linear
    ? `Linear positional layer: test error ${linear.linear_test_error.toPrecision(4)}. ± is one standard error of the quadrature. Whether training finds a minimum from its start is another question: train it and see. A saddle is left by training. First looks use 2^12 points; final numbers are those of dotphase solve.`
    : "";
}

table("numbers", () => {
  const rows = [["branch", "quantity", "value", "stderr", "stage", "trusted", "winner"]];
  if (!last) return rows;
  for (const branch of BRANCHES) {
    const found = last.value[branch];
    if (!found || !found.there) continue;
    for (const [name] of QUANTITIES) {
      rows.push([branch, name, valueOf(found, name), found.stderr[name], found.stage, found.stability.trusted, last.winner === branch]);
    }
  }
  return rows;
});
