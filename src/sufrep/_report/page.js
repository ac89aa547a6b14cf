"use strict";
// Colours are variables of the style sheet, so charts need no redrawing when the theme changes or for print.
const TEXT = "var(--text)", MUTED = "var(--muted)", LINE = "var(--line)";
// Vega measures labels outside the page, where the font is not inherited.
const FONT = getComputedStyle(document.body).fontFamily;
const SERIES = [1, 2, 3, 4, 5, 6, 7, 8].map((number) => `var(--series-${number})`);

function chartConfig(width) {
  return {
    background: null,
    font: FONT,
    // One description of the picture is enough; a screen reader would read out every mark.
    aria: false,
    view: { stroke: null },
    range: { category: SERIES },
    mark: { color: SERIES[0] },
    text: { color: TEXT, font: FONT },
    style: { ring: { color: TEXT, filled: false, opacity: 1 } },
    axis: {
      labelColor: TEXT, titleColor: MUTED, gridColor: LINE, domainColor: LINE, tickColor: LINE,
      labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", titlePadding: 10,
      labelFont: FONT, titleFont: FONT, labelLimit: Math.min(220, Math.round(width * 0.4)),
    },
    legend: {
      labelColor: TEXT, titleColor: MUTED, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal",
      labelFont: FONT, titleFont: FONT, titleLimit: Math.round(width * 0.4), offset: 14,
      columns: width < 500 ? 2 : 0,
    },
  };
}

// For screen readers.
function announce(text) {
  document.getElementById("announcement").textContent = text;
}

async function drawChart(figure) {
  const target = figure.querySelector(".chart");
  const specification = JSON.parse(figure.querySelector("script").textContent);
  const result = await window.vegaEmbed(target, specification, {
    mode: "vega-lite",
    actions: false,
    renderer: "svg",
    // Interpret expressions instead of compiling them: the content policy does not allow eval.
    ast: true,
    defaultStyle: false,
    tooltip: { disableDefaultStyle: true, theme: "page", maxDepth: 1 },
    config: chartConfig(target.clientWidth),
  });
  target.dataset.drawn = "yes";
  const box = figure.querySelector("input[type=search]");
  if (box) bindSearch(figure, box, result.view, specification.data.values);
}

function bindSearch(figure, box, view, rows) {
  const count = figure.querySelector(".count");
  const names = rows.map((row) => String(row[box.dataset.field]));
  const lower = names.map((name) => name.toLowerCase());
  let waiting = 0;
  const search = async () => {
    const wanted = box.value.toLowerCase();
    await view.signal(box.dataset.parameter, box.value).runAsync();
    count.textContent = wanted ? describeMatches(names.filter((_, i) => lower[i].includes(wanted)), names.length) : "";
  };
  // Search when the reader stops typing, not for every letter.
  box.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, 150);
  });
  box.disabled = false;
}

function describeMatches(matches, total) {
  const shown = matches.slice(0, 5).map((name) => (name.length > 40 ? name.slice(0, 39) + "…" : name));
  const more = matches.length > shown.length ? ", …" : "";
  const listed = matches.length ? `: ${shown.join(", ")}${more}` : "";
  return `${matches.length.toLocaleString("en")} of ${total.toLocaleString("en")} found${listed}`;
}

function bindTheme() {
  const button = document.getElementById("theme");
  const root = document.documentElement;
  const update = () => button.setAttribute("aria-pressed", String(root.dataset.theme === "dark"));
  button.addEventListener("click", () => {
    root.dataset.chosen = "yes";
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  });
  new MutationObserver(update).observe(root, { attributeFilter: ["data-theme"] });
  button.hidden = false;
  update();
}

async function copyCode(button) {
  const code = document.getElementById(button.dataset.copies);
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
    announce("Code copied.");
  } catch {
    // Some viewers do not allow it. Selected code can still be copied with the keyboard.
    window.getSelection().selectAllChildren(code);
    announce("Copying is not allowed here; the code is selected.");
  }
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

function compareCells(one, other) {
  const [a, b] = [one.dataset.value, other.dataset.value];
  if (a !== undefined && b !== undefined) return Number(a) - Number(b);
  return one.textContent.localeCompare(other.textContent, "en", { numeric: true });
}

function sortTable(header) {
  const table = header.closest("table");
  const body = table.tBodies[0];
  const ascending = header.getAttribute("aria-sort") !== "ascending";
  const cell = (row) => row.cells[header.cellIndex];
  const rows = [...body.rows];
  const known = rows.filter((row) => !cell(row).classList.contains("none"));
  known.sort((one, other) => compareCells(cell(one), cell(other)) * (ascending ? 1 : -1));
  // Missing values come last in either order.
  body.append(...known, ...rows.filter((row) => cell(row).classList.contains("none")));
  for (const other of header.parentElement.cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  announce(`Sorted by ${header.textContent}, ${ascending ? "smallest" : "largest"} first.`);
}

async function drawAll() {
  for (const figure of document.querySelectorAll("figure[data-chart]")) {
    try {
      await drawChart(figure);
    } catch (error) {
      figure.querySelector(".chart").textContent = "This chart could not be drawn.";
      console.error(error);
    }
    // Let the page respond to the reader between two charts.
    await new Promise((next) => setTimeout(next));
  }
  document.documentElement.dataset.drawn = "yes";
}

bindTheme();
for (const button of document.querySelectorAll("button[data-copies]")) {
  button.hidden = false;
  button.addEventListener("click", () => copyCode(button));
}
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => sortTable(button.closest("th")));
}
drawAll();
