// The list of turns: what opens, what a filter hides, where the arrow keys lead.
const KINDS = {
  related: (row) => (row.older?.length ?? 0) + (row.newer?.length ?? 0) > 0,
  gone: (row) => row.validity !== "current",
  cards: (row) => (row.cards?.length ?? 0) > 0,
  signals: (row) => (row.signals?.length ?? 0) > 0,
};

function listItems(rows) {
  return [...document.querySelectorAll("li.turn")].map((item, place) => {
    const row = rows[place];
    const text = item.querySelector(".text").textContent;
    const named = [row.speaker ?? row.role, row.external_id, row.session_id, text];
    return { item, row, search: named.filter(Boolean).join("\n").toLowerCase() };
  });
}

function fits({ row, search }, wanted) {
  return wanted.fates.has(row.fate)
    && (!wanted.speaker || (row.speaker ?? row.role) === wanted.speaker)
    && (!wanted.kind || KINDS[wanted.kind](row))
    && wanted.words.every((word) => search.includes(word));
}

function wantedOf(form) {
  const values = new FormData(form);
  return {
    fates: new Set(values.getAll("fate")),
    speaker: values.get("speaker"),
    kind: values.get("kind"),
    words: values.get("words").toLowerCase().split(/\s+/).filter(Boolean),
  };
}

function setUpFilters(form, items) {
  const parts = [...document.querySelectorAll("section.part")];
  const count = form.querySelector(".count");
  const none = document.getElementById("none");

  function update() {
    const wanted = wantedOf(form);
    let shown = 0;
    for (const entry of items) {
      const seen = fits(entry, wanted);
      entry.item.hidden = !seen;
      shown += seen;
    }
    for (const part of parts) part.hidden = !part.querySelector("li.turn:not([hidden])");
    none.hidden = shown > 0;
    count.textContent = `${shown.toLocaleString("en")} of ${items.length.toLocaleString("en")} turns`;
  }

  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  update();
  return () => { form.reset(); update(); };
}

function setUpKeys(list) {
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || event.target.localName !== "summary") return;
    const open = [...list.querySelectorAll("li.turn:not([hidden]) summary")];
    const next = open[open.indexOf(event.target) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
}

// Opens the turn that the address names, whatever the filters hide.
function goTo(id, reset) {
  const item = document.getElementById(`turn-${id}`);
  if (!item) return false;
  if (item.hidden) reset();
  const details = item.querySelector("details");
  details.open = true;
  item.scrollIntoView({ block: "center" });
  details.querySelector("summary").focus({ preventScroll: true });
  return true;
}

function setUpTimeline(data, onOpen) {
  const form = document.getElementById("filters");
  if (!form) return () => false;
  const items = listItems(data.turns);
  const byId = new Map(data.turns.map((row) => [row.id, row]));
  const reset = setUpFilters(form, items);
  const list = document.getElementById("list");
  setUpKeys(list);
  list.addEventListener("toggle", (event) => {
    if (!event.target.open) return;
    const row = byId.get(Number(event.target.parentElement.id.slice("turn-".length)));
    showLife(event.target, row, data);
    onOpen(row);
  }, true);
  return (id) => goTo(id, reset);
}
