// The browser knows the address of this server, even if the server does not.
for (const said of document.querySelectorAll("[data-part]")) {
  const field = document.getElementById(said.dataset.part);
  field.value = new URL(field.value, location.href).href;
  said.hidden = true;
}
// A button that copies the field before it.
for (const button of document.querySelectorAll("button[data-copy]")) {
  const field = document.getElementById(button.dataset.copy);
  button.hidden = false;
  button.addEventListener("click", async () => {
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
    } catch {
      // Browsers have no clipboard API over plain HTTP.
      document.execCommand("copy");
    }
    button.textContent = "Copied";
  });
}
