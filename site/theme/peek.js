// What a name in code means, where one points at it or comes to it by key.
"use strict";
(function () {
  const main = document.getElementById("content"), root = document.body.dataset.root;
  const looks = {}, asked = {};
  const box = document.createElement("div");
  box.id = "peek";
  box.className = "peek";
  box.setAttribute("role", "tooltip");
  box.hidden = true;
  let link = null, timer = 0;

  // The looks are scripts, because a page that is opened as a file may not fetch.
  window.readerkitPeek = function (page, shown) {
    looks[page] = shown;
    if (link && placeOf(link).page === page) show();
  };
  const top = new URL(root || "./", location.href).pathname;
  function placeOf(each) {
    const line = /^#L(\d+)$/.exec(each.hash);
    if (!line || !each.pathname.startsWith(top)) return null;
    return { page: each.pathname.slice(top.length), line: line[1] };
  }
  function load(page) {
    if (asked[page]) return;
    asked[page] = true;
    const script = document.createElement("script");
    script.src = root + page.replace(/\.html$/, ".peek.js");
    document.head.append(script);
  }
  function named(each) {
    // Numbers of lines lead there too, and mean nothing else.
    return each.closest(".code") && !/^\d*$/.test(each.textContent) && placeOf(each);
  }
  function point(each, delay) {
    clearTimeout(timer);
    if (each === link && !box.hidden) return;
    timer = setTimeout(function () {
      leave();
      link = each;
      const place = placeOf(each);
      if (looks[place.page]) show();
      else load(place.page);
    }, delay);
  }
  function show() {
    const place = placeOf(link), told = looks[place.page][place.line];
    if (!told) return;
    const code = document.createElement("code"), spanish = document.documentElement.lang === "es";
    code.textContent = told[0];
    box.replaceChildren(code);
    if (told[1]) {
      const note = document.createElement("p");
      note.textContent = spanish && told[2] || told[1];
      box.append(note);
    }
    const where = document.createElement("p");
    where.className = "where";
    where.textContent = decodeURI(place.page).replace(/^read\/[^/]*\//, "").replace(/\.html$/, "") + ":" + place.line;
    box.append(where);
    main.append(box);
    box.hidden = false;
    link.setAttribute("aria-describedby", "peek");
    const at = link.getBoundingClientRect(), size = box.getBoundingClientRect();
    const fits = at.bottom + size.height + 8 < innerHeight || at.top < size.height + 8;
    box.style.top = scrollY + (fits ? at.bottom + 4 : at.top - size.height - 4) + "px";
    box.style.left = scrollX + Math.max(8, Math.min(at.left, document.documentElement.clientWidth - size.width - 8)) + "px";
  }
  function leave() {
    clearTimeout(timer);
    if (link) link.removeAttribute("aria-describedby");
    link = null;
    box.hidden = true;
  }
  function leaveSoon() {
    clearTimeout(timer);
    timer = setTimeout(leave, 200);
  }
  main.addEventListener("mousedown", function (event) { if (!box.contains(event.target)) leave(); });
  main.addEventListener("mouseover", function (event) {
    if (event.buttons) return; // text is being selected
    const each = event.target.closest("a");
    if (box.contains(event.target)) clearTimeout(timer);
    else if (each && named(each)) point(each, 200);
    else if (!each || each !== link) leaveSoon();
  });
  main.addEventListener("mouseleave", leaveSoon);
  main.addEventListener("focusin", function (event) {
    const each = event.target.closest("a");
    if (each && named(each)) point(each, 0);
    else leave();
  });
  main.addEventListener("focusout", leave);
  document.addEventListener("keydown", function (event) { if (event.key === "Escape") leave(); });
})();
