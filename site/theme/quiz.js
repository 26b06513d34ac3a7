// Only while the site is served: the quiz itself, turn by turn, instead of the self-check.
// The first turn came with the page, so that nothing moves.
"use strict";
(function () {
  const box = document.getElementById("quiz");
  if (!box) return;
  const selfCheck = document.querySelector(".self-check");

  const failed = document.createElement("p");
  failed.className = "warning";
  failed.setAttribute("role", "alert");

  function send(fields, answered) {
    const at = document.activeElement; // what is inert loses the focus
    let refused = "";
    box.inert = true;
    fetch("/-/quiz/" + box.dataset.phase, { method: "POST", body: new URLSearchParams(fields) })
      .then(function (answer) {
        if (answer.ok) return answer.text();
        refused = String(answer.status);
        throw new Error(refused);
      })
      .then(answered, function () {
        box.inert = false;
        tell(refused);
        if (isFree() && box.contains(at)) at.focus();
      });
  }
  function tell(refused) {
    const said = document.getElementById(refused ? "quiz-refused" : "quiz-lost").content;
    failed.replaceChildren(said.cloneNode(true), refused);
    if (!box.querySelector("form")) selfCheck.classList.remove("no-js"); // it needs no server
    box.append(failed);
  }
  function show(said) {
    box.inert = false;
    box.innerHTML = said; // the server's own template, which escapes
  }
  // A reader who went on to the search box meanwhile stays there.
  function isFree() {
    return document.activeElement === document.body || box.contains(document.activeElement);
  }
  function goOn(said) {
    const free = isFree();
    show(said);
    const first = free && box.querySelector("[data-focus]");
    if (!first) return;
    // A question to be mended: at the answer that was given.
    const field = first.querySelector("[name=answer]:checked") || first.querySelector("[name=answer]:not([type=hidden]), [data-move]");
    (field || first).focus();
  }
  box.addEventListener("submit", function (event) {
    event.preventDefault();
    send(new FormData(event.target, event.submitter), goOn);
  });
})();
