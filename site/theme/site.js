// Theme, lines and notes, progress. Everything works without it; this adds comfort.
"use strict";
(function () {
  const root = document.body.dataset.root;
  const code = document.querySelector(".file-page .code");

  function keep(name, value) {
    try { localStorage.setItem("readerkit." + name, value); } catch (denied) { /* not kept */ }
  }
  function kept(name) {
    try { return localStorage.getItem("readerkit." + name); } catch (denied) { return null; }
  }

  // --- theme ---
  const button = document.getElementById("theme");
  const themes = {
    en: { auto: "Theme: as the system says", light: "Theme: light", dark: "Theme: dark" },
    es: { auto: "Tema: el del sistema", light: "Tema: claro", dark: "Tema: oscuro" },
  };
  function showTheme(name) {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    const said = themes[document.documentElement.lang][name];
    button.setAttribute("aria-label", said);
    button.title = said;
  }
  let theme = document.documentElement.dataset.theme || "auto";
  showTheme(theme);
  button.addEventListener("click", function () {
    theme = { auto: "light", light: "dark", dark: "auto" }[theme];
    keep("theme", theme);
    showTheme(theme);
  });
  document.querySelector(".lang").addEventListener("change", function () { showTheme(theme); });

  // --- lines: #L10-L20 ---
  function range(hash) {
    const match = /^#L(\d+)(?:-L(\d+))?$/.exec(hash);
    if (!match) return null;
    const first = Number(match[1]), last = Number(match[2] || match[1]);
    return first <= last ? [first, last] : [last, first];
  }
  function lineOf(number) {
    const link = document.getElementById("L" + number);
    return link ? link.parentElement : null;
  }
  function showRange(scroll) {
    document.querySelectorAll(".l.on").forEach(function (line) { line.classList.remove("on"); });
    const chosen = range(location.hash);
    if (!chosen || !code) return;
    const first = lineOf(chosen[0]);
    for (let number = chosen[0]; number <= chosen[1]; number += 1) {
      const line = lineOf(number);
      if (!line) break;
      line.classList.add("on");
    }
    if (scroll && first && chosen[0] !== chosen[1]) first.scrollIntoView({ block: "start" });
  }
  function choose(first, last) {
    const low = Math.min(first, last), high = Math.max(first, last);
    history.replaceState(null, "", "#L" + low + (high > low ? "-L" + high : ""));
    showRange(false);
  }
  function numberOf(node) {
    const element = node && (node.nodeType === 1 ? node : node.parentElement);
    const line = element && element.closest(".l");
    return line && code.contains(line) ? Number(line.firstElementChild.textContent) : 0;
  }
  if (code) {
    code.addEventListener("click", function (event) {
      const link = event.target.closest('a[id^="L"]');
      if (!link) return;
      event.preventDefault();
      const number = Number(link.textContent), chosen = range(location.hash);
      choose(event.shiftKey && chosen ? chosen[0] : number, number);
    });
    document.addEventListener("mouseup", function () {
      const selection = getSelection();
      if (selection.isCollapsed) return;
      const from = numberOf(selection.anchorNode), to = numberOf(selection.focusNode);
      if (from && to && from !== to) choose(from, to);
    });
    addEventListener("hashchange", function () { showRange(true); });
    showRange(true);
  }

  // --- notes and the lines they cover ---
  const notes = Array.from(document.querySelectorAll(".code .note"));
  function mark(note, on) {
    note.classList.toggle("active", on);
    for (let n = Number(note.dataset.first); n <= Number(note.dataset.last); n += 1) {
      const line = lineOf(n);
      if (line) line.classList.toggle("hover", on);
    }
  }
  notes.forEach(function (note) {
    ["mouseenter", "focusin"].forEach(function (kind) {
      note.addEventListener(kind, function () { mark(note, true); });
    });
    ["mouseleave", "focusout"].forEach(function (kind) {
      note.addEventListener(kind, function () { mark(note, false); });
    });
  });
  const narrow = matchMedia("(max-width: 69.99rem)");
  function place() {
    // A note stands before its first line; on a narrow screen it folds in under its last.
    notes.forEach(function (note) {
      const at = lineOf(narrow.matches ? note.dataset.last : note.dataset.first);
      if (at && narrow.matches) at.after(note);
      else if (at) at.before(note);
    });
  }
  if (notes.length && code) {
    if (narrow.matches) place();
    narrow.addEventListener("change", place);
    // A fragment that names a note was followed before the note moved.
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && narrow.matches) target.scrollIntoView();
  }

  // --- what was read ---
  let read = new Set();
  try { read = new Set(JSON.parse(kept("read") || "[]")); } catch (broken) { /* begin anew */ }
  const served = location.protocol.startsWith("http");
  function remember(id) {
    if (read.has(id)) return;
    read.add(id);
    keep("read", JSON.stringify(Array.from(read)));
    document.dispatchEvent(new CustomEvent("readerkit:read", { detail: id }));
    showProgress();
  }
  function showProgress() {
    document.querySelectorAll("[data-note]").forEach(function (item) {
      item.classList.toggle("read", read.has(item.dataset.note));
    });
    document.querySelectorAll("[data-chapter-line]").forEach(function (item) {
      item.classList.toggle("read", read.has(item.dataset.chapterLine));
    });
    document.querySelectorAll("[data-notes]").forEach(function (item) {
      const ids = item.dataset.notes.split(" ");
      const done = ids.filter(function (id) { return read.has(id); }).length;
      item.querySelector(".read-count").textContent = done ? done + " / " : "";
      item.classList.toggle("read", done === ids.length);
    });
    const bar = document.querySelector(".progress");
    if (bar) {
      const count = Array.from(read).filter(function (id) { return !id.includes("/"); }).length;
      bar.textContent = count ? count + " / " + bar.dataset.total + " ✓" : "";
    }
  }
  const chapter = document.querySelector("[data-chapter]");
  if ("IntersectionObserver" in window && (notes.length || chapter)) {
    const timers = new Map();
    const watch = new IntersectionObserver(function (entries) {
      entries.forEach(function (entry) {
        const id = entry.target.id || document.body.dataset.page;
        clearTimeout(timers.get(id));
        if (entry.isIntersecting) timers.set(id, setTimeout(remember, 4000, id));
      });
    }, { threshold: 0.3 });
    notes.forEach(function (note) { watch.observe(note); });
    const end = document.querySelector(".around");
    if (chapter && end) watch.observe(end);
  }
  document.addEventListener("readerkit:known", function (event) {
    event.detail.forEach(function (id) { read.add(id); });
    keep("read", JSON.stringify(Array.from(read)));
    showProgress();
  });
  showProgress();
  window.readerkit = { root: root, served: served, read: function () { return Array.from(read); } };

  // --- Escape puts away what a hover or a focus opened ---
  document.addEventListener("keydown", function (event) {
    if (event.key === "Escape" && document.activeElement && document.activeElement.closest(".tip")) {
      document.activeElement.blur();
    }
  });
})();
