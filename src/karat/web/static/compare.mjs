// Lists, documents and grades in place: the same addresses and forms as without a script, without a page load.
const said = (words) => {
  const place = document.querySelector("#said");
  if (place) place.textContent = words;
};

// Replace parts of the page by those of an answer; the first is returned.
const fresh = async (answer, ids, signal) => {
  const text = await answer.text();
  signal?.throwIfAborted();
  const page = new DOMParser().parseFromString(text, "text/html");
  const parts = [ids].flat().map((id) => [document, page].map((each) => each.getElementById(id)));
  if (!answer.ok || parts.flat().includes(null)) {
    const why = page.querySelector("main p");
    throw new Error(why ? why.textContent.trim() : "The request failed; reload the page.");
  }
  for (const [old, found] of parts) old.replaceWith(found);
  return parts[0][1];
};

// Open a document beside the rankings, close it, and grade it; of several requests, the last is shown.
let sent = new AbortController();
const opened = (doc) => [...document.querySelectorAll("#rankings a.opens")].find((each) => new URL(each.href).searchParams.get("doc") === doc);
const read = async (address, push = true) => {
  sent.abort();
  const { signal } = (sent = new AbortController());
  const before = new URLSearchParams(location.search).get("doc");
  try {
    await fresh(await fetch(address, { signal }), ["drawer", "rankings"], signal);
    if (push) history.pushState({ document: true }, "", address);
    const head = document.querySelector("#drawer h2");
    (head ?? opened(before))?.focus({ preventScroll: true });
  } catch (error) {
    if (error.name !== "AbortError") location.assign(address);
  }
};
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("#rankings a.opens, a[data-next], #drawer a.close");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button) return;
  event.preventDefault();
  read(link.href);
});
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("form[data-in-place]")) return;
  event.preventDefault();
  const held = new FormData(form, event.submitter);
  const busy = document.getElementById("rankings");
  busy.dataset.busy = "";
  sent.abort();  // only stops waiting for the answer: the grade is recorded
  const { signal } = (sent = new AbortController());
  try {
    await fresh(await fetch(form.action, { method: "POST", body: held }), ["drawer", "rankings"], signal);
    const what = held.has("undo") ? "Grade undone" : held.has("another") ? "In the queue" : `Grade ${held.get("grade")} recorded`;
    said(`${what} for ${held.get("doc_id")}.`);
    document.querySelector("#drawer a[data-next], #drawer h2")?.focus({ preventScroll: true });
  } catch (error) {
    if (error.name === "AbortError") return;
    delete busy.dataset.busy;
    said(error.message);
  }
});
// The arrows move between the documents of a ranking.
document.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const link = event.target.closest?.("#rankings a.opens");
  if (!step || !link || event.ctrlKey || event.metaKey || event.altKey) return;
  const all = [...link.closest("section").querySelectorAll("a.opens")];
  all[all.indexOf(link) + step]?.focus();
  event.preventDefault();
});

// Filter, sort and page the list of queries without reloading the page.
// Of several requests, the last is shown, whichever is answered first.
let asked = new AbortController();
const list = async (address, push) => {
  asked.abort();
  const { signal } = (asked = new AbortController());
  const answer = await fetch(address, { signal });
  const found = await fresh(answer, "queries", signal);
  if (push) history.pushState({ list: true }, "", address);
  found.focus({ preventScroll: true });
  if (found.getBoundingClientRect().top < 0) found.scrollIntoView();
};
const go = async (address, push = true) => {
  try {
    await list(address, push);
    return true;
  } catch (error) {
    if (error.name !== "AbortError") location.assign(address);
    return false;
  }
};

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("section#queries a[href^='?'], a[href^='?'][href$='#queries']");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button) return;
  if (event.defaultPrevented) return;
  if (!document.querySelector("section#queries") || /[?&]format=/.test(link.search)) return;
  event.preventDefault();
  const away = !link.closest("#queries");
  go(link.href).then((shown) => shown && away && document.getElementById("queries").scrollIntoView());
});
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("#queries form.filters")) return;
  event.preventDefault();
  const fields = [...new FormData(form)].filter(([, value]) => value !== "");
  go(`${location.pathname}?${new URLSearchParams(fields)}`);
});
addEventListener("popstate", () => {
  if (document.querySelector("section#queries")) go(location.href, false);
  else if (document.getElementById("drawer")) read(location.href, false);
});

// Replace a part of the page once it is computed.
const part = document.querySelector("[data-fresh]");
const look = async () => {
  const found = await fresh(await fetch(location.href), part.id);
  if (found.matches("[data-fresh]")) setTimeout(look, part.dataset.fresh || 3000);
};
if (part) setTimeout(look, part.dataset.fresh || 3000);

// Reload until the numbers are computed, but not while a form is being filled in. The page says since when.
let filled = false;
document.addEventListener("input", () => (filled = true));
if (document.querySelector("[data-waits]")) setTimeout(() => filled || location.reload(), 2000);
