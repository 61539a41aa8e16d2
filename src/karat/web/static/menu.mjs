// Menus close on Escape, on a click outside, and when the focus leaves them; the Judge button counts.
const menus = [...document.querySelectorAll("details.menu")];
document.addEventListener("keydown", (event) => {
  const menu = menus.find((each) => each.open);
  if (event.key !== "Escape" || !menu || event.defaultPrevented) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});
document.addEventListener("click", (event) => {
  for (const menu of menus) if (!menu.contains(event.target)) menu.open = false;
});
for (const menu of menus) {
  menu.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !menu.contains(event.relatedTarget)) menu.open = false;
  });
}
// A link to a folded form opens it; one to a part that is on another tab leads there.
const unfold = () => {
  const target = document.querySelector("details:target, .tabs a:target");
  if (target?.href) location.replace(target.href);
  else if (target) target.open = true;
};
addEventListener("hashchange", unfold);
unfold();
document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// How many judgments wait: counted after the page is shown, and at most once a minute.
const judge = document.querySelector(".judging-link[data-golden]");
if (judge) {
  const base = document.querySelector("meta[name=base]").content;
  const cache = `karat-waiting ${base}`;
  const held = JSON.parse(sessionStorage.getItem(cache) ?? "null");
  let waiting = held?.waiting;
  if (!held || Date.now() - held.at > 60000 || location.pathname.startsWith(`${base}/judge`)) {
    const answer = await fetch(`${base}/judge?format=json`).catch(() => null);
    if (answer?.ok) {
      ({ waiting } = await answer.json());
      sessionStorage.setItem(cache, JSON.stringify({ at: Date.now(), waiting }));
    }
  }
  const left = waiting?.find((each) => each.name === judge.dataset.golden)?.left;
  judge.querySelector("b").textContent = left ? left.toLocaleString("en") : "";
}
