// Charts: one tab stop each, arrow keys within; a mark shows its numbers to pointer, touch and keys.
const tip = document.getElementById("tip") ?? document.body.appendChild(
  Object.assign(document.createElement("div"), { id: "tip", hidden: true, ariaHidden: "true" }));
let pointed = null;
function hide() { pointed = null; tip.hidden = true; }
function tell(mark, more = "") {
  pointed = mark;
  tip.textContent = mark.getAttribute("aria-label") + more;
  tip.hidden = false;
  const over = mark.getBoundingClientRect();
  const left = over.left + over.width / 2 - tip.offsetWidth / 2;
  tip.style.left = `${Math.max(8, Math.min(left, document.documentElement.clientWidth - tip.offsetWidth - 8)) + scrollX}px`;
  const above = over.top - tip.offsetHeight - 8;
  tip.style.top = `${(above > 0 ? above : over.bottom + 8) + scrollY}px`;
}
for (const chart of document.querySelectorAll("figure svg")) {
  const marks = [...chart.querySelectorAll(".mark")];
  marks.forEach((mark, place) => {
    const title = mark.querySelector("title");
    mark.setAttribute("aria-label", title.textContent);
    title.remove(); // else the browser shows it too
    mark.setAttribute("tabindex", place ? "-1" : "0");
    mark.addEventListener("pointerenter", () => tell(mark));
    mark.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch" && document.activeElement !== mark) hide();
    });
    mark.addEventListener("focus", () => {
      for (const other of marks) other.setAttribute("tabindex", other === mark ? "0" : "-1");
      tell(mark);
    });
    mark.addEventListener("blur", hide);
    mark.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1,
        Home: -marks.length, End: marks.length }[event.key];
      if (!step) return;
      event.preventDefault();
      marks[Math.max(0, Math.min(place + step, marks.length - 1))].focus();
    });
    let told = false;
    mark.addEventListener("pointerdown", (event) => {
      told = event.pointerType !== "touch" || (pointed === mark && mark.dataset.told === "");
    });
    // Touch has no hover: the first tap shows the numbers, the second follows the link.
    mark.addEventListener("click", (event) => {
      if (told || !event.isTrusted || event.detail === 0) return;
      event.preventDefault();
      for (const other of marks) delete other.dataset.told;
      mark.dataset.told = "";
      tell(mark, mark.matches("a") ? " Tap again to go there." : "");
    });
  });
}
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
document.addEventListener("pointerdown", (event) => { if (!event.target.closest(".mark")) hide(); });
addEventListener("resize", hide);
