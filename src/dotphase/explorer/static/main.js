// The page: sends the values of the controls to the server, shows the answers, and keeps the address up to date.

import { get, pause, poll } from "./api.js";
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
import * as terms from "./terms.js";
import * as training from "./train.js";

const TABS = ["transition", "learn", "histogram"];
const REST = 350; // milliseconds without a move before the slower views start
let move = 0; // number of moves: only answers after the last one count
let isBusy = false;
let current = null; // the last point that the server accepted
let restTimer = null;
let undrawn = null; // an answer whose figures are not drawn yet
let latest = null; // the last answer for a point
let sweeps = 0; // number of starts and ends of the animation of alpha; odd while it runs
let about = null;
const drawn = { model: null, family: null };
const openedTab = () => TABS.find((name) => !byId(name).hidden);

function refuse(error) {
  const message = byId("message");
  message.textContent = error.field ? error.message : `Defect of the page: ${error.message}`;
  message.hidden = false;
  if (error.field) controls.markWrong(error.field);
}

function accept() {
  byId("message").hidden = true;
  controls.markWrong("");
}

function showCopied(title, text) {
  byId("copied-title").textContent = title;
  byId("copied-text").textContent = text;
  byId("copied").hidden = false;
}

// All parameters of a permanent link.
function query() {
  const pinned = numbers.pinned();
  return { ...controls.read(), ...training.options(), ...learn.options(), sentence: byId("sentence").value.trim(), ...histogram.query(),
    tab: openedTab(), ...(pinned ? { pin: JSON.stringify(pinned.point) } : {}) };
}

function link(anchor = "") {
  return `${location.origin}${location.pathname}?${new URLSearchParams(query())}${anchor ? `#${anchor}` : ""}`;
}

const remember = () => history.replaceState(null, "", link(location.hash.slice(1)));

// Request the numbers of the point, one request at a time; the newest point waits.
async function update() {
  move += 1;
  if (isBusy) return;
  isBusy = true;
  try {
    for (let requested = -1; requested !== move; ) {
      requested = move;
      const began = performance.now();
      try {
        const answer = await get("point", controls.read());
        document.body.dataset.milliseconds = String(performance.now() - began);
        accept();
        current = answer.point;
        showPoint(answer);
        if (requested === move) startViews(requested, answer);
      } catch (error) {
        refuse(error);
      }
    }
  } finally {
    isBusy = false;
  }
  remember();
}

// Show the numbers at once, and the figures of the latest answer in a frame of their own.
function showPoint(answer) {
  latest = answer;
  numbers.show(answer);
  if (openedTab() === "transition" && about.attention) attention.follow(answer, refuse);
  const isScheduled = undrawn !== null;
  undrawn = answer;
  if (!isScheduled) requestAnimationFrame(() => setTimeout(drawFigures));
}

function drawFigures() {
  const answer = undrawn;
  undrawn = null;
  diagram.move(answer.point);
  const model = JSON.stringify({ ...answer.point, alpha: 0 });
  if (model !== drawn.model) {
    curves.forget();
    numbers.critical(null);
  }
  if (JSON.stringify(answer.point) !== drawn.point) landscape.forget();
  drawn.point = JSON.stringify(answer.point);
  curves.setPoint(answer.point, answer);
  landscape.setPoint(answer.point, answer);
  learn.markMinima(answer);
}

// Refine the numbers after the first answer, then start the slower views.
function startViews(requested, answer) {
  const isStale = () => requested !== move;
  const point = answer.point;
  if (!answer.done) poll("point", point, isStale, showPoint, 120, 300).catch(refuse);
  const family = JSON.stringify({ ...point, alpha: 0, [about.vertical]: 0 });
  const model = JSON.stringify({ ...point, alpha: 0 });
  clearTimeout(restTimer);
  restTimer = setTimeout(() => {
    if (isStale()) return;
    if (openedTab() === "learn") {
      learn.watch(point);
      return;
    }
    drawn.model = model;
    poll("curve", point, isStale, (job) => {
      curves.show(job);
      numbers.critical(job.value, about.vertical ? `At ${controls.letter(about.vertical)} = ${point[about.vertical]} the ` : "The ");
    }).catch(refuse);
    poll("landscape", point, isStale, landscape.show).catch(refuse);
    if (family !== drawn.family) {
      drawn.family = family;
      const isOther = () => drawn.family !== family;
      poll("diagram", point, isOther, diagram.show, 400).catch(refuse);
    }
  }, REST);
}

// Stop the animation of alpha.
function stopSweep() {
  sweeps += sweeps % 2;
  byId("sweep").textContent = "▶ Play α";
}

// Move alpha from few data to many; any other move ends it.
async function sweep() {
  const mine = (sweeps += 1);
  byId("sweep").textContent = "❚❚ Pause";
  const [low, high, seconds] = [0.1, 2.5, 16];
  const now = Number(controls.read().alpha);
  const from = now >= high || Number.isNaN(now) ? low : now;
  const began = performance.now();
  for (let alpha = from; mine === sweeps && alpha < high; ) {
    alpha = Math.min(from + ((performance.now() - began) / 1000 / seconds) * (high - low), high);
    controls.write({ alpha: alpha.toFixed(2) });
    update();
    await pause(60);
    while (isBusy && mine === sweeps) await pause(20);
  }
  if (mine === sweeps) stopSweep();
}

function setPin(point) {
  numbers.pin(point, (answer) => {
    diagram.pin(answer && answer.point);
    curves.paint();
    remember();
  }, refuse);
}

function listenQuick() {
  byId("sweep").addEventListener("click", () => (sweeps % 2 ? stopSweep() : sweep()));
  byId("pin").addEventListener("click", () => setPin(numbers.pinned() ? null : current));
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  byId("theme").textContent = name === "dark" ? "Light" : "Dark";
}

function listenTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => localStorage.getItem("theme");
  setTheme(chosen() ?? (system.matches ? "dark" : "light"));
  system.addEventListener("change", () => {
    if (!chosen()) setTheme(system.matches ? "dark" : "light");
    redraw();
  });
  byId("theme").addEventListener("click", () => {
    localStorage.setItem("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    setTheme(chosen());
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
  else byId(name === "transition" ? "side" : name).prepend(byId("controls")); // Both tabs have the controls of the model.
  if (name !== "transition") stopSweep();
  if (name !== "learn") learn.leave();
  redraw();
}

function listenTabs() {
  TABS.forEach((name) => {
    const tab = byId(`tab-${name}`);
    const choose = (other) => {
      if (other === openedTab()) return;
      openTab(other);
      remember();
      if (current && other !== "histogram") update(); // The slow views of the tab show an older point.
    };
    tab.addEventListener("click", () => choose(name));
    tab.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
      const open = TABS.filter((tab) => !byId(`tab-${tab}`).hidden);
      const next = open[(open.indexOf(name) + (event.key === "ArrowRight" ? 1 : open.length - 1)) % open.length];
      choose(next);
      byId(`tab-${next}`).focus();
    });
  });
}

// Adapt the page to the model: some views exist only for the paper's.
function adaptToModel() {
  if (about.model) byId("about").textContent = about.model.split("/").at(-1);
  if (!about.descent) byId("tab-learn").hidden = true;
  byId("view-attention").hidden = !about.attention;
  if (about.vertical) diagram.setAxis({ name: about.vertical, letter: controls.letter(about.vertical) });
}

async function start() {
  listenTheme();
  listenTabs();
  terms.listen();
  about = await get("about");
  configure(about.colors, { link, query });
  controls.build(byId("form"), about, () => {
    stopSweep();
    update();
  });
  adaptToModel();
  training.build(about.starts);
  if (about.descent) learn.build(about.descent, refuse, accept, remember);
  histogram.build(remember);
  document.querySelectorAll(".view").forEach((section) => addTools(section, showCopied, refuse));
  byId("copied-close").addEventListener("click", () => { byId("copied").hidden = true; });
  const linked = Object.fromEntries(new URLSearchParams(location.search));
  controls.write({ ...about.defaults, ...linked });
  training.write(linked);
  if (about.descent) learn.write(linked);
  histogram.write(linked);
  if (linked.sentence !== undefined) byId("sentence").value = linked.sentence;
  const updateAttention = () => {
    if (latest) attention.follow(latest, refuse);
    remember();
  };
  byId("sentence").addEventListener("change", updateAttention);
  byId("next-sentence").addEventListener("click", () => {
    byId("sentence").value = String((Number(byId("sentence").value) + 1) % 1000000 || 0);
    updateAttention();
  });
  byId("training").addEventListener("change", remember);
  listenQuick();
  diagram.listen((chosen) => {
    stopSweep();
    controls.write(chosen);
    update();
  }, controls.read, controls.limits);
  training.listen(() => controls.read(), refuse, () => {
    curves.paint();
    landscape.paint();
  }, landscape.follow);
  openTab(TABS.includes(linked.tab) && !byId(`tab-${linked.tab}`).hidden ? linked.tab : "transition");
  window.addEventListener("resize", () => {
    clearTimeout(start.timer);
    start.timer = setTimeout(redraw, 200);
  });
  document.body.dataset.ready = "yes";
  await update();
  if (linked.pin) pinLinked(linked.pin);
  // A link with a bad value shows its message and the numbers of the default point.
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

function pinLinked(text) {
  try {
    setPin(JSON.parse(text));
  } catch {
    refuse(Object.assign(new Error("pin cannot be parsed in this link"), { field: "pin" }));
  }
}

start().catch(refuse);
