// What the symbols mean: shown on hover, on focus, and when touched.

import { byId, element } from "./dom.js";

const WORDS = {
  alpha: "α = n/d: how many sentences there are to learn from, per dimension of a token.",
  omega: "ω: how much the teacher looks at positions. 0: only at what tokens mean; 1: only at where they are.",
  sigma: "σ: standard deviation of the entries of a token. Larger tokens drown the positions.",
  ridge: "λ: weight decay. The loss has (λ/2)|Q|² added.",
  mixing: "A: the attention that the teacher pays by position, whatever the tokens are. Its rows sum to 1.",
  student_rank: "r: columns of the student's matrix Q. With two of them it can have both mechanisms at once.",
  train_loss: "ε_t: the training loss per dimension at this minimum, penalty included. The lowest one wins.",
  test_error: "ε_g: mean squared error per entry on sentences that were not trained on.",
  theta: "θ = σ² Q·Q*/d: how much the student has of the teacher's weights: the semantic mechanism.",
  m: "m = Q·p₁/√d: how much the student's weights lie along the positional encodings: the positional mechanism.",
  q: "q = σ² Q·Q/d: the size of the student's weights.",
  V: "V: how much a student's field at one sentence moves when that sentence is added to the data.",
  alpha_c: "α_c: where the training losses of the semantic and of the positional minimum are the same.",
  alpha_l: "α_l: from here on the lowest minimum has a smaller test error than the best layer that only knows positions.",
  kind: "A minimum of the training loss, or a saddle, which training leaves.",
  trusted: "The theory assumes replica symmetry. Where breaking it would change the result it is not trusted.",
  linear: "A layer that mixes tokens by fixed weights, whatever they are: the best that positions alone can do.",
  precision: "First looks use 2^12 random points; final numbers as many as it takes for 0.5%, at most 2^15.",
};

// A word with an explanation, or just the word.
export function term(name, ...content) {
  if (!WORDS[name]) return element("span", {}, ...content);
  const made = element("button", { type: "button", className: "term" }, ...content);
  made.dataset.term = name;
  return made;
}

function show(target) {
  const tip = byId("tip");
  tip.textContent = WORDS[target.dataset.term];
  tip.hidden = false;
  const [place, box] = [target.getBoundingClientRect(), tip.getBoundingClientRect()];
  const left = Math.min(Math.max(place.left, 8), innerWidth - box.width - 8);
  const below = place.bottom + 6 + box.height < innerHeight;
  Object.assign(tip.style, { left: `${left}px`, top: `${below ? place.bottom + 6 : place.top - box.height - 6}px` });
  target.setAttribute("aria-describedby", "tip");
}

export function listen() {
  const of = (event) => event.target.closest?.(".term");
  const hide = () => { byId("tip").hidden = true; };
  for (const kind of ["pointerover", "focusin", "click"]) {
    document.addEventListener(kind, (event) => {
      const target = of(event);
      if (!target) { if (kind === "click") hide(); return; }
      if (kind === "click") event.preventDefault(); // a touched word does not move on to its field
      show(target);
    });
  }
  for (const kind of ["pointerout", "focusout"]) document.addEventListener(kind, (event) => { if (of(event) && event.pointerType !== "touch") hide(); });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  document.addEventListener("scroll", hide, { passive: true });
}
