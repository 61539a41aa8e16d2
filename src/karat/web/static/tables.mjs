// Tables: rows by keyboard, one box for all rows, heads that stay in view; filters that act on change.
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

// The arrows move between rows.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const row = event.target.closest?.("table[data-list] tbody tr");
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

// A head stays in view: of the window if the table fits, of its own box if columns continue.
const fits = new ResizeObserver((boxes) => {
  for (const { target } of boxes) {
    const wide = target.scrollWidth > target.clientWidth + 1;
    if (!target.clientWidth || target.classList.contains(wide ? "continues" : "fits")) continue;
    target.classList.toggle("fits", !wide);
    target.classList.toggle("continues", wide);
    if (wide) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});
const watch = (root) => root.querySelectorAll(".scroll").forEach((box) => fits.observe(box));
watch(document);
new MutationObserver((changes) => {
  for (const change of changes)
    for (const node of change.addedNodes) if (node.nodeType === 1) watch(node);
}).observe(document.querySelector("main"), { childList: true, subtree: true });

// A choice acts at once; by the keyboard once it is left, for the arrows pass the others.
let typing = null;
document.addEventListener("keydown", (event) => {
  if (!event.target.matches?.(".filters select")) return;
  if (event.key === "Enter" && typing === event.target) event.target.form.requestSubmit();
  else if (event.key !== "Tab" && !/^(Control|Shift|Alt|Meta)/.test(event.key)) typing = event.target;
});
document.addEventListener("pointerdown", () => (typing = null));
const act = ({ target }) => {
  if (!target.matches?.(":is(.filters:has(.go), .filters[data-acts]) select")) return;
  if (target.value === (target.querySelector("[selected]") ?? target.options[0]).value) return;
  target.form.requestSubmit();
};
document.addEventListener("change", (event) => event.target !== typing && act(event));
document.addEventListener("focusout", (event) => event.target === typing && act(event));
