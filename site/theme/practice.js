// Questions on a page of their own: marked here, kept in this browser, saved as a file
// that `readerkit quiz import` takes. Nothing is sent anywhere.
"use strict";
(function () {
  const quiz = window.readerkit.quiz, rules = window.quizRules;
  const kept = document.querySelector(".kept"), phase = Number(kept.dataset.phase);
  const name = "readerkit.quiz." + phase;
  let memory = null; // where the browser keeps nothing

  // --- what is kept: the rows of a history ---

  function load() {
    try {
      return memory || JSON.parse(localStorage.getItem(name)) || { sessions: [], answers: [], hints: [] };
    } catch (damaged) { return { sessions: [], answers: [], hints: [] }; }
  }
  function store(rows) {
    try { localStorage.setItem(name, JSON.stringify(rows)); } catch (full) {
      if (!memory) kept.append(document.getElementById("quiz-unkept").content.cloneNode(true));
      memory = rows;
    }
    tally();
  }
  function now() { return new Date().toISOString().replace("Z", "+00:00"); }
  function newId() {
    return Array.from(crypto.getRandomValues(new Uint8Array(6)), function (byte) { return byte.toString(16).padStart(2, "0"); }).join("");
  }
  // Of one seed, of one bank, and about the same figures of the reader's own.
  function isOf(session, key) {
    const row = key.row, same = JSON.stringify(session.figures || {}) === JSON.stringify(key.figures);
    return !session.ended && session.seed === row.seed && session.bank_version === row.bank_version && same;
  }
  function openSession(rows, key) {
    const row = key.row, free = rows.sessions.find(function (each) {
      return isOf(each, key) && !each.questions.includes(row.question);
    });
    const session = free || { id: newId(), phase: phase, bank_version: row.bank_version, seed: row.seed, mode: "practice", tries: rules.tries, questions: [], started: now(), deadline: null, ended: null, official: false, figures: key.figures };
    if (!free) rows.sessions.push(session);
    session.questions.push(row.question);
    return session.id;
  }
  function triesAt(rows, session, question) {
    return rows.answers.filter(function (each) { return each.session === session && each.question === question; });
  }
  function hintsAt(rows, session, position) {
    return (rows.hints || []).filter(function (each) { return each.session === session && each.position === position; });
  }
  function points(tries) {
    return Math.max(0, ...tries.map(function (each, at) { return each.credit * (1 - (each.hinted || 0)) * (rules.retry[at] || rules.retry[rules.retry.length - 1]); }));
  }
  function isRight(credit) { return credit >= 1 - 1e-9; }
  function isDone(tries, most) {
    const last = tries[tries.length - 1];
    return Boolean(last) && (isRight(last.credit) || !last.answer || tries.length >= most);
  }
  function shown(number) { return String(Math.round(number * 100) / 100); }
  function tally() {
    const rows = load(), rounds = new Map(), topics = new Map();
    rows.answers.forEach(function (each) { rounds.set(each.session + each.question, [...rounds.get(each.session + each.question) || [], each]); });
    function add(topic, won) { const sum = topics.get(topic) || [0, 0]; topics.set(topic, [sum[0] + won, sum[1] + 1]); }
    rounds.forEach(function (tries) { add(tries[0].topic, points(tries)); add("", points(tries)); });
    function told(topic) { const sum = topics.get(topic); return sum ? shown(sum[0]) + " / " + sum[1] : ""; }
    kept.hidden = !rows.answers.length;
    kept.querySelector(".tally").textContent = told("");
    kept.querySelector("[data-keep=forget]").hidden = rows.sessions.some(function (each) { return !each.ended; });
    document.querySelectorAll("[data-topic]").forEach(function (place) { place.textContent = told(place.dataset.topic); });
  }

  // --- a question ---

  const keys = new Map(), rounds = new Map(), since = new Map();
  function keyOf(section) {
    if (!keys.has(section)) {
      const bytes = Uint8Array.from(atob(section.dataset.key), function (sign) { return sign.charCodeAt(0); });
      keys.set(section, JSON.parse(new TextDecoder().decode(bytes)));
    }
    return keys.get(section);
  }
  function typed(form, key) {
    const data = new FormData(form), parts = data.getAll("answer");
    if (form.querySelector("[name=mark]")) return [data.getAll("mark").join(" ") || "0", rules.marks, parts[0]].join(" ");
    if (!key.rows) return parts.join(" ").trim();
    return key.rows.map(function (row, at) { return parts.slice(at * row.length, (at + 1) * row.length).join(" "); }).join("\n");
  }
  function round(rows, section) {
    const row = keyOf(section).row;
    if (!rounds.has(section)) rounds.set(section, openSession(rows, keyOf(section)));
    const session = rounds.get(section);
    return { session: session, position: rows.sessions.find(function (each) { return each.id === session; }).questions.indexOf(row.question) };
  }
  function record(section, answer, credit) {
    const rows = load(), row = keyOf(section).row, at = round(rows, section), session = at.session, moment = Date.now();
    const hinted = hintsAt(rows, session, at.position).reduce(function (sum, each) { return sum + each.cost; }, 0);
    rows.answers.push({ ...at, attempt: triesAt(rows, session, row.question).length + 1, ...row, answer: answer, credit: credit, seconds: (moment - since.get(section)) / 1000, answered: now(), hinted: Math.round(hinted * 1e4) / 1e4 });
    since.set(section, moment);
    store(rows);
    return triesAt(rows, session, row.question);
  }

  // --- what is said ---

  const said = document.getElementById("quiz-said");
  function phrase(kind, number) {
    const copy = said.content.querySelector("[data-said=" + kind + "]").cloneNode(true);
    if (number !== undefined) copy.querySelector(".n").textContent = number;
    return copy;
  }
  function inBoth(told) {
    const line = document.createElement("p");
    ["en", "es"].forEach(function (language, at) {
      const text = document.createElement("span");
      text.className = "b";
      text.lang = language;
      text.textContent = told[at];
      line.append(text);
    });
    return line;
  }
  function say(section, parts, isWarning) {
    const box = section.querySelector(".feedback");
    box.replaceChildren(...parts);
    box.classList.toggle("warning", Boolean(isWarning));
    box.hidden = false;
    return box;
  }
  function remark(section, each) {
    return Array.isArray(each) ? inBoth(each) : section.parentNode.querySelectorAll("template.remark")[each].content.cloneNode(true);
  }
  function tell(section, tries, result) {
    const last = tries[tries.length - 1], done = isDone(tries, keyOf(section).tries);
    const remarks = done && last.answer ? [...result.remarks, ...result.ends || []] : result.remarks;
    const verdict = !last.answer ? phrase("skipped") : isRight(last.credit) ? phrase("right", shown(points(tries))) : phrase(done ? "wrong" : "not-yet");
    if (last.answer && last.credit > 0 && !isRight(last.credit)) verdict.append(phrase("part", Math.round(last.credit * 100) + "%"));
    const parts = [verdict, ...remarks.map(function (each) { return remark(section, each); })];
    if (!done) parts.push(phrase("again"));
    const box = say(section, parts);
    if (done) close(section, true);
    return done && box;
  }
  // What to read, then one step: each for a part of the points, before an answer.
  function showHints(section, taken) {
    const offered = Array.from(section.querySelectorAll("template.hint")), box = section.querySelector(".hints");
    box.replaceChildren(...offered.slice(0, taken).map(function (each) { return each.content.cloneNode(true); }));
    box.hidden = !taken;
    const button = section.querySelector("[data-do=hint]"), next = offered[taken];
    if (!button) return;
    button.hidden = !next;
    if (next) button.querySelector(".n").textContent = Math.round(next.dataset.cost * 100) + "%";
  }
  function hint(section) {
    const rows = load(), at = round(rows, section), taken = hintsAt(rows, at.session, at.position).length;
    const cost = Number(section.querySelectorAll("template.hint")[taken].dataset.cost);
    rows.hints = [...(rows.hints || []), { ...at, number: taken + 1, cost: cost, taken: now() }];
    store(rows);
    showHints(section, taken + 1);
    if (section.querySelector("[data-do=hint]").hidden) section.querySelector("[data-do=skip]").focus();
  }
  function close(section, isClosed) {
    section.classList.toggle("done", isClosed);
    section.querySelector(".solution").open = isClosed;
    section.querySelector("form").inert = isClosed;
    section.querySelector(".again").hidden = !isClosed;
  }
  // A text: which points were found in it, for its writer to correct.
  function askPoints(section, points) {
    const list = document.getElementById("quiz-points").content.firstElementChild.cloneNode(true);
    points.forEach(function (point) {
      const row = list.querySelector("label").cloneNode(true), parts = row.querySelectorAll("span");
      const box = row.querySelector("input");
      box.value = point.number;
      box.defaultChecked = point.found;
      parts[0].textContent = point.number;
      parts[1].prepend(...[].concat(point.says).length > 1 ? inBoth(point.says).childNodes : [point.says]);
      row.querySelector(point.found ? ".denied" : ".found").remove();
      if (point.words) row.querySelector(".words").textContent = "“" + point.words + "”";
      else row.querySelector(".dim").remove();
      list.append(row);
    });
    list.querySelector("label").remove();
    section.querySelector("form textarea").closest("p").after(list);
    list.querySelector("input").focus();
  }
  function answered(section, answer) {
    const key = keyOf(section);
    let result = { credit: 0, remarks: [], ends: [] };
    try {
      if (answer !== null && key.points && !section.querySelector("[name=mark]")) {
        askPoints(section, quiz.look(key, answer));
        return;
      }
      if (answer !== null) result = quiz.mark(key, answer);
    } catch (refusal) {
      if (!(refusal instanceof quiz.Refusal)) throw refusal;
      say(section, [inBoth(refusal.told)], true);
      return;
    }
    const box = tell(section, record(section, result.kept || answer || "", result.credit), result);
    if (box) box.focus();
  }
  function afresh(section) {
    const all = Array.from(section.parentNode.querySelectorAll(":scope > .question")), next = all[(all.indexOf(section) + 1) % all.length], form = next.querySelector("form");
    section.hidden = true;
    next.hidden = false;
    rounds.delete(next);
    form.querySelectorAll(".points").forEach(function (list) { list.remove(); });
    form.reset();
    form.querySelectorAll(".l.on").forEach(function (line) { line.classList.remove("on"); });
    form.querySelectorAll(".to-order").forEach(function (list) {
      list.append(...Array.from(list.children).sort(function (a, b) { return a.firstElementChild.value - b.firstElementChild.value; }));
    });
    form.querySelectorAll("input").forEach(function (field) { field.dispatchEvent(new Event("input", { bubbles: true })); });
    next.querySelector(".feedback").hidden = true;
    showHints(next, 0);
    close(next, false);
    since.set(next, Date.now());
    form.querySelector("input:not([type=hidden]), select, textarea, button").focus();
  }
  function restore(section) {
    const rows = load(), key = keyOf(section), row = key.row;
    since.set(section, Date.now());
    showHints(section, 0);
    const session = rows.sessions.findLast(function (each) {
      return isOf(each, key) && each.questions.includes(row.question);
    });
    if (!session) return;
    const tries = triesAt(rows, session.id, row.question), last = tries[tries.length - 1];
    rounds.set(section, session.id);
    section.parentNode.querySelectorAll(".question").forEach(function (other) { other.hidden = other !== section; });
    showHints(section, hintsAt(rows, session.id, session.questions.indexOf(row.question)).length);
    if (!last) return;
    let result = { remarks: [] };
    try { if (last.answer) result = quiz.mark(key, last.answer); } catch (changed) { /* another bank's */ }
    tell(section, tries, result);
  }

  document.querySelectorAll(".question[data-key]").forEach(function (section) {
    restore(section);
    section.addEventListener("submit", function (event) {
      event.preventDefault();
      answered(section, typed(event.target, keyOf(section)));
    });
    section.addEventListener("click", function (event) {
      const button = event.target.closest("[data-do]");
      if (!button) return;
      if (button.dataset.do === "skip") answered(section, null);
      else if (button.dataset.do === "hint") hint(section);
      else afresh(section);
    });
  });
  kept.addEventListener("click", function (event) {
    const rows = load(), does = event.target.closest("[data-keep]");
    if (!does) return;
    if (does.dataset.keep === "forget") {
      try { localStorage.removeItem(name); } catch (denied) { /* it kept nothing */ }
      location.reload();
      return;
    }
    // What is saved is whole: answers from now on belong to other quizzes.
    rows.sessions.forEach(function (each) { each.ended = each.ended || now(); });
    rounds.clear();
    store(rows);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify({ version: rules.history, ...rows }, null, 1)], { type: "application/json" }));
    link.download = "readerkit-quiz-" + phase + ".json";
    link.click();
  });
  tally();
})();
