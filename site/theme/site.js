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
  const say = window.readerkit.say;
  function nameOf(theme) {
    if (theme === "auto") return say("Theme: as the system says");
    return theme === "light" ? say("Theme: light") : say("Theme: dark");
  }
  function showTheme(name) {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    button.title = nameOf(name);
    button.setAttribute("aria-label", button.title);
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
  function lineOf(number) { return document.getElementById("L" + number); }
  function lineAt(element) { return element && element.closest(".lines > div"); }
  function showRange(scroll) {
    document.querySelectorAll(".lines > .on").forEach(function (line) { line.classList.remove("on"); });
    document.dispatchEvent(new Event("readerkit:lines"));
    const chosen = range(location.hash);
    if (!chosen || !code) return;
    const first = lineOf(chosen[0]);
    for (let number = chosen[0]; number <= chosen[1]; number += 1) {
      const line = lineOf(number);
      if (!line) break;
      line.classList.add("on");
    }
    // Unless the browser does it: one line as "#L10" is an id.
    if (scroll && first && !document.getElementById(location.hash.slice(1))) first.scrollIntoView({ block: "start" });
  }
  function choose(first, last) {
    const low = Math.min(first, last), high = Math.max(first, last);
    history.replaceState(null, "", "#L" + low + (high > low ? "-L" + high : ""));
    showRange(false);
  }
  function numberOf(node) {
    const element = node && (node.nodeType === 1 ? node : node.parentElement);
    const line = lineAt(element);
    return line ? Number(line.id.slice(1)) : 0;
  }
  if (code) {
    code.addEventListener("click", function (event) {
      // The numbers are the style sheet's: a click on one is a click before its line's text.
      const line = lineAt(event.target), number = numberOf(event.target);
      if (!line || line !== event.target) return;
      if (event.clientX > line.getBoundingClientRect().left + parseFloat(getComputedStyle(line).paddingLeft)) return;
      const chosen = range(location.hash);
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
  const inText = Array.from(document.querySelectorAll(".code .note"));
  const notes = inText.slice().sort(function (one, other) {
    return one.dataset.first - other.dataset.first || other.dataset.last - one.dataset.last;
  });
  function mark(note, on) {
    note.classList.toggle("active", on);
    code.querySelectorAll('[data-of="' + note.id + '"]').forEach(function (edge) {
      edge.classList.toggle("on", on);
    });
  }
  notes.forEach(function (note) {
    ["mouseenter", "focusin"].forEach(function (kind) {
      note.addEventListener(kind, function () { mark(note, true); });
    });
    ["mouseleave", "focusout"].forEach(function (kind) {
      note.addEventListener(kind, function () { mark(note, false); });
    });
  });
  let under = "";
  function markUnder(event) {
    // From the lines to their notes: the brackets on a line say which.
    const line = lineAt(event.target);
    const edges = line ? Array.from(line.querySelectorAll(".edge")) : [];
    const now = edges.map(function (edge) { return edge.dataset.of; }).join(" ");
    if (now === under) return;
    [under, now].forEach(function (ids) {
      ids.split(" ").filter(Boolean).forEach(function (id) {
        mark(document.getElementById(id), ids === now);
      });
    });
    under = now;
  }
  const wide = matchMedia("screen and (min-width: 70rem)");
  function place() {
    // In the text a note follows its last line; in the margin it begins at its first.
    if (wide.matches) notes.forEach(function (note) { lineOf(note.dataset.first).before(note); });
    else inText.slice().reverse().forEach(function (note) { lineOf(note.dataset.last).after(note); });
  }
  // Looked up when needed: a served page may get a note's text anew.
  function fold(note) { return note.querySelector(".more"); }
  // The note with the fewest lines among those that cover all of these.
  function covering(lines) {
    const over = notes.filter(function (note) {
      return lines && note.dataset.first <= lines[0] && note.dataset.last >= lines[1];
    });
    function size(note) { return note.dataset.last - note.dataset.first; }
    return over.sort(function (one, other) { return size(one) - size(other); })[0];
  }
  let opened = null;
  function follow() {
    // A note that is linked to is open, and its lines are in view; so is that of lines that are.
    const named = notes.find(function (each) { return "#" + each.id === location.hash; });
    const note = named || covering(range(location.hash));
    if (!note) return;
    if (opened && opened !== note) fold(opened).open = false;
    if (!fold(note).open) opened = note;
    fold(note).open = true;
    if (!named) {
      const line = lineOf(range(location.hash)[0]), head = wide.matches ? lineOf(note.dataset.first) : line;
      const isFar = line.getBoundingClientRect().top - head.getBoundingClientRect().top > innerHeight / 2;
      (isFar ? line : head).scrollIntoView({ block: "start" });
      return;
    }
    // A busy browser says late that the address changed: a reader may be further in.
    if (!note.contains(document.activeElement)) note.focus({ preventScroll: true });
    const first = lineOf(note.dataset.first);
    const above = note.getBoundingClientRect().top - first.getBoundingClientRect().top;
    first.scrollIntoView({ block: "start" });
    if (above > innerHeight / 2) scrollBy(0, above - innerHeight / 2);
  }
  if (notes.length) {
    if (wide.matches) place();
    wide.addEventListener("change", place);
    follow();
    addEventListener("load", follow); // the browser has its own idea of where
    addEventListener("hashchange", follow);
    code.addEventListener("mouseover", markUnder);
    code.addEventListener("mouseleave", markUnder);
    code.addEventListener("click", function (event) {
      // A link to the note that the address names already changes no address.
      const link = event.target.closest('a[href^="#"]');
      if (link && link.hash === location.hash) follow();
    });
  }

  // --- what was read ---
  let read = new Set();
  try {
    read = new Set(JSON.parse(kept("read") || "[]").filter(function (id) { return typeof id === "string"; }));
  } catch (broken) { /* begin anew */ }
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
    let all = 0; // of this book: what is kept may be of others too
    document.querySelectorAll("[data-notes]").forEach(function (item) {
      const ids = item.dataset.notes.split(" ");
      const done = ids.filter(function (id) { return read.has(id); }).length;
      all += done;
      item.querySelector(".read-count").textContent = done ? done + " / " : "";
      item.classList.toggle("read", done === ids.length);
    });
    const bar = document.querySelector(".progress");
    if (bar) bar.querySelector(".so-far").textContent = all + " / " + bar.dataset.total;
  }
  const chapter = document.querySelector("[data-chapter]");
  // A note: unfolded for as long as it takes to begin; a chapter: at its end as long.
  function rememberAfter(id, isRead) {
    setTimeout(function () { if (isRead()) remember(id); }, 4000);
  }
  document.addEventListener("toggle", function (event) {
    const note = event.target.matches(".more") && event.target.closest(".code .note");
    if (note) rememberAfter(note.id, function () { return fold(note).open; });
  }, true); // on its way down: it does not come up again
  const end = document.querySelector(".around");
  if ("IntersectionObserver" in window && chapter && end) {
    let isSeen = false;
    new IntersectionObserver(function (entries) {
      isSeen = entries[entries.length - 1].isIntersecting;
      rememberAfter(document.body.dataset.page, function () { return isSeen; });
    }, { threshold: 0.3 }).observe(end);
  }
  document.addEventListener("readerkit:known", function (event) {
    event.detail.forEach(function (id) { read.add(id); });
    keep("read", JSON.stringify(Array.from(read)));
    showProgress();
  });
  showProgress();

  // --- scripts that a page asks for once something is touched: each once, in this order ---
  const fetched = new Map();
  function fetchScript(name) {
    if (!fetched.has(name)) fetched.set(name, new Promise(function (done, failed) {
      const script = document.createElement("script");
      script.src = root + "theme/" + name + ".js";
      script.onload = done;
      script.onerror = failed;
      document.head.append(script);
    }));
    return fetched.get(name);
  }
  function fetchScripts(names) {
    return names.reduce(function (before, name) {
      return before.then(function () { return fetchScript(name); });
    }, Promise.resolve());
  }
  Object.assign(window.readerkit, { root: root, served: served, read: function () { return Array.from(read); },
    fetchScripts: fetchScripts });

  // --- where the reader stopped: the last page of a file, a chapter, a lab or a mini; the last chapter ---
  const here = document.body.dataset.page;
  // The section of a chapter that one is in.
  function section() {
    return Array.from(document.querySelectorAll("[data-chapter] h2[id]")).filter(function (head) {
      return head.checkVisibility() && head.getBoundingClientRect().top < innerHeight / 2;
    }).pop();
  }
  if (/^(read\/.+\/.+|chapters\/|labs\/|beside\/)/.test(here) && !/\/index\.html$/.test(here)) {
    // What is kept while a page is left may come after the next one has looked.
    for (const moment of ["load", "hashchange", "pagehide"]) addEventListener(moment, function () {
      const title = document.querySelector("h1").innerText, head = chapter && section();
      const at = JSON.stringify(head ? { page: here + "#" + head.id, title: title + ": " + head.innerText }
        : { page: here + location.hash, title: title });
      keep("last", at);
      if (chapter) keep("studied", at);
    });
  }
  for (const [id, name] of [["left-off", "last"], ["studied", "studied"]]) {
    const offer = document.getElementById(id);
    if (!offer || !kept(name)) continue;
    try {
      const last = JSON.parse(kept(name)), link = offer.querySelector("a");
      if (/^[\w./-]+(#[\w-]*)?$/.test(last.page) && last.title) {
        link.href = root + last.page;
        link.textContent = last.title;
        offer.hidden = false;
      }
    } catch (broken) { /* begin anew */ }
  }

  // --- what an address names is not folded away ---
  function unfold() {
    let named = null;
    try { named = document.getElementById(decodeURIComponent(location.hash.slice(1))); }
    catch (malformed) { /* it names nothing */ }
    if (!named || named.closest(".note")) return;
    for (let at = named.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
    if (named.closest("details")) named.scrollIntoView();
  }
  addEventListener("hashchange", unfold);
  unfold();

  // --- Escape puts away what a hover or a focus opened ---
  document.addEventListener("keydown", function (event) {
    if (event.key === "Escape" && document.activeElement && document.activeElement.closest(".tip")) {
      document.activeElement.blur();
    }
  });
})();
