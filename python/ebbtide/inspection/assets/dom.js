"use strict";

// Elements made of text, never of markup: what a turn says stays text.
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? "" : value);
    }
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

function el(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function words(name) {
  return String(name).replaceAll("_", " ");
}

function fixed(value, digits = 2) {
  return value === null || value === undefined ? "–" : value.toFixed(digits).replace("-", "−");
}

function signed(value) {
  return (value >= 0 ? "+" : "") + fixed(value);
}

function turnLink(id, label) {
  return el("a", { href: `#turn-${id}` }, label ?? `turn ${id}`);
}

// A dl of pairs; pairs without a value are left out.
function pairs(entries) {
  const shown = entries.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return el("dl", { class: "pairs" }, shown.flatMap(([name, value]) => [
    el("dt", null, name), el("dd", null, value),
  ]));
}
