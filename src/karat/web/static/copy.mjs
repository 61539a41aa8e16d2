// Who looks knows the address of this karat, even where the server does not.
for (const said of document.querySelectorAll("[data-part]")) {
  const field = document.getElementById(said.dataset.part);
  field.value = new URL(field.value, location.href).href;
  said.hidden = true;
}
// A button that copies what stands in the field before it; without a script the field is enough.
for (const button of document.querySelectorAll("button[data-copy]")) {
  const field = document.getElementById(button.dataset.copy);
  button.hidden = false;
  button.addEventListener("click", async () => {
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
    } catch {
      // Over plain HTTP browsers have no clipboard for pages but this.
      document.execCommand("copy");
    }
    button.textContent = "Copied";
  });
}
