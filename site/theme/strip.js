// The event strip: predict the next collective, then pick one and see who issued it.
"use strict";
(function () {
  document.querySelectorAll(".record").forEach(function (record) {
    const guess = record.querySelector(".guess"), strip = record.querySelector(".strip");
    if (!strip) return;
    const moments = Array.from(strip.querySelectorAll(".moment"));
    prepare(record, record.querySelector(".picked"));
    if (guess && moments.length > 1) ask(guess, moments);
  });

  function words(op) { return op.replace(/_/g, "-"); }

  function ask(guess, moments) {
    let next = 0, right = 0;
    const text = document.createElement("p"), said = document.createElement("p");
    said.setAttribute("role", "status");
    guess.append(text);
    guess.dataset.ops.split(" ").slice(0, 6).forEach(function (op) {
      button(words(op), function () { answer(op); });
    });
    button("Just show me", finish);
    guess.append(said);
    guess.hidden = false;
    moments.forEach(function (moment) { moment.classList.add("veiled"); moment.inert = true; });
    prompt();

    function button(label, act) {
      const made = document.createElement("button");
      made.type = "button";
      made.textContent = label;
      made.addEventListener("click", act);
      guess.append(made);
    }
    function prompt() {
      const phase = moments[next].closest(".phase").querySelector(".phase-name").textContent;
      text.textContent = "Event " + (next + 1) + " of " + moments.length + ", in " + phase
        + ": what does rank 0 issue next?";
    }
    function unveil(moment) { moment.classList.remove("veiled"); moment.inert = false; }
    function answer(op) {
      const moment = moments[next], is = moment.dataset.op === op;
      right += is ? 1 : 0;
      unveil(moment);
      said.className = is ? "right" : "wrong";
      said.textContent = (is ? "Yes: " : "No: ") + words(moment.dataset.op) + ". "
        + right + " of " + (next + 1) + " right.";
      next += 1;
      if (next === moments.length) finish();
      else prompt();
    }
    function finish() {
      moments.forEach(unveil);
      text.textContent = next ? "You predicted " + right + " of " + next + "." : "";
      guess.querySelectorAll("button").forEach(function (made) { made.remove(); });
      guess.hidden = !next;
      if (!next) said.textContent = "";
      moments[0].querySelector("a").focus({ preventScroll: true });
    }
  }

  function prepare(record, picked) {
    record.addEventListener("click", function (event) {
      const link = event.target.closest("a.ev");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      pick(record, picked, link.closest(".moment"));
    });
  }

  function pick(record, picked, moment) {
    document.querySelectorAll(".ev.on, .l.on").forEach(function (each) { each.classList.remove("on"); });
    picked.replaceChildren();
    moment.querySelectorAll("a.ev").forEach(function (event) {
      event.classList.add("on");
      const row = document.createElement("p");
      const place = document.createElement("a");
      place.href = event.href;
      place.textContent = event.dataset.place;
      row.append(event.querySelector(".unseen").textContent, event.dataset.about + " ", place);
      picked.append(row);
      if (!event.dataset.site) return;
      const lines = document.querySelectorAll('.l[data-site="' + CSS.escape(event.dataset.site) + '"]');
      if (!lines.length) return;
      const shown = document.createElement("div");
      shown.className = "code";
      shown.append(lines[0].cloneNode(true));  // at hand, wherever the excerpt is
      picked.append(shown);
      lines.forEach(function (line) { line.classList.add("on"); });
    });
    if (moment.dataset.why) {
      const why = document.createElement("p");
      why.textContent = moment.dataset.why;
      picked.append(why);
    }
    picked.hidden = false;
  }
})();
