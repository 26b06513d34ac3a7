// Questions in a text: what marks them (quiz-rules, marks, figures, practice) is fetched
// once a reader answers one, or where this browser keeps an answer to one of them.
"use strict";
(function () {
  const place = document.querySelector(".asks-of");
  if (!place) return;
  let ready = false;

  function load() {
    return window.readerkit.fetchScripts(place.dataset.scripts.split(" ")).then(function () { ready = true; });
  }
  function submit(form, button) {
    load().then(function () {
      if (!form.closest(".question").classList.contains("done")) form.requestSubmit(button);
    });
  }
  function choose(button) {
    const form = button.closest("form");
    form.querySelectorAll("[data-choose]").forEach(function (other) {
      other.setAttribute("aria-pressed", String(other === button));
    });
    form.querySelector("[name=answer]").value = button.dataset.choose;
    submit(form);
  }
  function asked(event) { return event.target.closest && event.target.closest(".asked"); }

  ["pointerdown", "focusin"].forEach(function (kind) {
    document.addEventListener(kind, function (event) { if (asked(event)) load(); });
  });
  document.addEventListener("submit", function (event) {
    if (ready || !asked(event)) return;
    event.preventDefault();
    event.stopPropagation();
    submit(event.target, event.submitter);
  }, true);
  document.addEventListener("click", function (event) {
    const button = asked(event) && event.target.closest("button");
    if (!button) return;
    if (button.dataset.choose) choose(button);
    else if (!ready && button.type === "button") {
      event.stopPropagation();
      load().then(function () { button.click(); });
    }
  }, true);

  const names = Array.from(document.querySelectorAll(".asked[id]"), function (each) { return each.id.slice(2); });
  try {
    const kept = localStorage.getItem("readerkit.quiz." + document.querySelector(".kept").dataset.phase) || "";
    if (names.some(function (name) { return kept.includes(JSON.stringify(name)); })) load();
  } catch (denied) { /* nothing is kept */ }
})();
