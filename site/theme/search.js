// Search over notes, chapters, concepts, paths and every name; parts of names count.
"use strict";
(function () {
  const input = document.getElementById("search");
  const box = document.getElementById("search-results");
  const root = document.body.dataset.root;
  const LIMIT = 40;
  const SPANISH = { citation: "decisión", note: "nota", pitfall: "trampa", concept: "concepto", chapter: "capítulo",
    lab: "lab", estimate: "cálculo", beside: "al lado", file: "archivo", name: "nombre" };
  let entries = null, asked = false, chosen = -1;

  // The index is a script, because a page that is opened as a file may not fetch.
  window.readerkitIndex = function (data) {
    entries = [];
    data.texts.forEach(function (text) {
      entries.push({ kind: text[0], name: text[1], spanish: text[5], where: text[2], page: text[3],
        key: flat(text[1]), body: plain(text[4]), weight: 0 });
    });
    data.files.forEach(function (file) {
      entries.push({ kind: "file", name: file[1].split("/").pop(), where: file[1], page: file[0],
        key: flat(file[1]), body: "", weight: 1 });
      file[2].split(" ").forEach(function (item) {
        const cut = item.lastIndexOf(":");
        if (cut < 1) return;
        const name = item.slice(0, cut);
        entries.push({ kind: "name", name: name, where: file[1] + ":" + item.slice(cut + 1),
          page: file[0] + "#L" + item.slice(cut + 1), key: flat(name), body: "", weight: 2 });
      });
    });
    show();
  };
  // Without accents: who types "perdida" finds "pérdida".
  function plain(text) { return text.toLowerCase().normalize("NFD").replace(/[\u0300-\u036f]/g, ""); }
  function flat(text) { return plain(text).replace(/[_\s]+/g, ""); }
  function load() {
    if (asked) return;
    asked = true;
    const script = document.createElement("script");
    script.src = root + "search-index.js";
    document.head.append(script);
  }
  function score(entry, terms, whole) {
    let total = entry.weight * 4 + entry.name.length / 40;
    for (const term of terms) {
      const at = entry.key.indexOf(term);
      if (at < 0) {
        if (!entry.body || !entry.body.includes(term)) return -1;
        total += 30;
      } else if (at > 0) total += 2;
    }
    const last = entry.key.slice(entry.key.lastIndexOf(".") + 1);
    if (entry.key === whole || last === whole) total -= 12;
    else if (last.startsWith(whole)) total -= 5;
    return total + 100;
  }
  function find(query) {
    const terms = plain(query).split(/[\s_]+/).filter(Boolean);
    if (!terms.length) return [];
    const whole = flat(query), found = [];
    for (const entry of entries) {
      const value = score(entry, terms, whole);
      if (value >= 0) found.push([value, entry]);
    }
    found.sort(function (a, b) { return a[0] - b[0]; });
    return found.slice(0, LIMIT).map(function (pair) { return pair[1]; });
  }
  function part(kind, text) {
    const span = document.createElement("span");
    span.className = kind;
    span.textContent = text;
    return span;
  }
  function show() {
    if (!entries || document.activeElement !== input) return;
    const results = find(input.value);
    const spanish = document.documentElement.lang === "es";
    box.replaceChildren();
    results.forEach(function (entry, index) {
      const link = document.createElement("a");
      link.href = root + entry.page;
      link.id = "result-" + index;
      link.setAttribute("role", "option");
      link.setAttribute("aria-selected", "false");
      link.tabIndex = -1;
      link.append(part("what", spanish ? SPANISH[entry.kind] : entry.kind),
        part("name", spanish && entry.spanish || entry.name), part("where", entry.where));
      box.append(link);
    });
    if (!results.length && input.value.trim()) {
      const none = document.createElement("p");
      none.setAttribute("role", "option");
      none.setAttribute("aria-disabled", "true");
      none.textContent = spanish ? "Nada encontrado" : "Nothing found";
      box.append(none);
    }
    open(input.value.trim() !== "");
    pick(results.length ? 0 : -1);
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
    if (chosen < 0) return;
    links[chosen].setAttribute("aria-selected", "true");
    links[chosen].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", links[chosen].id);
  }
  input.addEventListener("focus", load);
  input.addEventListener("input", show);
  input.addEventListener("keydown", function (event) {
    if (event.key === "ArrowDown") pick(chosen + 1);
    else if (event.key === "ArrowUp") pick(chosen - 1);
    else if (event.key === "Escape") open(false);
    else return;
    event.preventDefault();
  });
  input.form.addEventListener("submit", function (event) {
    event.preventDefault();
    const links = box.querySelectorAll("a");
    if (!box.hidden && links[chosen]) { links[chosen].click(); open(false); }
  });
  document.addEventListener("click", function (event) {
    if (!input.form.contains(event.target)) open(false);
  });
  document.addEventListener("keydown", function (event) {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      input.focus();
      input.select();
    }
  });
})();
