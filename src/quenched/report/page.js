"use strict";
// Tables that sort and search, figures that enlarge, a choice of light or dark. Without this script the page is complete but still.

const BATCH = 200; // rows shown at a time

function numberIn(text) {
  const found = parseFloat(text.replace("−", "-").replace(/\s/g, ""));
  return Number.isNaN(found) ? null : found;
}

function compare(a, b) {
  const x = numberIn(a), y = numberIn(b);
  if (x !== null && y !== null) return x - y;
  if (x !== null || y !== null) return x !== null ? -1 : 1; // numbers before words
  return a.localeCompare(b, undefined, { numeric: true });
}

function rowsOf(holder, table) {
  const kept = holder.querySelector("script.rows");
  if (kept) return JSON.parse(kept.textContent).map((cells) => ({ cells, element: null }));
  return [...table.tBodies[0].rows].map((row) => ({ cells: [...row.cells].map((c) => c.textContent), element: row }));
}

function elementOf(row, kinds) {
  if (row.element) return row.element;
  row.element = document.createElement("tr");
  row.cells.forEach((text, place) => {
    const cell = row.element.insertCell();
    cell.textContent = text;
    cell.className = kinds[place];
  });
  return row.element;
}

function enliven(holder) {
  const table = holder.querySelector("table");
  const heads = [...table.tHead.rows[0].cells];
  const kinds = heads.map((head) => head.className);
  const all = rowsOf(holder, table);
  const search = holder.querySelector("input.search");
  const count = holder.querySelector(".count");
  const more = holder.querySelector("button.more");
  let found = all, shown = BATCH;

  function show() {
    table.tBodies[0].replaceChildren(...found.slice(0, shown).map((row) => elementOf(row, kinds)));
    const visible = Math.min(shown, found.length);
    if (count) count.textContent = visible === all.length ? `${all.length} rows` : `${visible} of ${found.length} rows` + (found.length < all.length ? ` (of ${all.length})` : "");
    if (more) more.hidden = found.length <= shown;
  }

  heads.forEach((head, place) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      all.sort((a, b) => (down ? -1 : 1) * compare(a.cells[place], b.cells[place]));
      filter();
    });
  });

  function filter() {
    const words = search ? search.value.toLowerCase().split(/\s+/).filter(Boolean) : [];
    found = words.length ? all.filter((row) => words.every((word) => row.cells.some((cell) => cell.toLowerCase().includes(word)))) : all;
    shown = BATCH;
    show();
  }

  if (search) search.addEventListener("input", filter);
  if (more) more.addEventListener("click", () => { shown += BATCH; show(); });
  holder.querySelectorAll(".tools").forEach((tools) => { tools.hidden = false; });
  if (count) show();
}

document.querySelectorAll(".table").forEach(enliven);

const dialog = document.querySelector("dialog");
document.querySelectorAll("figure button.enlarge").forEach((button) => {
  button.addEventListener("click", () => {
    const image = button.querySelector("img").cloneNode();
    const frame = dialog.querySelector("figure");
    frame.className = button.closest("figure").className;
    frame.replaceChildren(image);
    dialog.showModal();
  });
});
dialog.addEventListener("click", () => dialog.close());

const theme = document.querySelector("button.theme");
theme.hidden = false;
theme.addEventListener("click", () => {
  const dark = getComputedStyle(document.documentElement).getPropertyValue("--dark").trim() === "1";
  document.documentElement.dataset.theme = dark ? "light" : "dark";
});
