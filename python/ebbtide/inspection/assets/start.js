// Everything together, once the page is there.
const data = JSON.parse(document.getElementById("data").textContent);
const open = setUpTimeline(data, setUpOverview(data));
setUpQuestions(data);

function followAddress() {
  const named = /^#turn-(\d+)$/.exec(location.hash);
  if (named) open(Number(named[1]));
}

// A link to the turn that the address names already changes nothing: it is followed here.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href^='#turn-']");
  if (!link || link.getAttribute("href") !== location.hash) return;
  event.preventDefault();
  followAddress();
});
window.addEventListener("hashchange", followAddress);
followAddress();
