// Runs before the page is painted, so that it does not flash white in dark mode.
"use strict";
{
  const preferred = window.matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const follow = () => {
    if (!root.dataset.chosen) root.dataset.theme = preferred.matches ? "dark" : "light";
  };
  preferred.addEventListener("change", follow);
  follow();
}
