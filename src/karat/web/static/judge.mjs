// Judging without reloading: send the answer, and show the next card, rendered by the server, once the
// answer is stored. The same forms work without this script.
const place = document.getElementById("judging");
const status = document.getElementById("status");
const PATIENCE_MS = 20000;
// Ignore keys pressed just after a card appears: they were meant for the previous card.
let answersFrom = 0;
let form, shownAt, hiddenAt, hiddenMs;
let pending = null; // an answer not known to be stored: it is sent again unchanged
let busy = false;
let wantsWords = null; // the button that waits for a reason

function begin() {
  form = place.querySelector("#answer");
  shownAt = performance.now();
  hiddenMs = 0;
  hiddenAt = document.hidden ? shownAt : null;
  wantsWords = null;
}

function seconds() {
  const now = performance.now();
  const away = hiddenMs + (hiddenAt === null ? 0 : now - hiddenAt);
  return Math.max(0, (now - shownAt - away) / 1000).toFixed(1);
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) hiddenAt ??= performance.now();
  else if (hiddenAt !== null) {
    hiddenMs += performance.now() - hiddenAt;
    hiddenAt = null;
  }
});

function answered(button) {
  if (button.name === "grade") return `Saved: ${button.innerText.replace(/\s+/g, " ").trim()}.`;
  if (button.name === "cannot") return "Saved: cannot judge.";
  return button.value === "later" ? "Put off for an hour." : "Undone.";
}

function send(button) {
  if (busy || performance.now() < answersFrom) return;
  if (pending) return void post();
  const reason = form.elements.reason;
  if (button.value === "other" && button.name === "cannot" && !reason.value.trim()) {
    wantsWords = button;
    form.querySelector("#cannot").open = false;
    fail("Write the reason, then press Enter.");
    reason.focus();
    return;
  }
  const body = new URLSearchParams(new FormData(form, button));
  body.set("seconds", seconds());
  pending = { to: form.action, body, said: answered(button) };
  post();
}

async function post() {
  if (busy) return;
  busy = true;
  place.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(pending.to, {
      method: "POST",
      body: pending.body,
      headers: { accept: "application/json", "x-part": "1" },
      redirect: "error",
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    const html = answer.headers.get("content-type")?.startsWith("text/html");
    if (html && (answer.ok || answer.status === 409)) {
      const said = answer.ok ? pending.said : "";
      swap(await answer.text(), said);
      pending = null;
    } else await refused(answer);
  } catch {
    fail(
      navigator.onLine
        ? "The server did not respond. Your answer is kept on this page; sending it again does not count it twice."
        : "You are offline. Your answer is kept on this page and will be sent when you are online again.",
      true,
    );
  } finally {
    busy = false;
    place.removeAttribute("aria-busy");
  }
}

async function refused(answer) {
  const error = (await answer.json().catch(() => ({}))).error ?? {};
  if (answer.status === 401 || answer.status === 403) {
    pending = null;
    fail("You are signed out, and the answer was not saved. Sign in to continue with this pair.", false, true);
  } else if (answer.status < 500 && answer.status !== 429) {
    pending = null;
    fail(`Not saved: ${error.message ?? "the server refused it"}${error.fix ? ` (${error.fix})` : ""}.`);
  } else fail("The server could not save your answer. It is kept on this page.", true);
}

function swap(html, said) {
  const held = document.createElement("template");
  held.innerHTML = html;
  place.replaceChildren(held.content);
  begin();
  answersFrom = shownAt + Number(place.dataset.pause);
  scrollTo(0, 0);
  place.querySelector("#query")?.focus({ preventScroll: true });
  const note = place.querySelector(".note")?.textContent ?? "";
  // The page already announces corrections and undos.
  const kept = note.includes("was corrected from") || note.startsWith(said.slice(0, -1)) ? "" : said;
  status.textContent = [kept, note, place.querySelector("#far")?.textContent].filter(Boolean).join(" ");
}

function fail(text, again = false, signIn = false) {
  const box = form.querySelector("#failed");
  const words = document.createElement("p");
  words.textContent = text;
  box.replaceChildren(words);
  if (again) {
    const button = document.createElement("button");
    button.type = "button";
    button.id = "again";
    button.textContent = "Try again";
    button.addEventListener("click", post);
    box.append(button);
    button.focus();
  }
  if (signIn) {
    const link = document.createElement("a");
    link.href = location.pathname;
    link.textContent = "Sign in";
    box.append(link);
  }
}

addEventListener("online", () => pending && post());
addEventListener("beforeunload", (event) => pending && event.preventDefault());
place.addEventListener("submit", (event) => {
  if (event.target !== form) return; // signing out
  event.preventDefault();
  if (event.submitter) send(event.submitter);
});

function sheet(id) {
  const one = place.querySelector(`#${id}`);
  if (!one) return;
  const open = !one.open;
  close();
  one.open = open;
  if (open) one.querySelector("summary").focus();
}

function close() {
  for (const one of place.querySelectorAll(".sheet[open], #cannot[open]")) one.open = false;
}

// The second click of a double click would answer the next card unread.
place.addEventListener(
  "click",
  (event) => {
    if (event.detail > 1 && event.target.closest("#answer button[name]")) event.preventDefault();
  },
  true,
);

// Otherwise the reason box would shrink under the finger, and the tap would miss.
place.addEventListener("mousedown", (event) => {
  if (event.target.closest("#answer button[name]")) event.preventDefault();
});

// A click outside a sheet closes it, and so does opening another.
place.addEventListener("click", (event) => {
  const inside = event.target.closest(".sheet, #cannot");
  for (const one of place.querySelectorAll(".sheet[open], #cannot[open]"))
    if (one !== inside) one.open = false;
});

function typed(event) {
  const box = event.target;
  if (event.key === "Escape") {
    event.preventDefault();
    wantsWords = null;
    form.querySelector("#failed").replaceChildren();
    place.querySelector("#query").focus({ preventScroll: true });
  } else if (event.key === "Enter" && !event.shiftKey && box.name === "reason") {
    event.preventDefault();
    if (wantsWords && box.value.trim()) send(wantsWords);
    else if (!wantsWords) place.querySelector("#query").focus({ preventScroll: true });
  }
}

// The printed key; its position on layouts that need Shift for digits (AZERTY, Czech) or have no
// Latin letters (Cyrillic).
function keyOf(event) {
  const key = event.key.toLowerCase();
  if (/^[0-9?]$/.test(key) || key.length > 1) return key;
  if (event.shiftKey) return ""; // Shift+1 is not 1, and Shift+Z is not z
  if (/^[a-z]$/.test(key)) return key;
  return /^(?:Digit|Key)(.)$/.exec(event.code)?.[1].toLowerCase() ?? key;
}

const ANSWERS = /^[0-9lz]$/;
const ACTS = {
  u: () => sheet("cannot"),
  g: () => sheet("guideline"),
  "?": () => sheet("help"),
  l: () => press('[name=do][value="later"]'),
  z: () => press('[name=do][value="undo"]'),
  e: () => form.elements.reason?.focus(),
  m: () => {
    const rest = place.querySelector("#rest");
    if (rest) rest.open = !rest.open;
  },
  escape: close,
};

function press(selector) {
  const button = form.querySelector(selector);
  if (button && !button.disabled) send(button);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
  if (event.getModifierState("AltGraph")) return; // it types a bracket; browsers do not report it as Alt
  if (!form || event.defaultPrevented) return;
  if (event.target.closest("textarea, input, select")) return void typed(event);
  const key = keyOf(event);
  if (pending) {
    // An answer is being sent: another key must not send a second one.
    if (key === "enter" && !busy && !event.target.closest("a, button")) post();
    return;
  }
  if (ANSWERS.test(key) && place.querySelector(".sheet[open]")) return; // the card is covered
  const reasons = form.querySelector("#cannot")?.open;
  if (/^[0-9]$/.test(key)) {
    event.preventDefault();
    const button = reasons ? `[data-reason="${key}"]` : `[data-key="${key}"]`;
    if (form.querySelector(button)) press(button);
    else status.textContent = reasons ? `No reason has the key ${key}.` : `No grade has the key ${key}.`;
  } else if (Object.hasOwn(ACTS, key)) {
    event.preventDefault();
    ACTS[key]();
  }
});

if (place) begin();
