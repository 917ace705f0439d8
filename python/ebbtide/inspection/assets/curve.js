// The decay of one turn: Ω_eff over newer turns, between the tiers' bounds.
const FRAME = { height: 190, left: 34, right: 10, top: 10, bottom: 24 };

function effective(row, newer) {
  return row.omega * Math.exp(-row.rate * newer);
}

function tierOf(value, settings) {
  if (value > settings.healthy_min) return "healthy";
  return value <= settings.critical_max ? "critical" : "unstable";
}

// Newer turns until the floor: how far a curve is worth drawing.
function reach(row, settings) {
  if (row.rate <= 0 || settings.floor <= 0) return null;
  return Math.max(Math.ceil(Math.log(row.omega / settings.floor) / row.rate), 1);
}

// Newer turns at which the curve passes into the next tier, within its length.
function crossings(row, settings, end) {
  const bounds = [settings.healthy_min, settings.critical_max];
  const at = bounds
    .filter((bound) => row.omega > bound && row.rate > 0)
    .map((bound) => Math.log(row.omega / bound) / row.rate);
  return [0, ...at.filter((place) => place < end), end];
}

function line(row, from, to, x, y) {
  const steps = 12;
  const points = [];
  for (let step = 0; step <= steps; step += 1) {
    const newer = from + (to - from) * step / steps;
    points.push(`${x(newer).toFixed(1)} ${y(effective(row, newer)).toFixed(1)}`);
  }
  return `M${points.join("L")}`;
}

function curveChart(row, settings, newest, width) {
  const gone = row.left_at !== null && row.left_at !== undefined;
  const lived = Math.max((gone ? row.left_at : newest) - row.id, 0);
  const wide = Math.max(lived, reach(row, settings) ?? lived, 10);
  const { height, left, right, top, bottom } = FRAME;
  const x = (newer) => left + newer / wide * (width - left - right);
  const y = (value) => top + (1 - value) * (height - top - bottom);
  const marks = [1, settings.healthy_min, settings.critical_max, settings.floor]
    .flatMap((value) => level(value, x(0), x(wide), y(value)));
  const parts = crossings(row, settings, lived).flatMap((from, place, all) => {
    if (place === all.length - 1) return [];
    const to = all[place + 1];
    const tier = tierOf(effective(row, (from + to) / 2), settings);
    return [svg("path", { class: `curve ${tier}`, d: line(row, from, to, x, y) })];
  });
  const ahead = svg("path", { class: "ahead", d: line(row, lived, wide, x, y) });
  const end = svg("circle", {
    class: gone ? "end" : `now ${row.fate}`, cx: x(lived), cy: y(effective(row, lived)), r: 5,
  });
  return el("figure", { class: "decay" },
    el("figcaption", null, "Effective score over newer turns"),
    svg("svg", {
      viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": curveWords(row, settings, lived, gone),
    }, ...marks, ahead, ...parts, end, ...ticks(wide, x, height - 6)));
}

function level(value, start, end, y) {
  return [
    svg("path", { class: "rule", d: `M${start} ${y}H${end}` }),
    svg("text", { x: start - 6, y: y + 3.5, "text-anchor": "end" }, String(value)),
  ];
}

function ticks(wide, x, y) {
  const step = [5, 10, 20, 25, 50, 100, 250, 500, 1000].find((size) => wide / size <= 6) ?? 5000;
  const labels = [];
  for (let at = 0; at <= wide; at += step) {
    labels.push(svg("text", { x: x(at), y, "text-anchor": at ? "middle" : "start" }, `${at}`));
  }
  return labels;
}

function curveWords(row, settings, lived, gone) {
  const passed = crossings(row, settings, lived).slice(1, -1)
    .map((at) => `${tierOf(effective(row, at + 1e-6), settings)} after ${Math.ceil(at)}`);
  const ways = passed.length ? `, ${passed.join(", ")}` : "";
  const end = gone ? `archived after ${lived} newer turns` : `${fixed(effective(row, lived))} now, after ${lived}`;
  return `Decay from ${fixed(row.omega)}${ways}; ${end}.`;
}
