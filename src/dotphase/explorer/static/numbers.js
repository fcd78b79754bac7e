// Table of the branches: numbers with errors, the global minimum, trust, and a pinned point.

import { SECOND_POINT, poll } from "./api.js";
import { letter } from "./controls.js";
import { addRow, byId, element } from "./dom.js";
import { table } from "./figure.js";
import { term } from "./terms.js";

const QUANTITIES = [
  ["train_loss", "training loss ε_t ·10³", 1e3], ["test_error", "test error ε_g ·10³", 1e3], ["theta", "θ"], ["m", "|m|"],
  ["q", "q"], ["V", "V"],
];
const MEANING = { semantic: "semantic: attention by what tokens mean", positional: "positional: attention by where tokens are", mixed: "mixed: attention by both" };
let latest = null; // the latest answer
let pinnedAnswer = null; // the answer of the pinned point
let pins = 0; // number of pins: only answers of the last one count

export const valueOf = (branch, name) => (name in branch.norms ? branch.norms[name] : branch[name]);

// A number and its error, rounded to the same digits.
export function withError(value, error) {
  if (Math.abs(value) < 1e-9 && !(error > 1e-9)) return "0";
  if (!(error > 0)) return String(Number(value.toPrecision(5)));
  const digits = Math.min(Math.max(1 - Math.floor(Math.log10(error)), 0), 12);
  return `${value.toFixed(digits)} ± ${error.toFixed(digits)}`;
}

function cell(row, id, text, value) {
  const newCell = row.insertCell();
  newCell.id = id;
  newCell.textContent = text;
  if (value !== undefined) newCell.dataset.value = String(value);
  return newCell;
}

// Kind of a fixed point, such as "saddle (towards semantic)".
function kindOf({ kind, towards }) {
  const direction = towards.length ? ` (towards ${towards.join(", ")})` : "";
  return kind === "marginal" ? "undecided: minimum or saddle" : kind + direction;
}

function trustOf(solution) {
  if (!solution) return "…";
  if (!solution.on_branch && solution.stage === "first look") return "no fixed point at first look; searching further";
  if (!solution.on_branch) return solution.converged ? `no fixed point found; the iteration ends on the ${solution.found} branch` : solution.message;
  return `${solution.stability.trusted ? "trusted" : "not trusted"}: ${solution.stability.reason}`;
}

// Sentence on the global minimum, hedged while numbers are missing or not trusted.
function verdictOf(answer) {
  const winner = answer.winner && answer.value[answer.winner];
  if (!winner) return "Searching for the minima…";
  const isOpen = Object.values(answer.value).some((solution) => !solution || (!solution.on_branch && solution.stage === "first look"));
  if (!winner.stability.trusted) return `By this theory, which is not trusted here, the lowest minimum would be ${MEANING[answer.winner]}.`;
  return `The lowest minimum${isOpen ? " found so far" : ""} is ${MEANING[answer.winner]}.`;
}

export function show(answer) {
  latest = answer;
  const branches = Object.keys(answer.value);
  const pinned = pinnedAnswer ? Object.keys(pinnedAnswer.value) : [];
  showHeads(answer, branches, pinned);
  const body = byId("numbers").tBodies[0];
  body.replaceChildren();
  byId("numbers").dataset.point = JSON.stringify(answer.point);
  for (const [name, title, unit = 1] of QUANTITIES) {
    const row = addRow(body, term(name, title));
    for (const branch of branches) {
      const solution = answer.value[branch];
      const exists = Boolean(solution?.on_branch);
      const value = exists ? valueOf(solution, name) : null;
      const newCell = cell(row, `${branch}-${name}`, value !== null ? withError(unit * value, unit * solution.stderr[name]) : "—", value ?? undefined);
      if (exists && solution.stage === "first look") newCell.className = "first-look";
    }
    for (const branch of pinned) {
      const solution = pinnedAnswer.value[branch];
      const value = solution?.on_branch ? unit * valueOf(solution, name) : null;
      const newCell = cell(row, `pinned-${branch}-${name}`, value === null ? "—" : String(Number(value.toPrecision(4))), value ?? undefined);
      newCell.className = "pinned";
    }
  }
  const rows = [addRow(body, term("kind", "kind")), addRow(body, term("trusted", "trust")), addRow(body, term("precision", "precision"))];
  for (const branch of branches) {
    const solution = answer.value[branch];
    cell(rows[0], `${branch}-kind`, solution?.on_branch ? kindOf(solution.stability) : "—");
    cell(rows[1], `${branch}-trust`, trustOf(solution)).className = "why";
    const precision = solution ? (solution.stage === "final" ? `final, 2^${solution.log2_points} points` : `${solution.stage}, refining`) : "searching";
    cell(rows[2], `${branch}-stage`, precision).dataset.stage = solution ? solution.stage : "";
  }
  for (const branch of pinned) {
    const solution = pinnedAnswer.value[branch];
    rows[0].insertCell().textContent = solution?.on_branch ? solution.stability.kind : "—";
    rows[1].insertCell().textContent = solution?.on_branch ? (solution.stability.trusted ? "trusted" : "not trusted") : "—";
    rows[2].insertCell().textContent = solution ? solution.stage : "";
    for (const row of rows) row.lastElementChild.className = "pinned why";
  }
  const verdict = byId("verdict");
  verdict.dataset.winner = answer.winner ?? "";
  const sentence = verdictOf(answer);
  // A screen reader reads every change aloud.
  if (verdict.textContent !== sentence) verdict.textContent = sentence;
  const first = Object.values(answer.value).find(Boolean);
  byId("note-numbers").replaceChildren(...(first ? [term("linear", "Linear positional layer"),
    `: test error ${first.linear_test_error === null ? "unknown" : (1e3 * first.linear_test_error).toPrecision(4) + "·10⁻³"}. ± is one standard error of the quadrature. Training need not find the lowest minimum: press Train to see which one it finds.`] : []));
}

function showHeads(answer, branches, pinned) {
  const row = byId("numbers").tHead.rows[0];
  row.replaceChildren(element("th", { scope: "col" }, "Quantity"));
  for (const branch of branches) {
    const isLowest = answer.winner === branch;
    row.append(element("th", { scope: "col", id: `head-${branch}`, className: isLowest ? "winner" : "" }, isLowest ? `${branch} ✓ lowest loss` : branch));
  }
  for (const branch of pinned) row.append(element("th", { scope: "col", className: "pinned" }, `pinned ${branch}`));
}

// alpha_c and alpha_l of the model, from its curve; `where` begins the sentence.
export function critical(curve, where) {
  const line = byId("critical");
  line.dataset.value = curve?.alpha_c ?? "";
  if (!curve || curve.alpha_c === undefined) {
    line.textContent = curve ? "Searching for the crossing of the losses…" : "";
    return;
  }
  const doubt = curve.alpha_c_trusted ? "" : " (the theory is not trusted there)";
  const crossing = curve.alpha_c === null ? ["The losses do not cross between α = 0.1 and 2.5"]
    : [where, "losses cross at ", term("alpha_c", "α_c"), ` = ${withError(curve.alpha_c, curve.alpha_c_stderr)}${doubt}`];
  const better = curve.alpha_l === null ? [] : ["; attention beats a linear layer above ", term("alpha_l", "α_l"), ` = ${curve.alpha_l.toFixed(2)}`];
  line.replaceChildren(...crossing, ...better, ".");
}

// Pin a point to compare others with; null removes the pin. `whenPinned` receives its answers.
export function pin(point, whenPinned, refuse) {
  const mine = (pins += 1);
  pinnedAnswer = null;
  byId("pin").textContent = point ? "Unpin" : "Pin";
  byId("pin").setAttribute("aria-pressed", String(Boolean(point)));
  const text = point && Object.entries(point).filter(([name]) => name !== "reference").map(([name, value]) => `${letter(name)} = ${value}`).join(", ");
  byId("note-pin").textContent = point ? `Pinned: ${text}.` : "";
  const receive = (answer) => {
    pinnedAnswer = answer;
    if (latest) show(latest);
    whenPinned(answer);
  };
  if (!point) receive(null);
  else poll("point", { ...point, ...SECOND_POINT }, () => mine !== pins, receive).catch(refuse);
}

export const pinned = () => pinnedAnswer;

table("numbers", () => {
  const rows = [["branch", "quantity", "value", "stderr", "stage", "trusted", "winner", "pinned"]];
  for (const answer of [latest, pinnedAnswer]) {
    if (!answer) continue;
    for (const [branch, solution] of Object.entries(answer.value)) {
      if (!solution?.on_branch) continue;
      for (const [name] of QUANTITIES) {
        rows.push([branch, name, valueOf(solution, name), solution.stderr[name], solution.stage, solution.stability.trusted, answer.winner === branch, answer === pinnedAnswer]);
      }
    }
  }
  return rows;
});
