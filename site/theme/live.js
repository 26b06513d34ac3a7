// Only while the site is served: reload after a build, share what was read.
"use strict";
(function () {
  new EventSource("/-/changes").addEventListener("message", function (event) {
    const said = JSON.parse(event.data);
    if (said.kind === "reload") location.reload();
    else {
      let box = document.getElementById("fault");
      if (!box) {
        box = document.createElement("pre");
        box.id = "fault";
        box.className = "warning";
        box.setAttribute("role", "alert");
        document.body.prepend(box);
      }
      box.textContent = said.text;
    }
  });
  function share(ids) {
    return fetch("/-/read", ids ? {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(ids),
    } : {}).then(function (answer) { return answer.json(); });
  }
  const mine = window.readerkit.read();
  share(mine.length ? mine : null).then(function (known) {
    document.dispatchEvent(new CustomEvent("readerkit:known", { detail: known }));
  });
  document.addEventListener("readerkit:read", function (event) { share([event.detail]); });
})();
