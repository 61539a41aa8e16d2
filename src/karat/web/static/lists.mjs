// Lists by keyboard: arrows move between rows, / moves to the search; one box selects all rows.

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const row = event.target.closest("table[data-list] tbody tr");
  const search = document.querySelector("form.filters input[type=search]");
  if (event.key === "/" && row && search) {
    event.preventDefault();
    search.focus();
    search.select();
    return;
  }
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!row || step === undefined) return;
  const rows = [...row.parentElement.rows];
  const place = [...row.querySelectorAll("a, input")].indexOf(event.target);
  const next = rows[rows.indexOf(row) + step];
  const there = next && [...next.querySelectorAll("a, input")];
  if (!there || !there.length) return;
  event.preventDefault();
  (there[place] ?? there[0]).focus();
});

for (const table of document.querySelectorAll("table[data-list]")) {
  const boxes = [...table.querySelectorAll("td.pick input")];
  if (boxes.length < 2) continue;
  const all = document.createElement("input");
  all.type = "checkbox";
  const label = document.createElement("label");
  label.className = "every";
  label.append(all, " All rows on this page");
  const tell = () => {
    const chosen = boxes.filter((box) => box.checked).length;
    all.checked = chosen === boxes.length;
    all.indeterminate = chosen > 0 && chosen < boxes.length;
  };
  all.addEventListener("change", () => boxes.forEach((box) => (box.checked = all.checked)));
  boxes.forEach((box) => box.addEventListener("change", tell));
  table.parentElement.before(label);
  tell();
}

document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
