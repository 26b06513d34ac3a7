// In a file: which function the reader is in, all of them, and the way to a line.
"use strict";
(function () {
  const here = document.querySelector(".here");
  if (!here) return;
  const outline = here.querySelector(".outline"), summary = outline.querySelector("summary");
  const symbol = summary.querySelector(".symbol"), unknown = symbol.innerHTML;
  const goto = here.querySelector(".goto input"), count = Number(here.dataset.lines);
  const items = Array.from(outline.querySelectorAll("li"), function (item) {
    const link = item.querySelector("a");
    return { link: link, first: Number(link.hash.slice(2)), last: Number(item.dataset.last), depth: Number(item.className.slice(1)), name: link.firstChild.data.trim() };
  });
  let line = 1, at = null;

  // The line that stands right under this bar.
  function topLine() {
    const edge = here.getBoundingClientRect().bottom;
    let low = 1, high = count;
    while (low < high) {
      const middle = (low + high) >> 1, found = document.getElementById("L" + middle);
      if (found && found.getBoundingClientRect().bottom <= edge + 1) low = middle + 1;
      else high = middle;
    }
    return low;
  }
  function inner(number) {
    return items.filter(function (item) { return item.first <= number && number <= item.last; }).pop();
  }
  function whole(item) {
    const over = items.filter(function (each) { return each.first <= item.first && item.last <= each.last; });
    return over.map(function (each) { return each.name; }).join(".");
  }
  function look() {
    line = topLine();
    const now = inner(line) || null;
    if (now === at) return;
    if (at) at.link.removeAttribute("aria-current");
    if (now) now.link.setAttribute("aria-current", "location");
    at = now;
    if (now) symbol.textContent = whole(now);
    else symbol.innerHTML = unknown;
  }
  // Right below what stays at the top, however high that is.
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  function settle() {
    const bars = [document.querySelector(".tools"), document.querySelector(".top")];
    const bar = bars.find(function (each) { return getComputedStyle(each).position === "sticky"; });
    sheet.replaceSync(":root { --under: " + (bar ? bar.offsetHeight : 0) + "px; }");
  }
  let waits = false;
  function lookSoon() {
    if (waits) return;
    waits = true;
    requestAnimationFrame(function () { waits = false; look(); });
  }
  addEventListener("scroll", lookSoon, { passive: true });
  addEventListener("resize", function () { settle(); lookSoon(); });
  settle();
  look();

  outline.addEventListener("toggle", function () {
    const list = outline.querySelector("ol");
    if (outline.open && at) list.scrollTop = at.link.offsetTop - list.clientHeight / 2;
  });
  outline.addEventListener("click", function (event) {
    if (event.target.closest("a")) outline.open = false;
  });
  // One menu at a time; Escape and a click elsewhere put it away.
  const menus = Array.from(here.querySelectorAll("details"));
  menus.forEach(function (menu) {
    menu.addEventListener("toggle", function () {
      if (menu.open) menus.forEach(function (other) { if (other !== menu) other.open = false; });
    });
  });
  document.addEventListener("click", function (event) {
    menus.forEach(function (menu) { if (!menu.contains(event.target)) menu.open = false; });
  });
  document.addEventListener("keydown", function (event) {
    const open = menus.find(function (menu) { return menu.open; });
    if (event.key === "Escape" && open) {
      open.open = false;
      open.querySelector("summary").focus();
    }
    const isTyping = event.target.closest && event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key === "g" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      goto.focus();
      goto.select();
    }
  });

  goto.form.addEventListener("submit", function (event) {
    event.preventDefault();
    const asked = /^\D*(\d+)(?:\D+(\d+))?\s*$/.exec(goto.value);
    if (!asked) return;
    const numbers = asked.slice(1).filter(Boolean).map(function (each) { return Math.max(1, Math.min(count, Number(each))); });
    numbers.sort(function (one, other) { return one - other; });
    const wanted = "#" + numbers.map(function (each) { return "L" + each; }).join("-");
    if (location.hash === wanted) document.getElementById("L" + numbers[0]).scrollIntoView({ block: "start" });
    else location.hash = wanted;
    goto.value = "";
    goto.blur();
  });
  Object.assign(window.readerkit, { placeInFile: function () { return at ? [at.first, at.last] : [line, line]; } });
})();
