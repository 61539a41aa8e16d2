// Buttons that copy: a field, the address of the page, a table as Markdown.
// The browser knows the address of this server, even if the server does not.
for (const note of document.querySelectorAll("[data-part]")) {
  const field = document.getElementById(note.dataset.part);
  field.value = new URL(field.value, location.href).href;
  note.hidden = true;
}

const cell = (one) => {
  const held = one.cloneNode(true);
  for (const gone of held.querySelectorAll(".hidden, svg")) gone.remove();
  return held.textContent.trim().replace(/\s+/g, " ").replaceAll("|", "\\|");
};
function markdown(table) {
  const kept = (row) => [...row.cells].filter((one) => !one.matches(".pick, .draw"));
  const rows = [...table.rows].map((row) => `| ${kept(row).map(cell).join(" | ")} |`);
  const rule = kept(table.rows[0]).map((one) => (one.matches(".text") ? "---" : "---:"));
  rows.splice(1, 0, `| ${rule.join(" | ")} |`);
  return `${rows.join("\n")}\n`;
}
async function copy(text, field) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Browsers have no clipboard API over plain HTTP.
    const box = field ?? document.body.appendChild(document.createElement("textarea"));
    box.value = text;
    box.select();
    document.execCommand("copy");
    if (!field) box.remove();
  }
}

const tables = new WeakMap();
for (const box of document.querySelectorAll(".scroll:has(> table thead)")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "plain small to-markdown";
  button.textContent = "Copy as Markdown";
  button.dataset.markdown = "";
  tables.set(button, box.firstElementChild);
  const before = box.previousElementSibling;
  const count = before?.matches(".every") ? before.previousElementSibling : before;
  if (count?.matches(".count")) count.querySelector(".ways").append(" · ", button);
  else box.after(button);
}
for (const button of document.querySelectorAll("[data-copy], [data-share]")) button.hidden = false;
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("button:is([data-copy], [data-share], [data-markdown])");
  if (!button) return;
  if ("markdown" in button.dataset) await copy(markdown(tables.get(button)));
  else if ("share" in button.dataset) await copy(location.href);
  else {
    const field = document.getElementById(button.dataset.copy);
    await copy(field.value, field);
  }
  const words = (button.dataset.words ??= button.textContent);
  button.textContent = "copy" in button.dataset || "markdown" in button.dataset ? "Copied" : "Link copied";
  setTimeout(() => (button.textContent = words), 2000);
});
