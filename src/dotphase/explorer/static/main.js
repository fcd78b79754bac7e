// The page: what the user moves goes into the address, to the server, and onto the views.

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
const REST = 350; // milliseconds without a move after which the slower views begin
let move = 0; // counts moves: an answer to an older one is thrown away
let busy = false;
let current = null; // the point that the server has accepted last
let resting = null;
let pictured = null; // an answer whose figures are not drawn yet
let latest = null; // the last answer about a point
let sweeping = 0; // counts sweeps over alpha; even while it rests
let about = null;
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
  const kept = numbers.pinned();
  return { ...controls.read(), ...training.options(), ...learn.options(), sentence: byId("sentence").value.trim(), ...histogram.query(),
    tab: opened(), ...(kept ? { pin: JSON.stringify(kept.point) } : {}) };
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
  latest = answer;
  numbers.show(answer);
  if (opened() === "transition" && about.attention) attention.follow(answer, refuse);
  const waiting = pictured !== null;
  pictured = answer;
  if (!waiting) requestAnimationFrame(() => setTimeout(showPictures));
}

function showPictures() {
  const answer = pictured;
  pictured = null;
  diagram.move(answer.point);
  const model = JSON.stringify({ ...answer.point, alpha: 0 });
  if (model !== drawn.model) {
    curves.forget();
    numbers.critical(null);
  }
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
  if (!answer.done) poll("point", point, stale, (better) => showPoint(better), 120, 300).catch(refuse);
  const family = JSON.stringify({ ...point, alpha: 0, [about.across]: 0 });
  const model = JSON.stringify({ ...point, alpha: 0 });
  clearTimeout(resting);
  resting = setTimeout(() => {
    if (stale()) return;
    if (opened() === "learn") {
      learn.watch(point);
      return;
    }
    drawn.model = model;
    poll("curve", point, stale, (got) => {
      curves.show(got);
      numbers.critical(got.value, about.across ? `At ${controls.letter(about.across)} = ${point[about.across]} the ` : "The ");
    }).catch(refuse);
    poll("landscape", point, stale, landscape.show).catch(refuse);
    if (family !== drawn.family) {
      drawn.family = family;
      const other = () => drawn.family !== family;
      poll("diagram", point, other, diagram.show, 400).catch(refuse);
    }
  }, REST);
}

// From few data to many, as if the slider were drawn; any other move ends it.
function rest() {
  sweeping += sweeping % 2;
  byId("sweep").textContent = "▶ Play α";
}

async function sweep() {
  const mine = (sweeping += 1);
  byId("sweep").textContent = "❚❚ Pause";
  const [low, high, seconds] = [0.1, 2.5, 16];
  const now = Number(controls.read().alpha);
  const from = now >= high || Number.isNaN(now) ? low : now;
  const began = performance.now();
  for (let alpha = from; mine === sweeping && alpha < high; ) {
    alpha = Math.min(from + ((performance.now() - began) / 1000 / seconds) * (high - low), high);
    controls.write({ alpha: alpha.toFixed(2) });
    update();
    await pause(60);
    while (busy && mine === sweeping) await pause(20);
  }
  if (mine === sweeping) rest();
}

function setPin(point) {
  numbers.pin(point, (answer) => {
    diagram.pin(answer && answer.point);
    curves.paint();
    remember();
  }, refuse);
}

function listenQuick() {
  byId("sweep").addEventListener("click", () => (sweeping % 2 ? rest() : sweep()));
  byId("pin").addEventListener("click", () => setPin(numbers.pinned() ? null : current));
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
  else byId(name === "transition" ? "side" : name).prepend(byId("controls")); // the model is chosen on both
  if (name !== "transition") rest();
  if (name !== "learn") learn.leave();
  redraw();
}

function listenTabs() {
  TABS.forEach((name) => {
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
      const open = TABS.filter((tab) => !byId(`tab-${tab}`).hidden);
      const next = open[(open.indexOf(name) + (event.key === "ArrowRight" ? 1 : open.length - 1)) % open.length];
      choose(next);
      byId(`tab-${next}`).focus();
    });
  });
}

// A model of the user's own: what the page says of the paper's alone is left out.
function introduce() {
  if (about.model) byId("about").textContent = about.model.split("/").at(-1);
  if (!about.lesson) byId("tab-learn").hidden = true;
  byId("view-attention").hidden = !about.attention;
  if (about.across) diagram.setAxis({ name: about.across, letter: controls.letter(about.across) });
}

async function begin() {
  listenTheme();
  listenTabs();
  terms.listen();
  about = await get("about");
  configure(about.colours, { link, query });
  controls.build(byId("form"), about, () => {
    rest();
    update();
  });
  introduce();
  training.build(about.starts);
  if (about.lesson) learn.build(about.lesson, refuse, accept, remember);
  histogram.build(remember);
  document.querySelectorAll(".view").forEach((section) => addTools(section, showCopied, refuse));
  byId("copied-close").addEventListener("click", () => { byId("copied").hidden = true; });
  const given = Object.fromEntries(new URLSearchParams(location.search));
  controls.write({ ...about.defaults, ...given });
  training.write(given);
  if (about.lesson) learn.write(given);
  histogram.write(given);
  if (given.sentence !== undefined) byId("sentence").value = given.sentence;
  const attend = () => {
    if (latest) attention.follow(latest, refuse);
    remember();
  };
  byId("sentence").addEventListener("change", attend);
  byId("next-sentence").addEventListener("click", () => {
    byId("sentence").value = String((Number(byId("sentence").value) + 1) % 1000000 || 0);
    attend();
  });
  byId("training").addEventListener("change", remember);
  listenQuick();
  diagram.listen((place) => {
    rest();
    controls.write(place);
    update();
  }, controls.read, controls.limits);
  training.listen(() => controls.read(), refuse, () => {
    curves.paint();
    landscape.paint();
  }, landscape.follow);
  openTab(TABS.includes(given.tab) && !byId(`tab-${given.tab}`).hidden ? given.tab : "transition");
  window.addEventListener("resize", () => {
    clearTimeout(begin.timer);
    begin.timer = setTimeout(redraw, 200);
  });
  document.body.dataset.ready = "yes";
  await update();
  if (given.pin) pinGiven(given.pin);
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

function pinGiven(text) {
  try {
    setPin(JSON.parse(text));
  } catch {
    refuse(Object.assign(new Error("pin cannot be read from this link"), { field: "pin" }));
  }
}

begin().catch(refuse);
