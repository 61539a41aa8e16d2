// Interaction: follow a chart to its queries, filter and sort their list, and sort tables; charts.mjs
// comes first. Everything can be read without this script.
const at = (id) => document.getElementById(id);
const list = at("query-list"), tools = at("query-tools");
const views = at("query-view"), orders = at("query-order"), slices = at("query-slice");
const narrow = matchMedia("(max-width: 44rem)");

// The list of queries.
const state = { way: "" };
const held = list ? [...list.children].map((item) => ({
  item,
  numbers: [...item.querySelectorAll(".change")],
  words: item.querySelector(".what").parentElement.textContent.toLowerCase(),
  within: (item.dataset.in ?? "").split(" "),
})) : [];

function show() {
  const view = views.selectedIndex;
  const sign = views.options[view].hasAttribute("data-lower") ? -1 : 1;
  const wanted = at("query-words").value.trim().toLowerCase();
  let shown = 0;
  for (const one of held) {
    one.numbers.forEach((number, place) => { number.hidden = place !== view; });
    const key = one.numbers[view].dataset.key;
    one.key = key === "" ? NaN : sign * Number(key);
    const fits = state.way === "failed" ? "failed" in one.item.dataset
      : !state.way || (state.way === "same" ? one.key === 0
        : state.way === "better" ? one.key > 0 : one.key < 0);
    one.item.hidden = !(fits && one.words.includes(wanted)
      && (!slices?.value || one.within.includes(slices.value)));
    shown += !one.item.hidden;
  }
  const by = { size: (a, b) => Math.abs(b.key) - Math.abs(a.key),
    worse: (a, b) => a.key - b.key, better: (a, b) => b.key - a.key }[orders.value];
  // Queries without a number come last in every order.
  list.append(...[...held].sort((a, b) =>
    Number.isNaN(a.key) - Number.isNaN(b.key) || by(a, b) || 0).map((one) => one.item));
  at("query-count").textContent = `${shown} of ${held.length} shown`;
}

function press(way) {
  state.way = way;
  for (const button of tools.querySelectorAll("[data-way]")) {
    button.setAttribute("aria-pressed", String(button.dataset.way === way));
  }
}

// Links lead to a query, to the queries of a measure, or to those of a slice.
let wanted = "";
function follow() {
  hide();
  const id = decodeURIComponent(location.hash.slice(1));
  let target = at(id);
  if (!target) return;
  if (list && /^(by|in)-/.test(id)) {
    press("");
    at("query-words").value = "";
    if (slices) slices.value = id.startsWith("in-") ? id : "";
    const view = id.startsWith("by-") ? id : wanted || views.value;
    views.value = view;
    wanted = "";
    show();
    target = tools;
    (id.startsWith("by-") ? views : slices).focus({ preventScroll: true });
  } else if (target.closest("#query-list")) {
    const item = target.closest("li");
    if (item.hidden) {
      press("");
      at("query-words").value = "";
      if (slices) slices.value = "";
      show();
    }
    const fold = item.querySelector("details");
    if (fold) fold.open = true;
    (fold ? fold.firstElementChild : item).focus({ preventScroll: true });
  } else {
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) {
      fold.open = true;
    }
  }
  target.scrollIntoView();
}
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  if (!link) return;
  wanted = link.dataset.view ?? "";
  // The same target again: no hashchange event would follow.
  if (link.hash === location.hash && !event.defaultPrevented) follow();
});

if (list) {
  for (const button of tools.querySelectorAll("[data-way]")) {
    button.addEventListener("click", () => { press(button.dataset.way); show(); });
  }
  at("query-words").addEventListener("input", show);
  for (const chosen of [views, orders, slices]) chosen?.addEventListener("change", show);
  const all = at("query-all");
  all.addEventListener("click", () => {
    const opened = all.getAttribute("aria-pressed") !== "true";
    all.setAttribute("aria-pressed", String(opened));
    all.textContent = opened ? "Close all" : "Open all";
    for (const { item } of held) {
      const fold = item.querySelector("details");
      if (fold && !item.hidden) fold.open = opened;
    }
  });
  tools.hidden = false;
  at("query-count").textContent = `${held.length} of ${held.length} shown`;
}

// Tables: a heading sorts the rows by its column; cells without a number come last.
for (const table of document.querySelectorAll("table.sorts")) {
  const body = table.tBodies[0];
  if (body.rows.length < 3) continue;
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    if (body.rows[0].cells[column]?.classList.contains("why")) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const key = (row) => {
        const cell = row.cells[column];
        const text = (cell.dataset.key ?? cell.textContent).trim();
        const number = Number.parseFloat(text.replace("−", "-").replaceAll(",", "").replace(/^</, ""));
        return Number.isNaN(number) || head.classList.contains("text") ? text : number;
      };
      const lacks = (value) => value === "" || value === "–";
      const rows = [...body.rows].map((row) => [key(row), row]).sort(([a], [b]) => {
        if (lacks(a) || lacks(b)) return lacks(a) - lacks(b);
        const order = typeof a === "number" && typeof b === "number" ? a - b
          : String(a).localeCompare(String(b), undefined, { numeric: true });
        return down ? -order : order;
      });
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...rows.map(([, row]) => row));
    });
  });
}
function fit() {
  for (const button of document.querySelectorAll(".cards .sort")) button.disabled = narrow.matches;
  for (const box of document.querySelectorAll(".scroll")) {
    if (!box.clientWidth) continue; // closed: no size yet
    box.toggleAttribute("tabindex", false);
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
}
narrow.addEventListener("change", fit);
document.addEventListener("toggle", fit, true);

// Printing: open all measures; queries only if the reader opened them.
const opened = [];
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details[data-paper]:not([open])")) {
    fold.open = true;
    opened.push(fold);
  }
});
addEventListener("afterprint", () => { for (const fold of opened.splice(0)) fold.open = false; });

fit();
addEventListener("hashchange", follow);
follow();
