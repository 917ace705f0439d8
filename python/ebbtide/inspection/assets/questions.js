// The query box: saved questions, replayed from candidates to evidence.
const FATE_SENTENCES = {
  kept: "kept as evidence",
  joined: "another form of a kept turn",
  duplicate: "says the same as a kept turn",
  cut: "past the limit",
  first_stage: "too weak at first sight",
};

function fateSentence(fate) {
  return FATE_SENTENCES[fate] ?? `dropped: ${words(fate)}`;
}

function funnel(fates) {
  const rows = Object.entries(fates).sort(([one, left], [other, right]) =>
    (other === "kept") - (one === "kept") || right - left || one.localeCompare(other));
  const most = Math.max(...rows.map(([, count]) => count), 1);
  return el("table", { class: "bars funnel" }, el("tbody", null, ...rows.map(([fate, count]) =>
    el("tr", null,
      el("th", { scope: "row" }, fateSentence(fate)),
      el("td", { class: "track" }, el("span", {
        class: fate === "kept" ? "plus" : "other", style: `left:0;width:${(count / most * 100).toFixed(1)}%`,
      })),
      el("td", { class: "value" }, String(count))))));
}

function verdict(trace) {
  if (trace.confidence === null) return "The memory does not know: no turn answers that.";
  const sure = `the best turn has a confidence of ${fixed(trace.confidence)}`;
  return trace.knows ? `The memory answers: ${sure}.` : `The memory may not know: ${sure}.`;
}

const FRAME_WORDS = {
  subject_focus: "about",
  predicate_canonical: "predicate",
  answer_type: "asks for",
  temporal_intent: "time",
  first: "from",
  last: "to",
  currentness: "currentness",
  polarity: "polarity",
  terms: "terms",
};

function frameWords(frame) {
  const plain = (value) => (Array.isArray(value) ? value.map(words).join(", ") : words(value));
  const shown = Object.entries(FRAME_WORDS)
    .filter(([name]) => name in frame && frame[name] !== "none");
  return pairs(shown.map(([name, label]) => [label, plain(frame[name])]));
}

function candidateItem(row, known) {
  const terms = Object.entries(row.terms).filter(([, value]) => value !== 0)
    .sort(([, left], [, right]) => Math.abs(right) - Math.abs(left));
  const channels = Object.entries(row.channels)
    .map(([name, value]) => `${words(name)} ${fixed(value)}`).join(", ");
  const named = (id) => (known(id) ? turnLink(id) : `turn ${id}`);
  const support = (row.support ?? []).flatMap((one, place) =>
    [place ? ", " : "With it: ", named(one.turn), ` (${words(one.relation)})`]);
  return el("li", { class: `candidate ${row.fate}` }, el("details", null,
    el("summary", null,
      el("span", { class: "no" }, row.rank === null ? "–" : String(row.rank)),
      el("span", { class: "head" },
        el("span", { class: "who" }, row.who), el("span", { class: "soft" }, row.day ?? ""),
        row.kind === "raw" ? null : el("span", { class: "mark" }, row.kind),
        row.validity === "current" ? null : el("span", { class: "mark gone" }, row.validity)),
      el("span", { class: "text", dir: "auto" }, row.text),
      el("span", { class: "score" }, fixed(row.score))),
    el("div", { class: "life" },
      el("p", null, named(row.turn), `: ${fateSentence(row.fate)}. Found by ${channels || "no channel"}.`),
      support.length ? el("p", null, ...support, ".") : null,
      terms.length ? bars(terms.map(([term, value]) => ({ name: term, value }))) : null)));
}

function deliberationWords(found) {
  if (!found) return null;
  const why = found.missed.length ? ` for want of ${found.missed.join(", ")}` : "";
  const scan = found.read === null || found.read === undefined ? ""
    : ` The scan read ${found.read} messages and kept ${found.kept} sentences.`;
  return el("p", null,
    `Deliberation (${found.policy}): ${found.escalated ? "escalated" : "not escalated"}${why}.${scan}`);
}

function traceView(trace, known) {
  const others = trace.candidates.filter((row) => row.fate !== "kept");
  const list = (rows) => el("ol", { class: "candidates" }, ...rows.map((row) => candidateItem(row, known)));
  const left = trace.left_out ? el("p", { class: "soft" },
    `${trace.left_out} weaker candidates are only counted.`) : null;
  return el("article", { class: "trace", "aria-label": trace.question },
    el("h3", null, trace.question),
    el("p", { class: trace.knows ? "verdict" : "verdict unsure" }, verdict(trace)),
    deliberationWords(trace.deliberation),
    el("div", { class: "blocks" },
      block("Understood as", frameWords(trace.frame)), block("Candidates", funnel(trace.fates))),
    block("Evidence, best first", list(trace.evidence)),
    others.length ? el("details", { class: "rest" },
      el("summary", null, `${others.length} other candidates`), list(others), left) : left);
}

function nearest(questions, text) {
  const asked = text.toLowerCase().split(/\s+/).filter(Boolean);
  const exact = questions.findIndex(({ question }) => question.toLowerCase() === text.toLowerCase().trim());
  if (exact >= 0 || !asked.length) return exact;
  const found = questions.flatMap(({ question }, place) =>
    asked.every((word) => question.toLowerCase().includes(word)) ? [place] : []);
  return found.length === 1 ? found[0] : -1;
}

function setUpQuestions(data) {
  const form = document.getElementById("ask");
  if (!form) return;
  const { questions } = data;
  const ids = new Set(data.turns.map((row) => row.id));
  const buttons = [...document.querySelectorAll("[data-question]")];
  const [asked, place] = [document.getElementById("asked"), document.getElementById("trace")];

  function show(number) {
    place.replaceChildren(traceView(questions[number], (id) => ids.has(id)));
    asked.textContent = "";
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.question) === number));
    }
  }

  function search() {
    const text = form.elements.question.value;
    const number = nearest(questions, text);
    for (const button of buttons) {
      const fit = text.toLowerCase().split(/\s+/).every((word) => button.textContent.toLowerCase().includes(word));
      button.parentElement.hidden = !fit;
    }
    if (number >= 0) show(number);
    const fits = buttons.some((button) => !button.parentElement.hidden);
    asked.textContent = fits ? "" : "That question is not among the saved ones: write the page again with --question.";
  }

  form.addEventListener("input", search);
  form.addEventListener("submit", (event) => { event.preventDefault(); search(); });
  for (const button of buttons) button.addEventListener("click", () => show(Number(button.dataset.question)));
  form.hidden = false;
  show(0);
}
