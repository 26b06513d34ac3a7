// Addresses to hand on: of this page, of the same lines upstream, and as Markdown.
"use strict";
(function () {
  const { say } = window.readerkit;
  const here = document.querySelector(".here"), status = document.createElement("span");
  status.className = "unseen";
  status.setAttribute("role", "status");
  document.getElementById("content").append(status);

  function copy(text, button) {
    function done() {
      status.textContent = say("Copied");
      button.classList.add("done");
      setTimeout(function () { status.textContent = ""; button.classList.remove("done"); }, 1500);
    }
    function byHand() { // a page that is opened as a file may not have the clipboard
      const box = document.createElement("textarea");
      box.value = text;
      document.body.append(box);
      box.select();
      const isDone = document.execCommand("copy");
      box.remove();
      button.focus();
      if (isDone) done();
    }
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, byHand);
    else byHand();
  }
  // A button for each form; what has no upstream has no address there.
  function buttons(of) {
    const row = document.createElement("span");
    row.className = "forms";
    [["page", say("Page")], ["upstream", say("Upstream")], ["markdown", "Markdown"]].forEach(function (form) {
      if (!of[form[0]]) return;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = form[1];
      button.dataset.form = form[0];
      button.dataset.text = of[form[0]];
      button.addEventListener("click", function () { copy(button.dataset.text, button); });
      row.append(button);
    });
    return row;
  }
  function pageAt(fragment) { return location.href.replace(/#.*/, "") + fragment; }
  function linesOf(first, last) { return "#L" + first + (last > first ? "-L" + last : ""); }

  // --- lines and notes of a file ---
  // What the address names: lines, or a note; else the function that the reader is in.
  function named() {
    const lines = /^#L(\d+)(?:-L(\d+))?$/.exec(location.hash);
    if (lines) {
      const both = [Number(lines[1]), Number(lines[2] || lines[1])].sort(function (one, other) { return one - other; });
      return { first: both[0], last: both[1], fragment: linesOf(both[0], both[1]) };
    }
    const note = Array.from(document.querySelectorAll(".note")).find(function (each) { return "#" + each.id === location.hash; });
    if (note) {
      const spanish = document.documentElement.lang === "es" && note.querySelector('.title [lang="es"]');
      const title = spanish || note.querySelector(".title [lang=en]") || note.querySelector(".title");
      return { first: Number(note.dataset.first), last: Number(note.dataset.last), fragment: location.hash, title: title.textContent.trim() };
    }
    const place = window.readerkit.placeInFile();
    return { first: place[0], last: place[1], fragment: linesOf(place[0], place[1]) };
  }
  function ofLines(what) {
    const page = pageAt(what.fragment), base = here.dataset.upstream;
    const upstream = base ? base + linesOf(what.first, what.last) : "";
    const lines = here.dataset.path.split("/").pop() + ":" + what.first + (what.last > what.first ? "-" + what.last : "");
    const markdown = "[`" + lines + "`](" + (upstream || page) + ")" + (what.title ? ": " + what.title : "");
    return { page: page, upstream: upstream, markdown: markdown, lines: lines };
  }
  const menu = here && here.querySelector(".copy");
  if (menu) {
    function fill() {
      const of = ofLines(named()), label = document.createElement("code");
      label.textContent = of.lines;
      menu.lastElementChild.replaceChildren(label, " ", buttons(of));
    }
    menu.addEventListener("toggle", function () { if (menu.open) fill(); });
    document.querySelectorAll(".note .steps").forEach(function (steps) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "link";
      button.textContent = "#";
      button.setAttribute("aria-label", say("Copy a link to this note"));
      button.addEventListener("click", function (event) {
        event.stopPropagation();
        history.replaceState(null, "", "#" + steps.closest(".note").id);
        menu.open = true;
        fill();
        menu.querySelector("summary").focus({ preventScroll: true });
      });
      steps.append(button);
    });
  }

  // --- an event of a record ---
  const known = document.getElementById("upstreams"), bases = known ? JSON.parse(known.textContent) : {};
  function ofEvent(side) {
    const address = side.querySelector(".address"), frame = side.querySelector(".way [data-site]");
    const parts = frame ? /^([^:]+):(.+):(\d+)$/.exec(frame.dataset.site) : null;
    const upstream = parts && bases[parts[1]] ? bases[parts[1]] + parts[2] + "#L" + parts[3] : "";
    const said = address.parentElement.cloneNode(true);
    said.querySelector(".address").remove();
    const page = pageAt(address.hash);
    return { page: page, upstream: upstream, markdown: "[" + said.textContent.trim().replace(/\s+/g, " ") + "](" + page + ")" };
  }
  document.querySelectorAll(".record .picked").forEach(function (picked) {
    new MutationObserver(function () {
      picked.querySelectorAll(".address").forEach(function (address) {
        const side = address.closest("div");
        if (side.querySelector(".forms")) return;
        const row = document.createElement("p");
        row.append(say("Copy link") + ": ", buttons(ofEvent(side)));
        side.firstElementChild.after(row);
      });
    }).observe(picked, { childList: true });
  });
})();
