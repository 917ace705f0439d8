"use strict";

// Sorting: every head becomes a button; rows without a number stay last.
function key(row, place) {
  const cell = row.cells[place];
  if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
  const word = cell.matches("th, .word");
  return word ? cell.textContent.trim() : null;
}

function sort(table, head, place) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const words = rows.every((row) => typeof key(row, place) === "string");
  const was = head.getAttribute("aria-sort");
  const upward = was ? was === "descending" : words;
  rows.sort((one, other) => {
    const [left, right] = [key(one, place), key(other, place)];
    if (left === null || right === null) return (left === null) - (right === null);
    const order = words ? left.localeCompare(right, "en", { numeric: true }) : left - right;
    return upward ? order : -order;
  });
  for (const other of table.tHead.querySelectorAll("[aria-sort]")) {
    other.removeAttribute("aria-sort");
  }
  head.setAttribute("aria-sort", upward ? "ascending" : "descending");
  body.append(...rows);
}

for (const table of document.querySelectorAll("table[data-sortable]")) {
  const heads = [...table.tHead.querySelectorAll("th[data-sort]")];
  // Columns in the order of the cells: heads that span both rows and those below a group.
  const lower = table.tHead.rows.length > 1 ? [...table.tHead.rows[1].cells] : [];
  const ordered = [];
  for (const cell of table.tHead.rows[0].cells) {
    if (cell.colSpan > 1 || cell.classList.contains("group")) {
      ordered.push(...lower.splice(0, cell.colSpan));
    } else {
      ordered.push(cell);
    }
  }
  for (const head of heads) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    if (head.dataset.name) button.setAttribute("aria-label", head.dataset.name);
    head.append(button);
    button.addEventListener("click", () => sort(table, head, ordered.indexOf(head)));
  }
}

// The explorer: two systems' columns and the rows where they differ.
function explore(section) {
  const table = document.getElementById(section.dataset.explorer);
  const form = section.querySelector(".filters");
  const pick = (name) => form.querySelector(`[data-${name}]`).value;
  const sheet = document.createElement("style");
  document.head.append(sheet);
  const fixed = 2;
  const rows = [...table.tBodies[0].rows].map((row) => ({
    row,
    values: [...row.cells].slice(fixed).map((cell) => cell.dataset.value),
    text: row.textContent.toLowerCase(),
  }));

  function show(first, second, side) {
    if (side === "all") return true;
    if (first === undefined || second === undefined) return false;
    const gap = Number(first) - Number(second);
    return side === "differ" ? gap !== 0 : side === "first" ? gap > 0 : gap < 0;
  }

  function update() {
    const [first, second] = [Number(pick("first")), Number(pick("second"))];
    const [side, category] = [pick("side"), pick("category")];
    const words = pick("words").toLowerCase().split(/\s+/).filter(Boolean);
    let [better, worse, shown] = [0, 0, 0];
    for (const { row, values, text } of rows) {
      const seen = show(values[first], values[second], side)
        && (!category || row.dataset.category === category)
        && words.every((word) => text.includes(word));
      row.hidden = !seen;
      if (!seen) continue;
      shown += 1;
      better += Number(values[first]) > Number(values[second]);
      worse += Number(values[first]) < Number(values[second]);
    }
    const id = `#${CSS.escape(table.id)}`;
    const others = [...table.tHead.rows[0].cells].map((_, place) => place - fixed)
      .filter((place) => place >= 0 && place !== first && place !== second);
    sheet.textContent = side === "all" ? "" : others
      .map((place) => `${id} tr > :nth-child(${place + fixed + 1}) { display: none; }`)
      .join("\n");
    const [one, two] = ["first", "second"]
      .map((name) => form.querySelector(`[data-${name}]`).selectedOptions[0].text);
    section.querySelector("[data-count]").textContent =
      `${shown} of ${rows.length} questions: ${one} better on ${better}, ${two} on ${worse}.`;
  }

  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  update();
}

document.querySelectorAll("[data-explorer]").forEach(explore);
