// The page: what the user moves goes into the address, to the server, and onto the views.

import { get, poll } from "./api.js";
import * as attention from "./attention.js";
import * as controls from "./controls.js";
import * as curves from "./curves.js";
import * as diagram from "./diagram.js";
import { byId } from "./dom.js";
import { addTools, configure, redraw } from "./figure.js";
import * as histogram from "./histogram.js";
import * as landscape from "./landscape.js";
import * as learn from "./learn.js";
import * as numbers from "./numbers.js";
import * as training from "./train.js";

const TABS = ["transition", "learn", "histogram"];
const REST = 350; // milliseconds without a move after which the slower views begin
let move = 0; // counts moves: an answer to an older one is thrown away
let busy = false;
let current = null; // the point that the server has accepted last
let resting = null;
let pictured = null; // an answer whose figures are not drawn yet
const drawn = { model: null, family: null };
const opened = () => TABS.find((name) => !byId(name).hidden);

function refuse(error) {
  const message = byId("message");
  message.textContent = error.field ? error.message : `The page has a defect: ${error.message}`;
  message.hidden = false;
  if (error.field) controls.markWrong(error.field);
}

function accept() {
  byId("message").hidden = true;
  controls.markWrong("");
}

function showCopied(what, text) {
  byId("copied-what").textContent = what;
  byId("copied-text").textContent = text;
  byId("copied").hidden = false;
}

// Everything that a permanent link holds.
function query() {
  return { ...controls.read(), ...training.options(), ...learn.options(), sentence: byId("sentence").value.trim(), ...histogram.query(),
    tab: opened() };
}

function link(anchor = "") {
  return `${location.origin}${location.pathname}?${new URLSearchParams(query())}${anchor ? `#${anchor}` : ""}`;
}

const remember = () => history.replaceState(null, "", link(location.hash.slice(1)));

// One question about a point at a time; the newest waits for the one under way.
async function update() {
  move += 1;
  if (busy) return;
  busy = true;
  try {
    for (let asked = -1; asked !== move; ) {
      asked = move;
      const began = performance.now();
      try {
        const answer = await get("point", controls.read());
        document.body.dataset.milliseconds = String(performance.now() - began);
        accept();
        current = answer.point;
        showPoint(answer);
        if (asked === move) follow(asked, answer);
      } catch (error) {
        refuse(error);
      }
    }
  } finally {
    busy = false;
  }
  remember();
}

// The numbers at once; the figures in a frame of their own, and only the latest.
function showPoint(answer) {
  numbers.show(answer);
  const waiting = pictured !== null;
  pictured = answer;
  if (!waiting) requestAnimationFrame(() => setTimeout(showPictures));
}

function showPictures() {
  const answer = pictured;
  pictured = null;
  diagram.move(answer.point);
  const model = JSON.stringify({ ...answer.point, alpha: 0 });
  if (model !== drawn.model) curves.forget();
  if (JSON.stringify(answer.point) !== drawn.point) landscape.forget();
  drawn.point = JSON.stringify(answer.point);
  curves.mark(answer.point, answer);
  landscape.mark(answer.point, answer);
  learn.markMinima(answer);
}

// What comes after the first answer: better numbers, then the slower views.
function follow(asked, answer) {
  const stale = () => asked !== move;
  const point = answer.point;
  if (!answer.done) poll("point", point, stale, (better) => showPoint(better)).catch(refuse);
  const family = JSON.stringify({ ...point, alpha: 0, omega: 0 });
  const model = JSON.stringify({ ...point, alpha: 0 });
  clearTimeout(resting);
  resting = setTimeout(() => {
    if (stale()) return;
    if (opened() === "learn") {
      learn.watch(point);
      return;
    }
    drawn.model = model;
    poll("curve", point, stale, curves.show).catch(refuse);
    showAttention();
    poll("landscape", point, stale, landscape.show).catch(refuse);
    if (family !== drawn.family) {
      drawn.family = family;
      const other = () => drawn.family !== family;
      poll("diagram", point, other, diagram.show, 400).catch(refuse);
    }
  }, REST);
}

async function showAttention() {
  try {
    attention.show(await get("attention", { ...current, sentence: byId("sentence").value.trim() }));
  } catch (error) {
    refuse(error);
  }
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  byId("theme").textContent = name === "dark" ? "Light" : "Dark";
}

function listenTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const kept = () => localStorage.getItem("theme");
  setTheme(kept() ?? (system.matches ? "dark" : "light"));
  system.addEventListener("change", () => {
    if (!kept()) setTheme(system.matches ? "dark" : "light");
    redraw();
  });
  byId("theme").addEventListener("click", () => {
    localStorage.setItem("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    setTheme(kept());
    redraw();
  });
}

function openTab(name) {
  for (const tab of TABS) {
    const chosen = tab === name;
    byId(tab).hidden = !chosen;
    byId(`tab-${tab}`).setAttribute("aria-selected", String(chosen));
    byId(`tab-${tab}`).tabIndex = chosen ? 0 : -1;
  }
  if (name === "histogram") histogram.open(refuse, accept);
  else byId(name).prepend(byId("controls")); // the model is chosen on both
  if (name !== "learn") learn.leave();
  redraw();
}

function listenTabs() {
  TABS.forEach((name, index) => {
    const tab = byId(`tab-${name}`);
    const choose = (other) => {
      if (other === opened()) return;
      openTab(other);
      remember();
      if (current && other !== "histogram") update(); // its slow views have not followed
    };
    tab.addEventListener("click", () => choose(name));
    tab.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
      const next = TABS[(index + (event.key === "ArrowRight" ? 1 : TABS.length - 1)) % TABS.length];
      choose(next);
      byId(`tab-${next}`).focus();
    });
  });
}

async function begin() {
  listenTheme();
  listenTabs();
  const about = await get("about");
  configure(about.colours, { link, query });
  controls.build(byId("form"), about, update);
  training.build(about.starts);
  learn.build(about.lesson, refuse, accept, remember);
  histogram.build(remember);
  document.querySelectorAll(".view").forEach((section) => addTools(section, showCopied, refuse));
  byId("copied-close").addEventListener("click", () => { byId("copied").hidden = true; });
  const given = Object.fromEntries(new URLSearchParams(location.search));
  controls.write({ ...about.defaults, ...given });
  training.write(given);
  learn.write(given);
  histogram.write(given);
  if (given.sentence !== undefined) byId("sentence").value = given.sentence;
  byId("sentence").addEventListener("change", () => showAttention().then(remember));
  byId("next-sentence").addEventListener("click", () => {
    byId("sentence").value = String((Number(byId("sentence").value) + 1) % 1000000 || 0);
    showAttention().then(remember);
  });
  byId("training").addEventListener("change", remember);
  diagram.listen((place) => {
    controls.write(place);
    update();
  });
  training.listen(() => controls.read(), refuse, () => {
    curves.paint();
    landscape.paint();
  });
  openTab(TABS.includes(given.tab) ? given.tab : "transition");
  window.addEventListener("resize", () => {
    clearTimeout(begin.timer);
    begin.timer = setTimeout(redraw, 200);
  });
  document.body.dataset.ready = "yes";
  await update();
  // A link with a bad value shows its message, and the rest of the page at the default.
  if (!current) {
    const message = byId("message").textContent;
    const typed = controls.read();
    controls.write(about.defaults);
    await update();
    controls.write(typed);
    byId("message").textContent = message;
    byId("message").hidden = false;
  }
}

begin().catch(refuse);
