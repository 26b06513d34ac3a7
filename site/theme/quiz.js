// Only while the site is served: the quiz itself, turn by turn, instead of the self-check.
"use strict";
(function () {
  const box = document.getElementById("quiz");
  if (!box) return;
  box.hidden = false;
  document.querySelector(".self-check").hidden = true;

  function send(fields) {
    box.inert = true;
    fetch("/-/quiz/" + box.dataset.phase, { method: "POST", body: new URLSearchParams(fields) })
      .then(function (answer) { return answer.text(); })
      .catch(function (failure) { return failure; })
      .then(show);
  }
  function show(said) {
    box.inert = false;
    if (said instanceof Error) box.append(warning(said.message));
    else box.innerHTML = said; // the server's own template, which escapes
    const first = box.querySelector("[data-focus]");
    if (!first) return;
    // A question to be mended: at the answer that was given.
    const field = first.querySelector("[name=answer]:checked") || first.querySelector("[name=answer]");
    (field || first).focus();
  }
  function warning(text) {
    const made = document.createElement("p");
    made.className = "warning";
    made.setAttribute("role", "alert");
    made.textContent = text;
    return made;
  }
  box.addEventListener("submit", function (event) {
    event.preventDefault();
    send(new FormData(event.target, event.submitter));
  });
  box.addEventListener("click", function (event) {
    const line = event.target.closest(".to-search .l");
    if (!line) return;
    event.preventDefault();
    box.querySelectorAll(".l.on").forEach(function (other) { other.classList.remove("on"); });
    line.classList.add("on");
    box.querySelector("input[name=answer]").value = line.firstElementChild.textContent;
  });
  send({ do: "open" });
})();
