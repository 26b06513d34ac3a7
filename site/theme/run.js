// Only while the site is served: the table of a run that is watched, as it is told.
"use strict";
(function () {
  const box = document.getElementById("run");
  let shown = "";
  function again() {
    if (document.hidden) return;
    fetch("/-/run/now").then(function (answer) {
      if (!answer.ok) throw new Error(answer.statusText);
      return answer.text();
    }).then(function (said) {
      // The same keeps what the reader has selected, and how far the table is scrolled.
      if (said !== shown) box.innerHTML = said; // the server's own template, which escapes
      shown = said;
    }, function () {}); // a server that is gone: what was told last stays
  }
  setInterval(again, 1000);
  document.addEventListener("visibilitychange", again);
})();
