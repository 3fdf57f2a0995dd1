"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg", ROW = 22;
const [lines, heads, where, button] = ["lines", "heads", "where", "unit"].map((id) => document.getElementById(id));
let unit = "tokens", layer = 0, head = 0, pointed = null;

function make(parent, tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return parent.appendChild(element);
}

function drawHead(canvas, values, size) {
  canvas.width = canvas.height = size;
  const context = canvas.getContext("2d"), image = context.createImageData(size, size);
  for (let i = 0; i < size * size; i++) image.data.set([11, 107, 176, values[i]], 4 * i);
  context.putImageData(image, 0, 0);
}

function drawHeads() {
  const { tokens, weights } = data[unit];
  heads.replaceChildren();
  weights.forEach((ofLayer, i) => {
    const row = heads.appendChild(document.createElement("div"));
    row.setAttribute("role", "row");
    ofLayer.forEach((values, j) => {
      const canvas = row.appendChild(document.createElement("canvas"));
      canvas.setAttribute("role", "gridcell");
      canvas.title = `layer ${i + 1}, head ${j + 1}`;
      canvas.setAttribute("aria-label", canvas.title);
      canvas.onclick = () => choose(i, j);
      drawHead(canvas, values, tokens.length);
    });
  });
}

function drawLines() {
  const { tokens, weights } = data[unit], size = tokens.length, values = weights[layer][head];
  const svg = document.createElementNS(SVG, "svg"), side = 130, width = 400;
  svg.setAttribute("viewBox", `0 0 ${width} ${size * ROW}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `attention of layer ${layer + 1}, head ${head + 1}`);
  const y = (i) => (i + 0.5) * ROW;
  for (let from = 0; from < size; from++) {
    for (let to = 0; to < size; to++) {
      const weight = values[from * size + to] / 255;
      const shown = pointed === null || (pointed.side === "from" ? pointed.index === from : pointed.index === to);
      if (!shown || weight < 0.02) continue;
      make(svg, "line", { x1: side, y1: y(from), x2: width - side, y2: y(to), class: "look", "stroke-opacity": weight });
    }
  }
  tokens.forEach((token, i) => {
    [["from", side - 6, "end"], ["to", width - side + 6, "start"]].forEach(([where, x, anchor]) => {
      const own = pointed !== null && pointed.side === where && pointed.index === i;
      const text = make(svg, "text", { x, y: y(i) + 4, "text-anchor": anchor, class: own ? "token own" : "token" }, token);
      text.onmouseenter = () => point({ side: where, index: i });
      text.onmouseleave = () => point(null);
      if (pointed !== null && pointed.side !== where) {
        const weight = pointed.side === "from" ? values[pointed.index * size + i] : values[i * size + pointed.index];
        if (weight >= 13) text.textContent += anchor === "end" ? "" : ` ${(weight / 255).toFixed(2)}`;
      }
    });
  });
  lines.replaceChildren(svg);
}

function point(where) {
  // Drawing makes new texts, and the one under the pointer is entered again.
  if (where && pointed && where.side === pointed.side && where.index === pointed.index) return;
  pointed = where;
  drawLines();
}

function choose(newLayer, newHead) {
  const { weights } = data[unit];
  layer = (newLayer + weights.length) % weights.length;
  head = (newHead + weights[0].length) % weights[0].length;
  where.textContent = `layer ${layer + 1}, head ${head + 1}`;
  heads.querySelectorAll("canvas").forEach((canvas, i) => {
    canvas.setAttribute("aria-selected", String(i === layer * weights[0].length + head));
  });
  drawLines();
}

function exchange() {
  unit = unit === "tokens" ? "words" : "tokens";
  button.setAttribute("aria-pressed", String(unit === "words"));
  pointed = null;
  drawHeads();
  choose(layer, head);
}

button.onclick = exchange;
document.onkeydown = (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  if (moves) {
    event.preventDefault();
    choose(layer + moves[0], head + moves[1]);
  } else if (event.key === "w" || event.key === "W") exchange();
};
drawHeads();
choose(0, 0);
