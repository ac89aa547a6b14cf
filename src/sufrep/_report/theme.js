// Runs before anything is painted, so that a dark screen never flashes white.
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
