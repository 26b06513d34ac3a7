// A mechanism, step by step: by button, by arrow key, or by itself.
"use strict";
(function () {
  const PACE = 1400;
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  document.querySelectorAll(".player").forEach(function (player) {
    const frames = Array.from(player.querySelectorAll(".frame"));
    // Schedules go on along time: what has begun stays.
    const ticks = Number(player.dataset.ticks || 0), end = ticks || frames.length - 1;
    const when = player.querySelector(".when");
    const rows = Array.from(player.querySelectorAll(".steps tbody tr"));
    const box = player.querySelector(".stage-box"), said = player.querySelector(".said");
    const play = player.querySelector("[data-go=play]");
    let at = 0, timer = 0;

    function show(to) {
      at = Math.max(0, Math.min(end, to));
      frames.forEach(function (frame, index) {
        frame.classList.toggle("on", ticks ? Number(frame.dataset.at) < at : index === at);
      });
      player.querySelector(".at").textContent = at + " / " + end;
      if (ticks) {
        said.replaceChildren(when, String(at));
        return;
      }
      rows.forEach(function (row, index) { row.classList.toggle("on", index === at); });
      const cells = rows[at].querySelectorAll("td");
      follow();
      said.replaceChildren();
      if (cells[0].textContent.trim()) said.append(copy(cells[0]), ": ");
      said.append(copy(cells[1]));
    }
    // Where a drawing is wider than its box, what changes is in view.
    function follow() {
      const x = Number(frames[at].dataset.x) * box.scrollWidth;
      if (x < box.scrollLeft + 60 || x > box.scrollLeft + box.clientWidth - 40) box.scrollLeft = x - box.clientWidth / 2;
    }
    function copy(cell) {
      const part = document.createElement("span");
      cell.childNodes.forEach(function (node) { part.append(node.cloneNode(true)); });
      return part;
    }
    function stop() {
      clearInterval(timer);
      timer = 0;
      play.setAttribute("aria-pressed", "false");
    }
    function go(where) {
      if (where === "play" && !timer) {
        if (at === end) show(0);
        play.setAttribute("aria-pressed", "true");
        timer = setInterval(function () {
          show(at + 1);
          if (at === end) stop();
        }, ticks ? PACE / 3 : PACE);
        return;
      }
      stop();
      if (where === "first") show(0);
      if (where === "back") show(at - 1);
      if (where === "next") show(at + 1);
      if (where === "last") show(end);
    }
    player.addEventListener("click", function (event) {
      const button = event.target.closest("[data-go]");
      if (button) go(button.dataset.go);
    });
    player.addEventListener("keydown", function (event) {
      const isButton = event.target.closest("[data-go]"); // a space presses it
      if (event.target !== box && !isButton || isButton && event.key === " ") return;
      const where = { ArrowRight: "next", ArrowLeft: "back", Home: "first", End: "last", " ": "play" }[event.key];
      if (!where || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      go(where);
    });
    play.hidden = still.matches; // who wants no motion steps by hand
    show(ticks ? end : 0); // schedules are read whole first
  });
})();
