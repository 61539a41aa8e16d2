// Grades in place by the keys of the grades, and moving among the documents; the same form works without this script.
const form = document.getElementById("playground");
const rows = () => [...document.querySelectorAll("#answers li[data-doc]")];
const say = (words) => (document.getElementById("said").textContent = words);
let busy = false;

form?.addEventListener("change", (event) => {
  if (event.target.matches("[data-chooses]")) form.requestSubmit();
});

// Record or undo a grade, ask again, and go on to the next document without a grade.
form?.addEventListener("submit", async (event) => {
  const button = event.submitter;
  if (!button?.matches("[name=grade], [name=undo]")) return;
  event.preventDefault();
  if (busy) return;
  busy = true;
  const answers = document.getElementById("answers");
  answers.dataset.busy = "";
  const section = button.closest("section").getAttribute("aria-label");
  const doc = button.closest("li").dataset.doc;
  const words = button.name === "undo" ? `Grade of ${doc} undone.` : `Grade ${button.firstChild.textContent} recorded for ${doc}.`;
  try {
    const reply = await fetch(form.action, { method: "POST", body: new FormData(form, button) });
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    const found = page.getElementById("answers");
    const why = page.querySelector("main .wrong[role=alert] p, main .wrong p");
    if (!reply.ok || !found) throw new Error(why?.textContent.trim() || "The request failed; reload the page.");
    answers.replaceWith(found);
    say(words);
    const own = rows().filter((row) => row.closest("section").getAttribute("aria-label") === section);
    const now = own.findIndex((row) => row.dataset.doc === doc);
    const next = own.slice(now + 1).find((row) => row.querySelector("[name=grade]")) ?? own[now];
    next?.focus();
  } catch (error) {
    delete answers.dataset.busy;
    say(error.message);
  }
  busy = false;
});

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest("textarea, select, input, dialog")) return;
  const row = event.target.closest("li[data-doc]");
  const all = rows();
  if (event.key === "/") form.elements.q.select();
  else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const at = row ? all.indexOf(row) + (event.key === "ArrowDown" ? 1 : -1) : 0;
    if (!all[at]) return;
    all[at].focus();
  } else {
    const button = row?.querySelector(`button[data-key="${CSS.escape(event.key)}"]`);
    if (button) button.click();
    else if (row && /^[0-9]$/.test(event.key)) say("This document has a grade: another rater's is changed in the queue, your own can be undone.");
    else return;
  }
  event.preventDefault();
});
(rows().find((row) => row.querySelector("[name=grade]")) ?? rows()[0])?.focus({ preventScroll: true });
