// Keys: Ctrl-K or ⌘K searches everything, "?" lists the keys of the page.
const base = document.querySelector("meta[name=base]").content;
const find = (selector) => document.querySelector(selector);
const KEYS = [
  ["j", "next page or query", "a[rel=next]"],
  ["k", "previous page or query", "a[rel=prev]"],
  ["n", "next document without a grade", "a[data-next]"],
  ["u", "undo your grade", "#drawer button[name=undo]"],
  ["Escape", "close the document", "#drawer a.close"],
];
const GRADES = "#drawer button[data-key]";
const dialog = (label, ...parts) => {
  const made = document.createElement("dialog");
  made.setAttribute("aria-label", label);
  made.append(...parts);
  made.addEventListener("click", (event) => event.target === made && made.close());
  return document.body.appendChild(made);
};
const element = (tag, fields = {}, ...parts) => {
  const made = Object.assign(document.createElement(tag), fields);
  made.append(...parts);
  return made;
};

// The palette: what the page /search finds, while one types.
let palette = null;
function build() {
  const field = element("input", { type: "search", placeholder: "Golden set, run, comparison, query or page", autocomplete: "off", ariaLabel: "Search everything" });
  const list = element("div", { id: "found" });
  const none = element("p", { className: "quiet", hidden: true }, "Nothing found.");
  none.setAttribute("role", "status");
  for (const [name, value] of [["role", "combobox"], ["aria-controls", "found"], ["aria-expanded", "true"], ["aria-autocomplete", "list"]]) field.setAttribute(name, value);
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Found");
  palette = { box: dialog("Search", field, list, none), field, list };
  palette.box.id = "palette";
  let asked = new AbortController(), answered = null;
  const look = async () => {
    asked.abort();
    const { signal } = (asked = new AbortController());
    const golden = find(".judging-link")?.dataset.golden ?? "";
    const ask = new URLSearchParams({ q: field.value, golden, format: "json" });
    const answer = await fetch(`${base}/search?${ask}`, { signal }).catch(() => null);
    if (!answer?.ok) return;
    const { hits } = await answer.json();
    list.replaceChildren(...hits.map((hit, place) => {
      const link = element("a", { id: `found-${place}`, href: base + hit.where, tabIndex: -1 }, element("bdi", {}, hit.name), " ", element("span", { className: "quiet small" }, hit.kind));
      link.setAttribute("role", "option");
      return link;
    }));
    none.hidden = hits.length > 0;
    select(0);
  };
  const options = () => [...list.querySelectorAll("[role=option]")];
  const select = (place) => {
    const all = options();
    all.forEach((item, at) => item.setAttribute("aria-selected", String(at === place)));
    if (all[place]) field.setAttribute("aria-activedescendant", all[place].id);
    else field.removeAttribute("aria-activedescendant");
    all[place]?.scrollIntoView({ block: "nearest" });
  };
  const show = () => (answered = look());
  field.addEventListener("input", show);
  field.addEventListener("keydown", (event) => {
    const all = options();
    const now = all.findIndex((item) => item.getAttribute("aria-selected") === "true");
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && all.length) select((now + step + all.length) % all.length);
    else if (event.key === "Enter") answered.then(() => list.querySelector("[aria-selected=true]")?.click());
    else return;
    event.preventDefault();
  });
  return show;
}
let refresh = null;
function search() {
  refresh ??= build();
  palette.box.showModal();
  palette.field.select();
  refresh();
}
const opener = find("a.find");
if (opener) {
  opener.append(element("kbd", {}, /Mac|iP/.test(navigator.platform) ? "⌘K" : "Ctrl K"));
  opener.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    search();
  });
}

let help = null;
function keys() {
  const own = KEYS.filter(([key, , where]) => key.length === 1 && find(where)).map(([key, words]) => [key, words]);
  if (find("form.filters input[type=search]")) own.push(["/", "search the list"]);
  if (find("table[data-list]")) own.push(["↑ ↓", "the row above or below, from a link in a row"]);
  if (find("#rankings a.opens")) own.push(["↑ ↓", "the document above or below, from a document"], ["Enter", "open the document"]);
  const grades = [...document.querySelectorAll(GRADES)].map((button) => button.dataset.key);
  if (grades.length) own.push([`${grades[0]} – ${grades.at(-1)}`, "grade the open document"]);
  if (find("figure svg .mark")) own.push(["← →", "the next point, from a chart"]);
  if (opener) own.push(["Ctrl K or ⌘K", "search everything"]);
  own.push(["?", "this list"], ["Esc", find("#drawer a.close") ? "close the document" : "close"]);
  const rows = own.flatMap(([key, words]) => [element("dt", {}, element("kbd", {}, key)), element("dd", {}, words)]);
  help?.remove();
  help = dialog("Keys", element("h2", {}, "Keys"), element("dl", { className: "keys" }, ...rows), element("button", { onclick: () => help.close() }, "Close"));
  help.showModal();
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.repeat || event.isComposing) return;
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k" && opener) {
    event.preventDefault();
    palette?.box.open ? palette.box.close() : search();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || find("dialog[open]")) return;
  if (event.target.closest("textarea, select, input:not([type=checkbox], [type=radio])")) return;
  const field = find("form.filters input[type=search]");
  if (event.key === "?") keys();
  else if (event.key === "/" && field) field.select();
  else {
    const link = find(KEYS.find(([key]) => key === event.key)?.[2] ?? `${GRADES}[data-key="${CSS.escape(event.key)}"]`);
    if (!link) return;
    link.click();
  }
  event.preventDefault();
});
