// The charts above the list: the turn under the pointer, and the decay of the opened one.
function setUpOverview(data) {
  const figure = document.getElementById("overview");
  if (!figure) return () => {};
  const plots = [...figure.querySelectorAll(".plot")];
  const [first, last] = [Number(figure.dataset.first), Number(figure.dataset.last)];
  const readout = figure.querySelector(".readout");
  const byId = new Map(data.turns.map((row) => [row.id, row]));
  const lines = plots.map((plot) => plot.appendChild(el("span", { class: "cursor", hidden: true })));
  const curve = plots[0].querySelector("svg")
    .appendChild(svg("path", { class: "chosen", "vector-effect": "non-scaling-stroke" }));

  function under(event) {
    const box = plots[0].getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    return Math.min(Math.max(first + Math.floor(share * (last - first + 1)), first), last);
  }

  function point(id) {
    const place = (id - first + 0.5) / (last - first + 1) * 100;
    for (const cursor of lines) { cursor.hidden = false; cursor.style.left = `${place}%`; }
    const row = byId.get(id);
    const omega = row?.omega === undefined ? "not there" : `Ω ${fixed(row.omega)}, ${data.words[row.fate]}`;
    const tokens = data.series.tokens[id - data.series.first];
    readout.textContent = `turn ${id}: ${omega}; ${tokens.toLocaleString("en")} tokens active`;
  }

  for (const plot of plots) {
    plot.addEventListener("pointermove", (event) => point(under(event)));
    plot.addEventListener("click", (event) => { location.hash = `#turn-${under(event)}`; });
    plot.addEventListener("pointerleave", () => {
      for (const cursor of lines) cursor.hidden = true;
      readout.textContent = "";
    });
  }

  return (row) => {
    if (row.omega === undefined || row.fate === "skip") return curve.removeAttribute("d");
    const end = row.left_at ?? data.newest;
    const x = (newer) => (row.id + newer - first + 0.5) / (last - first + 1) * 1000;
    return curve.setAttribute("d", line(row, 0, Math.max(end - row.id, 0.5), x, (value) => 100 - value * 100));
  };
}
