// Settings in a text: what computes them (the page of estimates' own scripts) is fetched
// once a control is touched; a table says what the commands say of what is set.
"use strict";
(function () {
  const cards = document.querySelectorAll(".set-here");
  const scripts = ["python", "python-texts", "python-formulas", "estimates"];
  function load() { return window.readerkit.fetchScripts(scripts); }
  function isSpanish() { return document.documentElement.lang === "es"; }
  function say(text) {
    const $ = readerkitPython;
    if (!isSpanish()) return text;
    return $.spanish.get(text) || $.said(text, function (phrase) { return $.spanish.get(phrase, phrase); });
  }
  function put(cell, lines) {
    cell.replaceChildren();
    lines.filter(Boolean).forEach(function (text, at) {
      const line = document.createElement("span");
      if (at) { cell.append(document.createElement("br")); line.className = "dim"; }
      line.textContent = text;
      cell.append(line);
    });
  }

  // Every dial: what the text set, and over it what the controls say.
  function values(card) {
    const usual = readerkitPython.ours.Dials._field_defaults, set = JSON.parse(card.dataset.setting), form = card.querySelector("form");
    return readerkitPython.ours.Dials._fields.map(function (name) {
      const control = form.elements[name], common = usual.get(name);
      if (control && control.type === "checkbox") return control.checked;
      const text = control ? control.value : set[name];
      if (typeof common === "string") return text;
      if (typeof common === "boolean") return text === "true";
      if (text === "") return control && common !== null ? undefined : common;
      return /^\d+$/.test(text) ? BigInt(text) : undefined;
    });
  }
  function address(fields, given) {
    const usual = readerkitPython.ours.Dials._field_defaults, parts = new URLSearchParams();
    fields.forEach(function (name, at) {
      if (name === "model" || given[at] !== usual.get(name)) parts.set(name, String(given[at]));
    });
    return "#" + parts;
  }
  function fill(row, answer) {
    const found = answer.estimates.flatMap(function (each) { return each.items; }).filter(function (each) { return each.name === row.dataset.item; }).pop();
    if (!found) {
      put(row.querySelector(".value"), ["–"]);
      put(row.querySelector(".how"), []);
      return;
    }
    const texts = readerkitPython.ours.numberTexts(found, say), told = isSpanish() ? found.said(say) : found;
    put(row.querySelector(".name"), [told.name]);
    put(row.querySelector(".value"), [texts[0], texts[1]]);
    put(row.querySelector(".how"), [told.formula, "= " + told.substitution]);
  }
  function show(card) {
    const $ = readerkitPython, ours = $.ours, given = values(card), fields = ours.Dials._fields;
    const wrong = given.some(function (each) { return each === undefined; });
    fields.forEach(function (name, at) {
      const control = card.querySelector("form").elements[name];
      if (control) control.setAttribute("aria-invalid", String(given[at] === undefined));
    });
    card.querySelector(".not-whole").hidden = !wrong;
    if (wrong) return;
    const known = new ours.Shipped($.known.get("models"), $.known.get("gpus"), $.known.get("clusters"));
    const answers = new Map(ours.answers(new ours.Dials(...given), known).map(function (each) { return [each.question, each]; }));
    const asked = Array.from(card.querySelectorAll("code[data-question]"), function (each) { return [each, answers.get(each.dataset.question)]; });
    const refusals = new Set(asked.map(function (each) { return each[1] && each[1].refusal; }).filter(Boolean));
    const said = card.querySelector("[role=status]");
    said.textContent = Array.from(refusals).join("\n");
    said.hidden = !refusals.size;
    asked.forEach(function (each) { if (each[1]) each[0].textContent = each[1].command; });
    card.querySelectorAll("tr[data-item]").forEach(function (row) {
      fill(row, answers.get(row.dataset.question) || { estimates: [] });
    });
    const link = card.querySelector(".whole");
    link.href = link.href.split("#")[0] + address(fields, given);
    card.dataset.turned = "true";
  }

  cards.forEach(function (card) {
    const form = card.querySelector("form");
    if (!form) return;
    form.addEventListener("focusin", load);
    form.addEventListener("pointerdown", load);
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    form.addEventListener("input", function () { load().then(function () { show(card); }); });
  });
  document.querySelector(".lang").addEventListener("change", function () {
    document.querySelectorAll(".set-here[data-turned]").forEach(show);
  });
})();
