// A second click does not send a form again while the answer to the first may still come.

const WAIT = 5000; // milliseconds; a form whose answer is a file stays on the page
let sent = new WeakMap();

addEventListener("submit", (event) => {
  const form = event.target;
  // Forms that a script sends look after themselves; those that only ask may be sent again.
  if (event.defaultPrevented || form.getAttribute("method") !== "post") return;
  if (performance.now() - (sent.get(form) ?? -WAIT) < WAIT) event.preventDefault();
  else sent.set(form, performance.now());
});
addEventListener("pageshow", () => (sent = new WeakMap()));
