// The box of the search and its list; what is found is for find.js to say, fetched with the index.
"use strict";
(function () {
  const input = document.getElementById("search");
  const box = document.getElementById("search-results");
  const status = document.getElementById("search-status");
  const root = document.body.dataset.root;
  const { say } = window.readerkit;
  const scripts = new Set();
  let chosen = -1, isLost = false;
  let entered = ""; // what Enter was pressed on before it was answered

  // The index is scripts, because a page that is opened as a file may not fetch.
  function load(name) {
    if (scripts.has(name)) return;
    scripts.add(name);
    const script = document.createElement("script");
    script.src = root + name;
    script.async = false; // in this order
    script.addEventListener("error", function () {
      isLost = true;
      show(true);
    });
    document.head.append(script);
  }
  function loadIndex() { ["theme/find.js", "search-index.js"].forEach(load); }
  document.addEventListener("readerkit:index", function () { show(true); });
  function part(kind, text) {
    const span = document.createElement("span");
    span.className = kind;
    span.textContent = text;
    return span;
  }
  // In the place of results or below them, and aloud.
  function tell(text) {
    const note = document.createElement("p");
    note.setAttribute("role", "option");
    note.setAttribute("aria-disabled", "true");
    note.textContent = text;
    box.append(note);
    status.textContent = text;
  }
  // More of the index may come while a result is picked: it stays so.
  function show(isMore) {
    if (document.activeElement !== input) return;
    const query = input.value.trim(), { find } = window.readerkit;
    const { results, wantsNames } = find && query ? find(query) : { results: [] };
    const links = box.querySelectorAll("a"), kept = isMore && chosen > 0 ? links[chosen].href : "";
    if (wantsNames) load("search-names.js");
    const isWaiting = (!find || wantsNames) && !isLost;
    const spanish = document.documentElement.lang === "es";
    box.replaceChildren();
    box.setAttribute("aria-busy", String(Boolean(query && isWaiting)));
    results.forEach(function (entry, index) {
      const link = document.createElement("a");
      link.href = root + entry.page;
      link.id = "result-" + index;
      link.setAttribute("role", "option");
      link.setAttribute("aria-selected", "false");
      link.tabIndex = -1;
      link.append(part("what", say(entry.kind)),
        part("name", spanish && entry.spanish || entry.name), part("where", entry.where));
      box.append(link);
    });
    if (!query) status.textContent = "";
    else if (isLost && (!find || wantsNames)) tell(say("The search index cannot be read"));
    else if (!find || isWaiting) tell(say("Loading the search index…"));
    else if (!results.length) tell(say("Nothing found"));
    else status.textContent = results.length + " " + (results.length > 1 ? say("results") : say("result"));
    open(query !== "");
    pick(Math.max(0, Array.from(box.querySelectorAll("a"), function (link) { return link.href; }).indexOf(kept)));
    if (entered && !isWaiting && query === entered) follow();
  }
  function follow() {
    const links = box.querySelectorAll("a");
    entered = links.length ? "" : input.value.trim();
    if (links.length) { links[chosen].click(); open(false); }
  }
  function open(on) {
    box.hidden = !on;
    input.setAttribute("aria-expanded", String(on));
    if (!on) input.removeAttribute("aria-activedescendant");
  }
  function pick(index) {
    const links = box.querySelectorAll("a");
    if (links[chosen]) links[chosen].setAttribute("aria-selected", "false");
    chosen = links.length ? (index + links.length) % links.length : -1;
    if (chosen < 0) {
      input.removeAttribute("aria-activedescendant");
      return;
    }
    links[chosen].setAttribute("aria-selected", "true");
    links[chosen].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", links[chosen].id);
  }
  input.addEventListener("focus", function () { loadIndex(); if (input.value.trim()) show(); });
  input.addEventListener("input", function () { entered = ""; show(); });
  input.addEventListener("keydown", function (event) {
    if (event.key === "ArrowDown") pick(chosen + 1);
    else if (event.key === "ArrowUp") pick(chosen - 1);
    else if (event.key === "Escape" && !box.hidden) open(false);
    else if (event.key === "Escape" && input.value) input.value = "";
    else if (event.key === "Escape") input.blur();
    else return;
    event.preventDefault();
  });
  input.form.addEventListener("submit", function (event) {
    event.preventDefault();
    if (!box.hidden) follow();
  });
  input.form.addEventListener("focusout", function (event) {
    if (!input.form.contains(event.relatedTarget)) open(false);
  });
  box.tabIndex = -1;  // else a list that scrolls is a stop of its own
  // A press on the list, its scroll bar too, leaves the focus where it is.
  box.addEventListener("mousedown", function (event) { event.preventDefault(); });
  document.addEventListener("keydown", function (event) {
    const isTyping = event.target.closest && event.target.closest("input, textarea, select, [contenteditable]");
    const isSlash = event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (isSlash || (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      input.focus();
      input.select();
    }
  });
})();
