// Only while the site is served: follow what changes, share what was read.
"use strict";
(function () {
  const own = document.querySelector("script[data-build]").dataset.build;

  // --- follow what changes ---
  // A page that differs in its notes only takes their text in where they stand: nothing
  // else moves, and a long page is not laid out anew.
  const parts = ".code .note, .contents";
  function taken(html) {
    const page = new DOMParser().parseFromString(html, "text/html");
    const stamp = page.querySelector("script[data-build]");
    const build = stamp.dataset.build, texts = new Map();
    delete stamp.dataset.build;
    const quiz = page.getElementById("quiz"); // goes its own way, turn by turn
    if (quiz) quiz.replaceChildren();
    page.querySelectorAll(parts).forEach(function (part) {
      texts.set(part.id || part.className, part.innerHTML);
      part.replaceChildren();
    });
    return { build: build, texts: texts, rest: page.documentElement.innerHTML };
  }
  const reached = "a[href], button:not(.link), input, summary, [tabindex]";
  function change(part, text) {
    const at = Array.from(part.querySelectorAll(reached)).indexOf(document.activeElement);
    const open = Array.from(part.querySelectorAll("details"), function (each) { return each.open; });
    part.innerHTML = text;
    part.querySelectorAll("details").forEach(function (each, index) { each.open = open[index] || false; });
    // The keyboard goes on from where it was.
    if (at >= 0) (part.querySelectorAll(reached)[at] || part).focus({ preventScroll: true });
  }
  function ask() {
    return fetch(location.pathname).then(function (answer) {
      if (!answer.ok) throw new Error(answer.statusText);
      return answer.text();
    }).then(taken);
  }
  const unmade = { build: own, texts: new Map(), rest: "" }; // the page is a fault
  let shown = ask().catch(function () { return unmade; }).then(function (page) {
    if (page.build !== own) throw new Error("changed while it was loaded");
    return page;
  });
  function follow(build) {
    shown = shown.then(function (before) {
      if (before.build === build) return before;
      return ask().then(function (after) {
        if (before.rest !== after.rest) throw new Error("more than notes changed");
        document.querySelectorAll(parts).forEach(function (part) {
          const id = part.id || part.className, text = after.texts.get(id);
          if (text !== before.texts.get(id)) change(part, text);
        });
        return after;
      });
    });
    shown.catch(function () {
      // A note that is on its way to the server arrives first.
      Promise.resolve(window.readerkit && window.readerkit.pending).then(function () { location.reload(); });
    });
  }
  function take(notes) { // they come before the build that they are of
    shown = shown.then(function (before) {
      Object.keys(notes).forEach(function (id) {
        const made = document.createElement("template"), part = document.getElementById(id);
        made.innerHTML = notes[id];
        const text = made.content.firstElementChild.innerHTML;
        if (part && text !== before.texts.get(id)) change(part, text);
        before.texts.set(id, text);
      });
      return before;
    });
  }
  function tell(fault) {
    let box = document.getElementById("fault");
    if (!box) {
      box = document.createElement("pre");
      box.id = "fault";
      box.className = "warning";
      box.setAttribute("role", "alert");
      box.tabIndex = 0; // it may be long, and scrolls
      document.body.prepend(box);
    }
    box.textContent = fault;
    box.hidden = !fault;
  }
  new EventSource("/-/changes?page=" + encodeURIComponent(location.pathname)).addEventListener("message", function (event) {
    const said = JSON.parse(event.data);
    if (said.notes) return take(said.notes);
    tell(said.fault);
    follow(said.build);
  });

  // --- share what was read ---
  function share(ids) {
    return fetch("/-/read", ids ? {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(ids),
    } : {}).then(function (answer) { return answer.json(); });
  }
  if (!window.readerkit) return; // a page that could not be made
  const mine = window.readerkit.read();
  share(mine.length ? mine : null).then(function (known) {
    document.dispatchEvent(new CustomEvent("readerkit:known", { detail: known }));
  });
  document.addEventListener("readerkit:read", function (event) { share([event.detail]); });
})();
