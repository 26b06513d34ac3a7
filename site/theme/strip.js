// The event strip: predict the next collective, then pick one and see the way to it.
"use strict";
(function () {
  document.querySelectorAll(".record").forEach(function (record) {
    const guess = record.querySelector(".guess");
    if (!guess) return;
    const moments = Array.from(record.querySelector(".strip").querySelectorAll(".moment"));
    if (moments.length > 1) ask(record, guess, moments);
    else record.classList.add("told");
    record.addEventListener("click", function (event) {
      const chosen = event.target.closest(".ev:not(.none)");
      if (!chosen || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      pick(record.querySelector(".picked"), chosen.closest(".moment"));
    });
  });

  function ask(record, guess, moments) {
    let next = 0, right = 0;
    const part = function (name) { return guess.querySelector("." + name); };
    guess.hidden = false;
    prompt();
    part("choices").addEventListener("click", function (event) {
      const button = event.target.closest("button");
      if (button && button.dataset.op) answer(button.dataset.op);
      else if (button) finish();
    });

    function prompt() {
      const phase = moments[next].closest(".phase").querySelector(".phase-name").textContent;
      part("where").textContent = phase + ", " + (next + 1) + " / " + moments.length;
    }
    function answer(op) {
      const moment = moments[next], is = moment.dataset.op === op;
      right += is ? 1 : 0;
      next += 1;
      moment.classList.add("known");
      part("yes").hidden = !is;
      part("no").hidden = is;
      part("said").classList.toggle("right", is);
      part("said").classList.toggle("wrong", !is);
      part("was").textContent = moment.querySelector("abbr").title + ".";
      part("score").textContent = right + " / " + next;
      if (next === moments.length) finish();
      else prompt();
    }
    function finish() {
      record.classList.add("told");
      part("ask").remove();
      part("choices").remove();
      guess.hidden = !next;
      const first = moments[0].querySelector(".ev:not(.none)");
      if (first) first.focus({ preventScroll: true });
    }
  }

  function pick(picked, moment) {
    document.querySelectorAll(".ev.on, .l.on, .l.via").forEach(function (each) { each.classList.remove("on", "via"); });
    picked.replaceChildren();
    moment.querySelectorAll(".ev:not(.none)").forEach(function (event) {
      event.classList.add("on");
      const side = document.createElement("div"), about = document.createElement("p");
      about.append(event.querySelector(".unseen").cloneNode(true), held(event.dataset.account));
      about.firstChild.className = "lane";
      side.append(about);
      const missing = event.querySelector(".unplaced");
      if (missing) {
        const why = document.createElement("p");
        why.append(missing.cloneNode(true));
        why.firstChild.hidden = false;
        side.append(why);
      }
      if (event.dataset.way) side.append(way(event.dataset.way));
      picked.append(side);
    });
    if (moment.dataset.why) {
      const why = document.createElement("p");
      why.className = "why";
      why.textContent = moment.dataset.why;
      picked.append(why);
    }
    picked.hidden = false;
  }

  function held(id) { return document.getElementById(id).content.cloneNode(true); }

  // The lines that led to an event, the innermost first; those on this page light up.
  function way(id) {
    const list = held(id).firstElementChild;
    list.querySelectorAll("li").forEach(function (frame, depth) {
      const site = '.l[data-site="' + CSS.escape(frame.dataset.site) + '"]';
      const lines = document.querySelectorAll("main " + site);
      if (!lines.length) return;
      const code = document.createElement("div");
      code.className = "code";
      code.append(lines[0].cloneNode(true));  // at hand, wherever the excerpt is
      frame.append(code);
      lines.forEach(function (line) { line.classList.add(depth ? "via" : "on"); });
    });
    return list;
  }
})();
