// Search over notes, chapters, concepts, paths and every name; parts of names count.
"use strict";
(function () {
  const input = document.getElementById("search");
  const box = document.getElementById("search-results");
  const root = document.body.dataset.root;
  const LIMIT = 40, WRITTEN = 12, BEGIN = "(?:^|[^a-z0-9])";
  const APART = /[\s_:(),\u2010-\u2015-]+/g; // spaces, joints of names, what a call has, any dash
  const say = window.readerkit.say;
  let entries = null, asked = false, chosen = -1;

  // The index is a script, because a page that is opened as a file may not fetch.
  window.readerkitIndex = function (data) {
    entries = [];
    data.texts.forEach(function (text) {
      entries.push({ kind: text[0], name: text[1], spanish: text[5], where: text[2], page: text[3],
        key: words(text[1] + " " + (text[5] || "")), body: words(text[4]), weight: 0 });
    });
    data.files.forEach(function (file) {
      entries.push({ kind: "file", name: file[1].split("/").pop(), where: file[1], page: file[0],
        key: words(file[1]), weight: 1 });
      file[2].split(" ").forEach(function (item) {
        const cut = item.lastIndexOf(":");
        if (cut < 1) return;
        const name = item.slice(0, cut);
        entries.push({ kind: "name", name: name, where: file[1] + ":" + item.slice(cut + 1),
          page: file[0] + "#L" + item.slice(cut + 1), key: words(name), weight: 2 });
      });
    });
    show();
  };
  // Without accents: who types "perdida" finds "pérdida".
  function plain(text) { return text.toLowerCase().normalize("NFD").replace(/[\u0300-\u036f]/g, ""); }
  // In small letters, the words inside a name apart: "RowParallelLinear" is row|parallel|linear.
  function words(text) {
    return plain(text.replace(/([a-z0-9])([A-Z])/g, "$1|$2").replace(/([A-Z])([A-Z][a-z])/g, "$1|$2"));
  }
  // A pattern for letters with or without a joint between any two: "allreduce" is in "all-reduce".
  // A number may stand a word further: "zero3" is in "ZeRO stage 3".
  function joined(letters, joint) {
    const further = "(?:" + joint + "|[^a-z0-9]+(?:[a-z]+[^a-z0-9]+)?)";
    return Array.from(letters, function (letter, at) {
      const before = /[a-z]\d/.test(letters.slice(at - 1, at + 1)) ? further : joint;
      return (at ? before : "") + letter.replace(/[^a-z0-9]/, "\\$&");
    }).join("");
  }
  function load() {
    if (asked) return;
    asked = true;
    const script = document.createElement("script");
    script.src = root + "search-index.js";
    document.head.append(script);
  }
  // 0: its title says every word; 1: its text does; 2: letters in the middle of a word; else none.
  function level(entry, terms) {
    let worst = 0;
    for (const term of terms) {
      if (term.begins.test(entry.key)) continue;
      if (entry.body && term.begins.test(entry.body)) worst = Math.max(worst, 1);
      else if (entry.key.includes(term.text) || entry.body && entry.body.includes(term.text)) worst = 2;
      else return -1;
    }
    return worst;
  }
  // Which part of the list it belongs to: what people wrote about the word, then names that hold it,
  // then what has its letters in the middle of a word.
  function group(entry, found, query) {
    const name = query.replace(/[:(),]+$/, "");
    const whole = entry.kind === "file" ? "/" + entry.where : "." + entry.name;
    const typed = entry.name === name || entry.weight && (whole.endsWith("/" + name) || whole.endsWith("." + name));
    if (typed && /[A-Z_.(]/.test(query)) return 0;
    if (found === 2) return entry.weight ? 4 : 5;
    return entry.weight ? 3 : 1 + found;
  }
  function find(query) {
    const found = look(query), less = shorter(query);
    // A word that only prose has may still be the end of a name: "self.forward".
    const isEnough = found.some(function (entry) { return entry.weight; }) || found.length && /\s/.test(query);
    return isEnough || less === query ? found : Array.from(new Set([...find(less), ...found]));
  }
  // Without what is called with or the line; then without the folders, or the owners of a name.
  function shorter(query) {
    const bare = query.replace(/[:(].*$/, "");
    if (bare !== query) return bare;
    return query.endsWith(".py") ? query.slice(query.lastIndexOf("/") + 1) : query.slice(query.lastIndexOf(".") + 1);
  }
  function look(query) {
    const terms = plain(query).split(APART).filter(Boolean).map(function (text) {
      return { text: text, begins: new RegExp(BEGIN + joined(text, "[-_|]?")) };
    });
    if (!terms.length) return [];
    const whole = joined(plain(query).replace(APART, ""), "[-_|:(),\\s]*");
    const phrase = new RegExp(BEGIN + whole), name = new RegExp("(?:^|[./])" + whole + "$");
    const groups = [[], [], [], [], [], []];
    for (const entry of entries) {
      const found = level(entry, terms);
      if (found < 0) continue;
      const said = phrase.test(entry.key) || Boolean(entry.body) && phrase.test(entry.body);
      const value = (name.test(entry.key) ? -9 : said ? -5 : 0) + entry.weight * 2 + entry.name.length / 40;
      groups[group(entry, found, query)].push([value, entry]);
    }
    groups.forEach(function (each) { each.sort(function (a, b) { return a[0] - b[0]; }); });
    const [exact, titled, said, named, ...within] = groups;
    return [...exact, ...titled.slice(0, WRITTEN), ...said.slice(0, WRITTEN), ...named, ...titled.slice(WRITTEN), ...said.slice(WRITTEN), ...within.flat()]
      .slice(0, LIMIT).map(function (pair) { return pair[1]; });
  }
  function part(kind, text) {
    const span = document.createElement("span");
    span.className = kind;
    span.textContent = text;
    return span;
  }
  function show() {
    if (!entries || document.activeElement !== input) return;
    const results = find(input.value.trim());
    const spanish = document.documentElement.lang === "es";
    box.replaceChildren();
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
    if (!results.length && input.value.trim()) {
      const none = document.createElement("p");
      none.setAttribute("role", "option");
      none.setAttribute("aria-disabled", "true");
      none.textContent = say("Nothing found");
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
  input.addEventListener("focus", function () { load(); if (input.value.trim()) show(); });
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
  input.form.addEventListener("focusout", function (event) {
    if (!input.form.contains(event.relatedTarget)) open(false);
  });
  box.tabIndex = -1;  // else a list that scrolls is a stop of its own
  // A press on the list, its scroll bar too, leaves the focus where it is.
  box.addEventListener("mousedown", function (event) { event.preventDefault(); });
  document.addEventListener("keydown", function (event) {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      input.focus();
      input.select();
    }
  });
})();
