// Sliders and fields of the model, and the parameters they stand for.
//
// Values are kept as the text that was typed: the server alone decides what is allowed.

import { element } from "./dom.js";

let sliders = []; // as the server lists them: name, letter, words, low, high, step, logarithmic
const names = () => sliders.map((one) => one.name);
export const PRESETS = { standard: ["0.6", "0.6"], other: ["0.3", "0.2"] };

const inputs = {};

const isLogarithmic = (name) => sliders.some((one) => one.name === name && one.logarithmic);
const fromSlider = (name, value) =>
  isLogarithmic(name) ? String(Number((10 ** Number(value)).toPrecision(3))) : value;
const toSlider = (name, value) => (isLogarithmic(name) ? Math.log10(Number(value)) : value);

function control(form, name, letter, words, low, high, step, change) {
  const slider = element("input", { type: "range", id: `${name}-slider`, min: low, max: high, step });
  const field = element("input", { type: "text", id: name, inputMode: "decimal" });
  const label = element("label", { htmlFor: name, id: `${name}-label` }, element("b", {}, letter), ` ${words}`);
  slider.setAttribute("aria-label", `${letter}, ${words} (slider)`);
  slider.addEventListener("input", () => {
    field.value = fromSlider(name, slider.value);
    change(name);
  });
  field.addEventListener("change", () => {
    slider.value = toSlider(name, field.value);
    change(name);
  });
  form.append(element("div", { className: "control" }, label, slider, field));
  inputs[name] = { slider, field };
}

// Build the controls; `change` is called when the user moves one.
export function build(form, about, change) {
  sliders = about.sliders;
  for (const { name, letter, words, low, high, step } of sliders) {
    control(form, name, letter, words, toSlider(name, low), toSlider(name, high), step, change);
  }
  const preset = element("select", { id: "mixing" });
  for (const name of ["standard", "other", "custom"]) preset.append(element("option", {}, name));
  const label = element("label", { htmlFor: "mixing" }, element("b", {}, "A"), " positional attention of the teacher");
  form.append(element("div", { className: "control pick" }, label, preset));
  inputs.mixing = preset;
  const entry = () => {
    preset.value = "custom";
    change("mixing");
  };
  control(form, "A11", "A₁₁", "first token on itself", 0, 1, 0.05, entry);
  control(form, "A22", "A₂₂", "second token on itself", 0, 1, 0.05, entry);
  preset.addEventListener("change", () => {
    if (PRESETS[preset.value]) setEntries(PRESETS[preset.value]);
    change("mixing");
  });
  form.addEventListener("submit", (event) => event.preventDefault());
}

function setEntries([first, second]) {
  for (const [name, value] of [["A11", first], ["A22", second]]) {
    inputs[name].field.value = inputs[name].slider.value = value;
  }
}

// What the controls say now, as the query of an address.
export function read() {
  const query = {};
  for (const name of names()) query[name] = inputs[name].field.value.trim();
  const preset = inputs.mixing.value;
  query.mixing = PRESETS[preset] ? preset : `${inputs.A11.field.value.trim()},${inputs.A22.field.value.trim()}`;
  return query;
}

// Set the controls from a query; the slider stays where it can.
export function write(query) {
  for (const name of names()) {
    if (query[name] === undefined) continue;
    inputs[name].field.value = query[name];
    inputs[name].slider.value = toSlider(name, query[name]);
  }
  if (query.mixing !== undefined) {
    inputs.mixing.value = PRESETS[query.mixing] ? query.mixing : "custom";
    setEntries(PRESETS[query.mixing] ?? String(query.mixing).split(",").concat([""]).slice(0, 2));
  }
}

export function markWrong(field) {
  for (const name of [...names(), "A11", "A22"]) {
    const wrong = name === field || (field === "mixing" && name.startsWith("A"));
    inputs[name].field.setAttribute("aria-invalid", String(wrong));
  }
}
