// What is behind a turn: made when it is opened, once.
function bars(score) {
  const most = Math.max(...score.map((term) => Math.abs(term.value)), 1e-9);
  const rows = score.map(({ name, value }) => {
    const length = `${(Math.abs(value) / most * 50).toFixed(1)}%`;
    const side = value < 0 ? "right:50%" : "left:50%";
    return el("tr", null,
      el("th", { scope: "row" }, words(name)),
      el("td", { class: "track" }, value === 0 ? null
        : el("span", { class: value < 0 ? "minus" : "plus", style: `${side};width:${length}` })),
      el("td", { class: "value" }, signed(value)));
  });
  return el("table", { class: "bars" }, el("tbody", null, ...rows));
}

function scorePart(row) {
  const sum = row.score.reduce((total, term) => total + term.value, 0);
  const floor = row.omega !== row.omega_raw ? `, raised to the social floor ${fixed(row.omega)}` : "";
  return block("Survival Score", bars(row.score),
    el("p", { class: "sum" }, `Ω = σ(${fixed(sum)}) = ${fixed(row.omega_raw)}${floor}`));
}

function decisionsPart(row) {
  if (!row.decisions.length) return block("Decisions", el("p", { class: "soft" }, "None so far."));
  const items = row.decisions.map((one) => el("li", null,
    el("span", { class: "at" }, `after ${one.at}`), el("span", null, one.words)));
  return block("Decisions", el("ol", { class: "log" }, ...items));
}

function readPart(row) {
  const cues = Object.entries(row.cues)
    .map(([signal, texts]) => `${words(signal)} from ${texts.map((text) => `“${text}”`).join(", ")}`);
  const claims = row.claims
    .map((one) => `${one.subject}, ${one.identity}: ${one.negated ? "not " : ""}${one.value}`);
  const { density, sentiment, divergence } = row.measures;
  return block("Read in it", pairs([
    ["density", fixed(density)],
    ["sentiment", fixed(sentiment)],
    ["divergence", fixed(divergence)],
    ["signals", row.signals.map(words).join(", ")],
    ["cues", cues.join("; ")],
    ["entities", row.entities.join(", ")],
    ["claims", claims.join("; ")],
    ["times", row.times.join("; ")],
    ["tokens", row.tokens],
    ["half-life", row.half_life === null ? null : `${fixed(row.half_life, 1)} turns`],
  ]));
}

function lineagePart(row) {
  const one = (edge, sentence) => el("li", null, ...sentence,
    edge.topic ? ` on ${edge.topic}` : "", edge.by_caller ? " (said by the caller)" : "");
  const items = [
    ...row.older.map((edge) => one(edge, [`${words(edge.relation)} `, turnLink(edge.turn)])),
    ...row.newer.map((edge) => one(edge, [turnLink(edge.turn), ` ${words(edge.relation)} it`])),
  ];
  return items.length ? block("Lineage", el("ul", null, ...items)) : null;
}

function cardsPart(row) {
  if (!row.cards.length) return null;
  const items = row.cards.map((card) => el("li", null,
    `${card.subject} ${card.negated ? "not " : ""}${words(card.predicate)} ${card.object}`,
    card.validity === "current" ? null : el("span", { class: "mark gone" }, card.validity)));
  return block("Cards", el("ul", null, ...items));
}

function gatePart(row) {
  if (!row.gate) return null;
  const { tier, lifecycle, reason, surprise, utility, rpe, links } = row.gate;
  const linked = (links ?? []).flatMap((link, place) => [
    place ? ", " : "", turnLink(link.interaction_id), ` (${fixed(link.cosine)})`,
  ]);
  return block("Gate", pairs([
    ["tier", words(tier)], ["lifecycle", `${words(lifecycle)} (${words(reason)})`],
    ["surprise", fixed(surprise)], ["utility", fixed(utility)], ["RPE", fixed(rpe)],
    ["links", linked.length ? el("span", null, ...linked) : null],
  ]));
}

function recurrencePart(row) {
  const held = row.recurrence;
  if (!held || (held.consolidated_in === null && !held.facts.length)) return null;
  return block("Recurrence", pairs([
    ["unit", held.unit ? held.unit.map((id) => `turn ${id}`).join(", ") : null],
    ["episode", held.consolidated_in],
    ["facts", held.facts.join(", ")],
  ]));
}

function block(title, ...content) {
  return el("section", { class: "block" }, el("h4", null, title), ...content);
}

function showLife(details, row, data) {
  if (details.dataset.shown || row.omega === undefined) return;
  details.dataset.shown = "yes";
  const place = details.querySelector(".life");
  // Drawn as wide as there is room, so that its letters keep their size on a phone.
  const width = Math.min(Math.max(place.firstElementChild.clientWidth, 280), 700);
  if (row.fate !== "skip") place.append(curveChart(row, data.settings, data.newest, width));
  place.append(
    el("div", { class: "blocks" }, ...[
      scorePart(row), decisionsPart(row), readPart(row), lineagePart(row), cardsPart(row),
      gatePart(row), recurrencePart(row),
    ].filter(Boolean)));
}
