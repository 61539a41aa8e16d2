// Ignore a second submit of a form while the first may still be answered.

const WAIT = 5000; // milliseconds; a form that downloads a file stays on the page
let sent = new WeakMap();

addEventListener("submit", (event) => {
  const form = event.target;
  // Forms sent by a script are not handled here; GET forms may be repeated.
  if (event.defaultPrevented || form.getAttribute("method") !== "post") return;
  if (performance.now() - (sent.get(form) ?? -WAIT) < WAIT) event.preventDefault();
  else sent.set(form, performance.now());
});
addEventListener("pageshow", () => (sent = new WeakMap()));
