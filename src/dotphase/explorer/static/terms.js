// Explanations of the symbols, shown on hover, focus and touch.

import { byId, element, indexed } from "./dom.js";

const EXPLANATIONS = {
  alpha: "α = n/d: the number of training sentences per dimension of a token.",
  omega: "ω: the weight of positions in the teacher's attention. With ω = 0 only meaning counts, with ω = 1 only positions.",
  sigma: "σ: the standard deviation of the entries of a token. Positional encodings matter less for larger tokens.",
  ridge: "λ: weight decay. It adds (λ/2)|Q|² to the loss.",
  mixing: "A: the positional part of the teacher's attention, the same for all tokens. Its rows sum to 1.",
  student_rank: "r: the number of columns of the student's matrix Q. With two columns it can have both mechanisms at once.",
  train_loss: "ε_t: the training loss per dimension at this minimum, with its penalty. The global minimum has the lowest.",
  test_error: "ε_g: the mean squared error per entry on new sentences.",
  theta: "θ = σ² Q·Q*/d: the overlap of the student's weights with the teacher's. It measures the semantic mechanism.",
  m: "m = Q·p₁/√d: the overlap of the student's weights with the positional encodings. It measures the positional mechanism.",
  q: "q = σ² Q·Q/d: the size of the student's weights.",
  V: "V: the shift of a student's field on a sentence when that sentence is added to the data.",
  alpha_c: "α_c: the transition. Here the semantic and the positional minimum have equal training losses.",
  alpha_l: "α_l: above it the lowest minimum has a smaller test error than the best linear layer.",
  kind: "A fixed point is a minimum of the training loss, or a saddle, which training leaves.",
  trusted: "The theory assumes replica symmetry. It is not trusted if symmetry breaking would change the result.",
  linear: "A layer that mixes tokens with fixed weights. It is the best that positions alone can do.",
  precision: "First looks use 2^12 Gaussian points. Final numbers use more, at most 2^15, until their errors are below 0.5%.",
};

// Wrap a symbol in a button that explains it, if it has an explanation.
export function term(name, ...content) {
  if (!EXPLANATIONS[name]) return element("span", {}, ...content);
  const parts = content.flatMap((part) => (typeof part === "string" ? indexed(part) : [part]));
  const button = element("button", { type: "button", className: "term" }, ...parts);
  button.dataset.term = name;
  return button;
}

function show(target) {
  const tip = byId("tip");
  tip.replaceChildren(...indexed(EXPLANATIONS[target.dataset.term]));
  tip.hidden = false;
  const [anchor, box] = [target.getBoundingClientRect(), tip.getBoundingClientRect()];
  const left = Math.min(Math.max(anchor.left, 8), innerWidth - box.width - 8);
  const below = anchor.bottom + 6 + box.height < innerHeight;
  Object.assign(tip.style, { left: `${left}px`, top: `${below ? anchor.bottom + 6 : anchor.top - box.height - 6}px` });
  target.setAttribute("aria-describedby", "tip");
}

export function listen() {
  const of = (event) => event.target.closest?.(".term");
  const hide = () => { byId("tip").hidden = true; };
  for (const kind of ["pointerover", "focusin", "click"]) {
    document.addEventListener(kind, (event) => {
      const target = of(event);
      if (!target) { if (kind === "click") hide(); return; }
      if (kind === "click") event.preventDefault(); // A touch must not move the focus to the field of the label.
      show(target);
    });
  }
  for (const kind of ["pointerout", "focusout"]) document.addEventListener(kind, (event) => { if (of(event) && event.pointerType !== "touch") hide(); });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  document.addEventListener("scroll", hide, { passive: true });
}
