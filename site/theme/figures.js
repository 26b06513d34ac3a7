// What one answers by looking: an order to move, a line to click, ranks to group, a
// row of a schedule to fill. Each only writes into the form; it is marked as if typed.
"use strict";
(function () {
  const read = window.readerkit.quiz.groups;

  function move(button) {
    const item = button.closest("li"), list = item.parentNode;
    const other = button.dataset.move < 0 ? item.previousElementSibling : item.nextElementSibling;
    if (!other) return;
    list.insertBefore(item, button.dataset.move < 0 ? other : other.nextElementSibling);
    button.focus(); // it was taken out, and put in again
    const said = list.parentNode.querySelector("[role=status]");
    said.textContent = Array.from(list.children).indexOf(item) + 1 + " / " + list.children.length;
  }
  function choose(line) {
    line.closest(".to-search").querySelectorAll(".l.on").forEach(function (other) { other.classList.remove("on"); });
    line.classList.add("on");
    line.closest("form").querySelector("input[name=answer]").value = line.firstElementChild.textContent;
  }

  // Ranks and their groups: the field beside them holds what is meant.
  function grouped(field) {
    try { return read(field.value); } catch (refused) { return []; }
  }
  function draw(field) {
    const groups = grouped(field);
    field.parentNode.querySelectorAll("[data-rank]").forEach(function (button) {
      const at = groups.findIndex(function (group) { return group.includes(Number(button.dataset.rank)); });
      button.dataset.group = at < 0 ? "" : String.fromCharCode(65 + at % 26);
      button.setAttribute("aria-label", "rank " + button.dataset.rank + ": " + (button.dataset.group || "–"));
    });
  }
  function put(button) {
    const field = button.closest("td").querySelector("input"), rank = Number(button.dataset.rank);
    const groups = grouped(field), all = button.parentNode.children.length;
    const at = groups.findIndex(function (group) { return group.includes(rank); });
    if (at >= 0) groups[at] = groups[at].filter(function (each) { return each !== rank; });
    // From each group to the next, then to one of its own, then to none.
    const next = at + 1;
    if (next < groups.length) groups[next].push(rank);
    else if (groups.filter(function (group) { return group.length; }).length < all && !(at >= 0 && !groups[at].length)) groups.push([rank]);
    field.value = groups.filter(function (group) { return group.length; })
      .map(function (group) { return group.sort(function (a, b) { return a - b; }).join(","); }).join("|");
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  document.addEventListener("click", function (event) {
    const button = event.target.closest("[data-move], [data-rank], .to-search .l");
    if (!button || !button.closest("form") || button.closest("form").inert) return;
    event.preventDefault();
    if (button.dataset.move) move(button);
    else if (button.dataset.rank) put(button);
    else choose(button);
  });
  document.addEventListener("input", function (event) {
    const field = event.target;
    if (field.closest(".of-rank")) field.parentNode.dataset.step = field.value.charAt(0).toUpperCase();
    if (field.parentNode.querySelector("[data-rank]")) draw(field);
  });
})();
