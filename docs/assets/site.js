/* Tables that scroll can be reached and scrolled by the keyboard. */
window.addEventListener("load", () => {
  for (const region of document.querySelectorAll(".md-typeset__scrollwrap")) region.tabIndex = 0;
});
