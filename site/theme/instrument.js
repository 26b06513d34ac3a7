// The estimates' page as an instrument: what is set is asked of the translated commands
// (estimates.js) and shown. A setting is an address; nothing is computed here.
"use strict";
(function () {
  const $ = readerkitPython, ours = $.ours;
  const form = document.getElementById("setting"), place = document.getElementById("answers");
  const status = document.getElementById("said-of-it");
  const known = new ours.Shipped($.known.get("models"), $.known.get("gpus"), $.known.get("clusters"));
  const usual = ours.Dials._field_defaults;
  const fields = ours.Dials._fields;

  function say(text) {
    if (document.documentElement.lang !== "es") return text;
    return $.spanish.get(text) || $.said(text, function (phrase) { return $.spanish.get(phrase, phrase); });
  }
  // A convention or a note, put together of parts; in English, and marked, where one has no Spanish.
  const inSpanish = new Map();
  function tell(element, text) {
    if (document.documentElement.lang === "es" && !inSpanish.has(text)) inSpanish.set(text, translated(text));
    const other = document.documentElement.lang === "es" && inSpanish.get(text);
    element.textContent = other || text;
    element.lang = other ? "es" : "en";
    return element;
  }
  function translated(text) {
    const lines = text.split("\n").map(function (line) { return ours.inParts(line, $.parts); });
    return lines.every(Boolean) ? lines.join("\n") : "";
  }
  function make(tag, classes, text) {
    const made = document.createElement(tag);
    if (classes) made.className = classes;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // --- a setting: from the controls, and from an address ---
  function read(name) {
    const control = form.elements[name];
    if (control.type === "checkbox") return control.checked;
    if (control.type === "number") return control.value === "" ? usual.get(name) : whole(control);
    return name === "zero" ? BigInt(control.value) : control.value;
  }
  function whole(control) {
    return /^-?\d+$/.test(control.value) ? BigInt(control.value) : undefined;
  }
  function write(name, value) {
    const control = form.elements[name];
    if (control.type === "checkbox") control.checked = value;
    else if (control.tagName === "SELECT" && !Array.from(control.options).some(function (each) { return each.value === String(value); })) {
      control.add(new Option(value, value)); // another name: the answer is what the command says of it
      control.value = value;
    } else control.value = value === null ? "" : String(value);
  }
  function address() {
    const parts = new URLSearchParams();
    fields.forEach(function (name) {
      const value = read(name);
      if (name === "model" || (value !== undefined && value !== usual.get(name))) parts.set(name, value === null ? "" : String(value));
    });
    return "#" + parts;
  }
  function follow() {
    const given = new URLSearchParams(location.hash.slice(1));
    if (!given.has("model")) return false;
    fields.forEach(function (name) {
      const text = given.get(name), common = usual.get(name);
      if (text === null) write(name, common);
      else write(name, typeof common === "boolean" ? text !== "false" : text);
    });
    return true;
  }

  // --- what is answered ---
  function put(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }
  // A number's row is made once: making one costs a browser more than what it says costs us.
  function begun(name, isOpen) {
    const row = make("details", "number"), what = make("span", "what", name), n = make("span", "n");
    const text = document.createTextNode(""), also = make("span", "dim"), bar = make("span", "bar"), head = make("summary");
    n.append(text);
    head.append(what, n);
    row.append(head);
    const told = { row: row, head: head, what: what, text: text, n: n, also: also, bar: bar, item: null };
    row.addEventListener("toggle", function () {
      if (row.open && row.childElementCount === 1) row.append(origin(told.item));
    });
    row.open = isOpen;
    return told;
  }
  function tellRow(told, item, isPart, most) {
    const texts = ours.numberTexts(item, say);
    told.item = item;
    put(told.what, item.name);
    if (told.text.data !== texts[0]) told.text.data = texts[0];
    put(told.also, texts[1]);
    if (texts[1]) told.n.append(told.also); else told.also.remove();
    if (isPart) {
      told.bar.style.width = 100 * $.float(item.value) / most + "%";
      told.head.append(told.bar);
    } else told.bar.remove();
    if (told.row.childElementCount > 1) told.row.lastChild.remove();
    if (told.row.open) told.row.append(origin(item));
  }
  function origin(item) {
    const told = make("div", "origin");
    told.append(make("p", "", item.formula));
    if (item.substitution !== item.formula) told.append(make("p", "", "= " + item.substitution));
    [item.convention, item.source].filter(Boolean).forEach(function (text) {
      told.append(tell(make("p", "dim"), text));
    });
    return told;
  }
  const filled = new Map(); // of each question: its lists as they stand
  function fill(box, answer, were) {
    const body = box.querySelector(".body"), question = box.dataset.question, last = filled.get(question) || [];
    box.hidden = !answer;
    if (answer) put(box.querySelector(".command code"), answer.command);
    const lists = answer ? answer.estimates.map(function (estimate, at) { return list(last[at], question, estimate, were); }) : [];
    filled.set(question, lists);
    const parts = lists.flatMap(function (each) { return each.parts; });
    if (answer && answer.refusal) parts.unshift(tell(make("p", "refused"), answer.refusal));
    const isSame = parts.length === body.childNodes.length && parts.every(function (part, at) { return part === body.childNodes[at]; });
    if (!isSame) body.replaceChildren(...parts);
  }
  // An estimate with other items than stood there is a list of its own.
  function list(last, question, estimate, were) {
    const isSpanish = document.documentElement.lang === "es", other = isSpanish ? estimate.said(say) : estimate;
    const names = estimate.items.map(function (item) { return item.name; }).join("\n");
    const told = last && last.names === names ? last : { names: names, title: make("h4"),
      rows: other.items.map(function (item) { return begun(item.name, were.has(item.name)); }) };
    const drawn = new Set(ours.drawn(question, estimate)), values = estimate.items.filter(function (item) { return drawn.has(item.name); });
    const most = Math.max.apply(null, values.map(function (item) { return $.float(item.value); }));
    put(told.title, other.title);
    other.items.forEach(function (item, at) { tellRow(told.rows[at], item, drawn.has(estimate.items[at].name), most); });
    const notes = make("ul", "facts"), said = [isSpanish, ...estimate.notes].join("\n");
    if (told.said !== said) {
      estimate.notes.forEach(function (note) { notes.append(tell(make("li"), note)); });
      told.said = said;
      told.parts = [told.title, ...told.rows.map(function (each) { return each.row; }), ...(estimate.notes.length ? [notes] : [])];
    }
    return told;
  }
  function hand(text) {
    function done() {
      document.getElementById("copied").hidden = false;
      setTimeout(function () { document.getElementById("copied").hidden = true; }, 2500);
    }
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, function () {});
  }
  function opened() {
    return new Set(Array.from(place.querySelectorAll(".number[open] .what"), function (each) { return each.textContent; }));
  }

  function answer() {
    const values = fields.map(read), wrong = fields.filter(function (_, at) { return values[at] === undefined; });
    fields.forEach(function (name) { form.elements[name].setAttribute("aria-invalid", wrong.includes(name)); });
    document.getElementById("not-whole").hidden = !wrong.length;
    place.hidden = wrong.length > 0; // what stood there is of another setting
    if (wrong.length) {
      status.textContent = wrong.join(", ") + ":";
      return;
    }
    const found = ours.answers(new ours.Dials(...values), known), were = opened();
    place.querySelectorAll(".answer").forEach(function (box) {
      fill(box, found.find(function (each) { return each.question === box.dataset.question; }), were);
    });
    const first = found[0];
    tell(status, first.refusal || first.estimates[1].notes[0]);
  }
  function changed(event) {
    if (event.target.name === "gpu") nearest(event.target.value);
    answer();
    clearTimeout(keeping);
    if (!place.hidden) keeping = setTimeout(keep, 100);
  }
  // To change the address takes a browser longer than the answer: it is done after it.
  let keeping;
  function keep() {
    clearTimeout(keeping);
    history.replaceState(null, "", address());
  }
  function nearest(gpu) {
    const control = form.elements.cluster;
    const fits = Array.from(control.options).filter(function (each) { return each.dataset.gpu === gpu; });
    if (!fits.includes(control.selectedOptions[0])) control.value = fits.length ? fits[0].value : "";
  }

  form.addEventListener("input", changed);
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  document.getElementById("copy-setting").addEventListener("click", function () {
    keep();
    hand(location.href);
  });
  place.addEventListener("click", function (event) {
    const line = event.target.closest(".command");
    if (line && event.target.closest("button")) hand(line.querySelector("code").textContent);
  });
  document.querySelector(".lang").addEventListener("change", answer);
  addEventListener("hashchange", function () { if (follow()) answer(); });
  follow();
  answer();
})();
