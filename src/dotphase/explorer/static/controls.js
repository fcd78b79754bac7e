// Sliders and fields of the model, and the parameters they stand for.
//
// Values are kept as the text that was typed: the server alone decides what is allowed.

import { byId, element } from "./dom.js";
import { term } from "./terms.js";

let given = []; // as the server lists them: name, letter, words, default; low, high, step, logarithmic of a slider
const MATRICES = { standard: ["0.6", "0.6"], other: ["0.3", "0.2"] };

const inputs = {};
const others = () => given.map((one) => one.name).filter((name) => name !== "mixing");
const known = (name) => given.find((one) => one.name === name);

const fromSlider = (name, value) => (known(name).logarithmic ? String(Number((10 ** Number(value)).toPrecision(3))) : value);
const toSlider = (name, value) => (known(name).logarithmic ? Math.log10(Number(value)) : value);
export const limits = (name) => [known(name).low, known(name).high];
export const letter = (name) => (known(name) ? known(name).letter : name);

function label(name, id, ...words) {
  const made = element("label", { htmlFor: id, id: `${id}-label` }, term(name, ...words.slice(0, 1)), ...words.slice(1));
  return made;
}

function control(form, one, change) {
  const { name, words } = one;
  const field = element("input", { type: "text", id: name, inputMode: "decimal" });
  const text = label(name, name, element("b", {}, one.letter), ` ${words}`);
  field.addEventListener("change", () => {
    if (inputs[name].slider) inputs[name].slider.value = toSlider(name, field.value);
    change(name);
  });
  inputs[name] = { field };
  if (one.low === undefined) {
    form.append(element("div", { className: "control plain" }, text, field));
    return;
  }
  const slider = element("input", { type: "range", id: `${name}-slider`, min: toSlider(name, one.low), max: toSlider(name, one.high), step: one.step });
  slider.setAttribute("aria-label", `${one.letter}, ${words} (slider)`);
  slider.addEventListener("input", () => {
    field.value = fromSlider(name, slider.value);
    change(name);
  });
  inputs[name].slider = slider;
  form.append(element("div", { className: "control" }, text, slider, field));
}

// A by its name, or by its two diagonal entries.
function matrix(form, words, change) {
  const named = element("select", { id: "mixing" });
  for (const name of ["standard", "other", "custom"]) named.append(element("option", {}, name));
  const row = element("div", { className: "control pair" }, label("mixing", "mixing", element("b", {}, "A"), ` ${words}`), named);
  inputs.mixing = { field: named };
  for (const [name, who] of [["A11", "A₁₁, first token on itself"], ["A22", "A₂₂, second token on itself"]]) {
    const field = element("input", { type: "text", id: name, inputMode: "decimal", title: who, ariaLabel: who });
    field.addEventListener("change", () => {
      named.value = "custom";
      change("mixing");
    });
    inputs[name] = { field };
    row.append(field);
  }
  named.addEventListener("change", () => {
    if (MATRICES[named.value]) setEntries(MATRICES[named.value]);
    change("mixing");
  });
  form.append(row);
}

// Build the controls; `change` is called when the user moves one.
export function build(form, about, change) {
  given = about.controls;
  for (const one of given) {
    if (one.name === "mixing" && !about.model) matrix(form, one.words, change);
    else control(form, one, change);
  }
  const presets = byId("preset");
  presets.append(new Option("Presets…", ""), ...about.presets.map((one) => new Option(one.name)));
  presets.addEventListener("change", () => {
    const chosen = about.presets.find((one) => one.name === presets.value);
    presets.title = chosen ? chosen.words : "";
    if (!chosen) return;
    write(chosen.point);
    change("preset", chosen);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
}

function setEntries(pair) {
  ["A11", "A22"].forEach((name, index) => { inputs[name].field.value = pair[index]; });
}

// What the controls say now, as the query of an address.
export function read() {
  const query = Object.fromEntries(others().map((name) => [name, inputs[name].field.value.trim()]));
  if (inputs.A11) {
    const named = inputs.mixing.field.value;
    query.mixing = MATRICES[named] ? named : `${inputs.A11.field.value.trim()},${inputs.A22.field.value.trim()}`;
  } else if (inputs.mixing) query.mixing = inputs.mixing.field.value.trim();
  return query;
}

// Set the controls from a query; the slider stays where it can.
export function write(query) {
  for (const name of others()) {
    if (query[name] === undefined) continue;
    inputs[name].field.value = query[name];
    if (inputs[name].slider) inputs[name].slider.value = toSlider(name, query[name]);
  }
  if (query.mixing !== undefined && inputs.A11) {
    inputs.mixing.field.value = MATRICES[query.mixing] ? query.mixing : "custom";
    setEntries(MATRICES[query.mixing] ?? String(query.mixing).split(",").concat([""]).slice(0, 2));
  }
}

export function markWrong(field) {
  for (const name of Object.keys(inputs)) {
    const wrong = name === field || (field === "mixing" && name.startsWith("A"));
    inputs[name].field.setAttribute("aria-invalid", String(wrong));
  }
}
