// The event strip: predict what comes next, pick an event and see the way to it.
"use strict";
(function () {
  const records = document.querySelectorAll(".record");
  records.forEach(function (record) {
    const guess = record.querySelector(".guess");
    if (guess) ask(record, guess);
    record.addEventListener("click", function (event) {
      const chosen = event.target.closest(".ev:not(.none)") || drawn(record, event.target);
      if (!chosen || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      pick(record, chosen);
      history.replaceState(null, "", "#" + chosen.id);
    });
  });
  addEventListener("hashchange", arrive);
  arrive();

  // An event has an address: who comes by it sees that event, with nothing to guess first.
  function arrive() {
    const chosen = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!chosen || !chosen.matches(".ev")) return;
    const record = chosen.closest(".record"), folded = chosen.closest("details");
    tell(record);
    if (folded) folded.open = true;
    pick(record, chosen);
    // A reload would go back to where the page stood while its records were folded.
    history.scrollRestoration = "manual";
    show(chosen);
    if (document.readyState !== "complete") addEventListener("load", function () { show(chosen); }, { once: true });
  }

  function show(event) { event.scrollIntoView({ block: "center" }); }

  function tell(record) {
    record.classList.add("told");
    const guess = record.querySelector(".guess");
    if (!guess) return;
    guess.hidden = false;
    guess.querySelector(".asking").hidden = true;
    guess.querySelector(".again").hidden = false;
  }

  function keep(record, told) {
    const name = "readerkit.told." + record.dataset.record;
    try {
      if (told) localStorage.setItem(name, "1");
      else localStorage.removeItem(name);
    } catch (denied) { /* asked again next time */ }
  }
  function isTold(record) {
    try { return localStorage.getItem("readerkit.told." + record.dataset.record) === "1"; } catch (denied) { return false; }
  }

  function ask(record, guess) {
    const all = Array.from(record.querySelector(".strip").querySelectorAll(".moment"));
    const asked = all.filter(function (moment) { return moment.dataset.answer; });
    let next = 0, right = 0;
    const part = function (name) { return guess.querySelector("." + name); };
    part("choices").addEventListener("click", function (event) {
      const button = event.target.closest("button");
      if (button && button.dataset.value) answer(button.dataset.value);
      else if (button) finish();
    });
    part("again").addEventListener("click", function () {
      keep(record, false);
      begin();
      part("choices").querySelector("button").focus();
    });
    if (isTold(record)) tell(record);
    else begin();

    function begin() {
      next = right = 0;
      record.classList.remove("told");
      all.forEach(function (moment) { moment.classList.remove("known"); });
      guess.hidden = part("asking").hidden = false;
      part("again").hidden = part("result").hidden = true;
      explain([]);
      prompt();
    }
    function prompt() {
      const phase = asked[next].closest(".phase").querySelector(".phase-name").textContent;
      part("where").textContent = phase + ", " + (next + 1) + " / " + asked.length;
    }
    function answer(value) {
      const moment = asked[next], is = moment.dataset.answer === value;
      right += is ? 1 : 0;
      next += 1;
      // What the other side alone has before it comes to light with it.
      all.slice(0, all.indexOf(moment) + 1).forEach(function (each) { each.classList.add("known"); });
      part("result").hidden = false;
      part("yes").hidden = !is;
      part("no").hidden = is;
      part("said").classList.toggle("right", is);
      part("said").classList.toggle("wrong", !is);
      part("was").textContent = moment.dataset.answer + ".";
      part("score").textContent = right + " / " + next;
      explain(is ? [] : [moment.dataset.answer, value]);
      if (next === asked.length) finish();
      else prompt();
    }
    // Why a guess is wrong: what it is and where the step has it, beside what it was.
    function explain(values) {
      guess.querySelectorAll(".whys li").forEach(function (why) {
        why.hidden = !values.includes(why.dataset.value);
      });
    }
    function finish() {
      keep(record, true);
      tell(record);
      const first = all[0].querySelector(".ev:not(.none)");
      if (first) first.focus({ preventScroll: true });
    }
  }

  // The event whose bar in the drawing was clicked.
  function drawn(record, target) {
    const bar = target.closest(".lanes [data-event]");
    return bar && document.getElementById("e-" + record.dataset.record + "-" + bar.closest(".lanes").dataset.rank + "-" + bar.dataset.event);
  }
  function barsOf(record, chosen) {
    const at = chosen.id.slice(("e-" + record.dataset.record + "-").length).split("-");
    return record.querySelectorAll('.lanes[data-rank="' + at[0] + '"] [data-event="' + at[1] + '"]');
  }

  function pick(record, chosen) {
    const picked = record.querySelector(".picked"), moment = chosen.closest(".moment");
    document.querySelectorAll(".ev.on, .l.on, .l.via, .lanes .on").forEach(function (each) { each.classList.remove("on", "via"); });
    picked.replaceChildren();
    moment.querySelectorAll(".ev:not(.none)").forEach(function (event) {
      event.classList.add("on");
      const bars = barsOf(record, event);
      bars.forEach(function (bar) { bar.classList.add("on"); });
      const side = document.createElement("div"), about = document.createElement("p"), address = document.createElement("a");
      address.href = "#" + event.id;
      address.textContent = "#" + event.id;
      address.className = "address";
      about.append(event.querySelector(".unseen").cloneNode(true), held(event.dataset.account), " ", address);
      about.firstChild.className = "lane";
      side.append(about);
      const missing = event.querySelector(".unplaced");
      if (missing) {
        const why = document.createElement("p");
        why.append(missing.cloneNode(true));
        why.firstChild.hidden = false;
        side.append(why);
      }
      bars.forEach(function (bar) { if (bar.dataset.us) side.append(when(record, bar.dataset.us.split(" "))); });
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

  // When a call was issued and waited for: a drawing has it as bars.
  function when(record, us) {
    const said = document.createElement("p"), of = us.map(Number);
    const times = [of[0], of[1] - of[0], of[2], of[3] - of[2]];
    said.append(record.querySelector(".when").content.cloneNode(true));
    said.querySelectorAll("b").forEach(function (slot, at) { slot.textContent = (times[at] / 1000).toFixed(3); });
    if (us.length < 4) said.querySelector("span:has(> b)").remove();
    return said;
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
