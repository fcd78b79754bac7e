// Sliders and fields for the parameters of the model.
//
// Values stay text as typed; only the server checks them.

import { byId, element } from "./dom.js";
import { term } from "./terms.js";

let parameters = []; // from the server: name, letter, description, default; for sliders low, high, step, logarithmic
const MATRICES = { standard: ["0.6", "0.6"], other: ["0.3", "0.2"] };

const inputs = {};
const numbers = () => parameters.map(({ name }) => name).filter((name) => name !== "mixing");
const parameter = (name) => parameters.find((candidate) => candidate.name === name);

const fromSlider = (name, value) => (parameter(name).logarithmic ? String(Number((10 ** Number(value)).toPrecision(3))) : value);
const toSlider = (name, value) => (parameter(name).logarithmic ? Math.log10(Number(value)) : value);
export const limits = (name) => [parameter(name).low, parameter(name).high];
export const letter = (name) => (parameter(name)?.letter ?? name);

const label = (name, letter, description) =>
  element("label", { htmlFor: name, id: `${name}-label` }, term(name, element("b", {}, letter)), ` ${description}`);

// Move the thumb of a slider to the number in its field; text that is no number leaves it in place.
function moveThumb(name) {
  const { slider, field } = inputs[name];
  const place = field.value.trim() === "" ? NaN : Number(toSlider(name, field.value));
  if (slider && Number.isFinite(place)) slider.value = place;
}

function addControl(form, { name, letter, description, low, high, step }, change) {
  const field = element("input", { type: "text", id: name, inputMode: "decimal" });
  const text = label(name, letter, description);
  field.addEventListener("change", () => {
    moveThumb(name);
    change(name);
  });
  inputs[name] = { field };
  if (low === undefined) {
    form.append(element("div", { className: "control plain" }, text, field));
    return;
  }
  const slider = element("input", { type: "range", id: `${name}-slider`, min: toSlider(name, low), max: toSlider(name, high), step });
  slider.setAttribute("aria-label", `${letter}, ${description} (slider)`);
  slider.addEventListener("input", () => {
    field.value = fromSlider(name, slider.value);
    change(name);
  });
  inputs[name].slider = slider;
  form.append(element("div", { className: "control" }, text, slider, field));
}

// Controls of A: its name, and its two diagonal entries.
function addMatrix(form, description, change) {
  const select = element("select", { id: "mixing" });
  for (const name of ["standard", "other", "custom"]) select.append(element("option", {}, name));
  const row = element("div", { className: "control pair" }, label("mixing", "A", description), select);
  inputs.mixing = { field: select };
  for (const [name, title] of [["A11", "A₁₁, first token on itself"], ["A22", "A₂₂, second token on itself"]]) {
    const field = element("input", { type: "text", id: name, inputMode: "decimal", title, ariaLabel: title });
    field.addEventListener("change", () => {
      select.value = "custom";
      change("mixing");
    });
    inputs[name] = { field };
    row.append(field);
  }
  select.addEventListener("change", () => {
    if (MATRICES[select.value]) setEntries(MATRICES[select.value]);
    change("mixing");
  });
  form.append(row);
}

// Build the controls; `change` runs when the user moves one.
export function build(form, about, change) {
  parameters = about.controls;
  for (const control of parameters) {
    if (control.name === "mixing" && !about.model) addMatrix(form, control.description, change);
    else addControl(form, control, change);
  }
  const presets = byId("preset");
  presets.append(new Option("Presets…", ""), ...about.presets.map(({ name }) => new Option(name)));
  presets.addEventListener("change", () => {
    const chosen = about.presets.find(({ name }) => name === presets.value);
    presets.title = chosen ? chosen.description : "";
    if (!chosen) return;
    write(chosen.point);
    change("preset", chosen);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
}

function setEntries(pair) {
  ["A11", "A22"].forEach((name, index) => { inputs[name].field.value = pair[index]; });
}

// The values of the controls, as a query.
export function read() {
  const query = Object.fromEntries(numbers().map((name) => [name, inputs[name].field.value.trim()]));
  if (inputs.A11) {
    const name = inputs.mixing.field.value;
    query.mixing = MATRICES[name] ? name : `${inputs.A11.field.value.trim()},${inputs.A22.field.value.trim()}`;
  } else if (inputs.mixing) query.mixing = inputs.mixing.field.value.trim();
  return query;
}

// Set the controls from a query; a slider stops at its ends.
export function write(query) {
  for (const name of numbers()) {
    if (query[name] === undefined) continue;
    inputs[name].field.value = query[name];
    moveThumb(name);
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
