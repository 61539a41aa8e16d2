// What a reader may do beside reading: open a query that a link leads to, and narrow the list.
const list = document.getElementById("query-list");

function open() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) {
    fold.open = true;
  }
  if (target.matches("li")) {
    target.hidden = false;
    const fold = target.querySelector("details");
    if (fold) fold.open = true;
  }
  target.scrollIntoView();
}
addEventListener("hashchange", open);
open();

const tools = document.getElementById("query-tools");
if (list && tools) {
  const said = document.getElementById("query-count");
  const words = document.getElementById("query-words");
  const ways = [...tools.querySelectorAll("[data-way]")];
  let way = "";
  const narrow = () => {
    const wanted = words.value.trim().toLowerCase();
    let shown = 0;
    for (const item of list.children) {
      const fits = (!way || item.dataset.way === way)
        && (!wanted || item.querySelector("summary").textContent.toLowerCase().includes(wanted));
      item.hidden = !fits;
      shown += fits;
    }
    said.textContent = `${shown} of ${list.children.length} shown`;
  };
  for (const button of ways) {
    button.addEventListener("click", () => {
      way = button.dataset.way;
      for (const other of ways) other.setAttribute("aria-pressed", String(other === button));
      narrow();
    });
  }
  words.addEventListener("input", narrow);
  const all = document.getElementById("query-all");
  all.addEventListener("click", () => {
    const opened = all.getAttribute("aria-pressed") !== "true";
    all.setAttribute("aria-pressed", String(opened));
    all.textContent = opened ? "Close all" : "Open all";
    for (const item of list.children) {
      if (!item.hidden) item.querySelector("details").open = opened;
    }
  });
  tools.hidden = false;
  narrow();
}
