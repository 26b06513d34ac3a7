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
    if (document.documentElement.lang === "es" && !inSpanish.has(text)) inSpanish.set(text, ours.inParts(text, $.parts));
    const other = document.documentElement.lang === "es" && inSpanish.get(text);
    element.textContent = other || text;
    element.lang = other ? "es" : "en";
    return element;
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
  function shown(item, parts, most) {
    const row = make("details", "number"), head = make("summary");
    const texts = ours.numberTexts(item, say);
    head.append(make("span", "what", item.name), make("span", "n", texts[0]));
    row.append(head);
    if (texts[1]) head.lastChild.append(make("span", "dim", texts[1]));
    if (parts.has(item.name)) {
      const bar = make("span", "bar");
      bar.style.width = 100 * $.float(item.value) / most + "%";
      head.append(bar);
    }
    row.addEventListener("toggle", function () {
      if (row.open && row.childElementCount === 1) row.append(origin(item));
    });
    return row;
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
  function fill(box, answer) {
    const body = box.querySelector(".body");
    body.replaceChildren();
    box.hidden = !answer;
    if (!answer) return;
    box.querySelector(".command code").textContent = answer.command;
    if (answer.refusal) body.append(make("p", "refused", answer.refusal));
    answer.estimates.forEach(function (estimate) { list(body, answer.question, estimate); });
  }
  function list(box, question, estimate) {
    const parts = new Set(ours.drawn(question, estimate));
    const values = estimate.items.filter(function (item) { return parts.has(item.name); });
    const most = Math.max.apply(null, values.map(function (item) { return $.float(item.value); }));
    const other = document.documentElement.lang === "es" ? estimate.said(say) : estimate;
    box.append(make("h4", "", other.title));
    const named = new Set(estimate.items.flatMap(function (item, at) { return parts.has(item.name) ? [other.items[at].name] : []; }));
    other.items.forEach(function (item) { box.append(shown(item, named, most)); });
    const notes = make("ul", "facts");
    estimate.notes.forEach(function (note) { notes.append(tell(make("li"), note)); });
    if (estimate.notes.length) box.append(notes);
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
    if (wrong.length) {
      status.textContent = wrong.join(", ") + ":";
      return;
    }
    const found = ours.answers(new ours.Dials(...values), known), were = opened();
    place.querySelectorAll(".answer").forEach(function (box) {
      fill(box, found.find(function (each) { return each.question === box.dataset.question; }));
    });
    place.querySelectorAll(".number").forEach(function (row) {
      if (were.has(row.querySelector(".what").textContent)) row.open = true;
    });
    const first = found[0];
    tell(status, first.refusal || first.estimates[1].notes[0]);
  }
  function changed(event) {
    if (event.target.name === "gpu") nearest(event.target.value);
    answer();
    clearTimeout(keeping);
    keeping = setTimeout(keep, 100);
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
