// Only while the site is served: a note of one's own on the lines that are chosen.
"use strict";
(function () {
  const shown = document.currentScript.dataset; // the file, and the digest of its bytes
  if (!window.readerkit || !document.querySelector(".lines")) return;
  const kept = "readerkit.draft." + shown.upstream + ":" + shown.path;
  const holder = document.createElement("div");
  let form = null, open = null, lines = null;

  function chosen() {
    const match = /^#L(\d+)(?:-L(\d+))?$/.exec(location.hash);
    if (!match || !document.getElementById("L" + match[1])) return null;
    const ends = [Number(match[1]), Number(match[2] || match[1])].sort(function (a, b) { return a - b; });
    return ends;
  }
  function numbers(ends) { return ends ? ends[0] + (ends[1] > ends[0] ? "-" + ends[1] : "") : ""; }
  function typed() { return Object.fromEntries(new FormData(form)); }
  function keep() {
    const draft = { typed: typed(), lines: lines, digest: shown.digest, open: !form.hidden };
    try { localStorage.setItem(kept, JSON.stringify(draft)); } catch (denied) { /* for this page only */ }
  }
  function forget() { try { localStorage.removeItem(kept); } catch (denied) { /* nothing was kept */ } }
  function show() {
    lines = chosen() || lines;
    open.hidden = !form.hidden || !chosen();
    holder.querySelectorAll(".n").forEach(function (each) { each.textContent = numbers(lines); });
    form.querySelector(".place").textContent = shown.path + ":" + (numbers(lines) || "…");
    const kind = form.elements.kind.value;
    form.querySelectorAll("[data-kind]").forEach(function (part) {
      part.hidden = !part.dataset.kind.split(" ").includes(kind);
    });
  }
  function refuse(text) {
    const box = form.querySelector("[role=alert]");
    box.textContent = text;
    box.hidden = !text;
    if (text) box.scrollIntoView({ block: "nearest" });
  }
  function unfold(isOpen) {
    form.hidden = !isOpen;
    show();
    keep();
    if (isOpen) form.elements.title.focus();
    else open.focus();
  }
  function send() {
    const body = Object.assign({}, typed(), shown, { first: lines && lines[0], last: lines && lines[1] });
    const buttons = form.querySelectorAll("button");
    buttons.forEach(function (each) { each.disabled = true; });
    refuse("");
    window.readerkit.pending = fetch("/-/note", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
    }).then(function (answer) {
      if (!answer.ok) return answer.text().then(refuse);
      return answer.json().then(function (written) {
        forget();
        form.hidden = true;
        history.replaceState(null, "", "#" + written.id);
        setTimeout(function () { location.reload(); }, 5000); // unless the change is heard of before
      });
    }).catch(function (gone) { refuse(String(gone.message)); }).then(function () {
      buttons.forEach(function (each) { each.disabled = false; });
    });
  }
  function begin(html) {
    holder.id = "write";
    holder.innerHTML = html;
    document.body.append(holder);
    form = holder.querySelector("form");
    open = holder.querySelector(".write-here");
    let draft = null;
    try { draft = JSON.parse(localStorage.getItem(kept)); } catch (broken) { /* begin anew */ }
    if (draft && draft.typed) {
      Object.keys(draft.typed).forEach(function (name) {
        if (form.elements[name]) form.elements[name].value = draft.typed[name];
      });
      // In other bytes its lines may be others: they are chosen anew.
      if (draft.digest === shown.digest) lines = draft.lines;
      form.hidden = !draft.open;
    }
    show();
    open.addEventListener("click", function () { unfold(true); });
    form.addEventListener("input", function () { show(); keep(); });
    form.addEventListener("submit", function (event) { event.preventDefault(); send(); });
    form.addEventListener("click", function (event) {
      const what = event.target.closest("[data-do]");
      if (!what) return;
      if (what.dataset.do === "discard") form.reset();
      unfold(false);
      if (what.dataset.do === "discard") forget();
    });
    ["readerkit:lines", "hashchange"].forEach(function (kind) {
      (kind === "hashchange" ? window : document).addEventListener(kind, show);
    });
  }
  fetch("/-/note").then(function (answer) { return answer.ok ? answer.text() : Promise.reject(); }).then(begin).catch(function () {
    /* the server went away: live.js says so */
  });
})();
