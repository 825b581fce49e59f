// Enhances a page that is complete without it: copy buttons and sortable tables.
"use strict";

function copyBySelection(text) {
  const focused = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "hidden";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  focused?.focus();
  if (!done) throw new Error("copying was refused");
}

// Browsers differ in whether a page opened from disk may use the clipboard; the older way works where it may not.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyBySelection(text);
  }
}

function copyButton(label, text) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", () => {
    copyText(text).then(
      () => { button.textContent = "Copied"; },
      () => { button.textContent = "Select it by hand"; },
    ).finally(() => setTimeout(() => { button.textContent = label; }, 1600));
  });
  return button;
}

for (const place of document.querySelectorAll(".actions")) {
  const { new: added, diff, command } = place.dataset;
  if (added) {
    place.append(copyButton(added.includes("\n") ? "Copy new lines" : "Copy new line", added));
  }
  if (diff) {
    place.append(copyButton("Copy patch", diff));
  }
  if (command) {
    place.append(copyButton("Copy command", command));
  }
}

function sortRows(table, column, ascending) {
  const body = table.tBodies[0];
  const value = (row) => row.cells[column].textContent.trim();
  const rows = Array.from(body.rows);
  rows.sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    const [x, y] = [Number.parseFloat(a), Number.parseFloat(b)];
    const order = Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
    return ascending ? order : -order;
  });
  body.append(...rows);
}

for (const table of document.querySelectorAll("table[data-sortable]")) {
  const headers = Array.from(table.tHead.rows[0].cells);
  headers.forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.textContent = header.textContent;
    header.replaceChildren(button);
    button.addEventListener("click", () => {
      const ascending = header.getAttribute("aria-sort") !== "ascending";
      for (const other of headers) other.removeAttribute("aria-sort");
      header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      sortRows(table, column, ascending);
    });
  });
}

// A link to a fix that is folded opens what it is folded into; printing opens everything.
function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = target; at; at = at.parentElement) {
    if (at instanceof HTMLDetailsElement) at.open = true;
  }
  if (target) target.scrollIntoView();
}
window.addEventListener("hashchange", reveal);
if (location.hash) reveal();
window.addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
