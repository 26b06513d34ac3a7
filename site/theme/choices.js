// Right behind the switches: the language that was chosen, before the text is shown.
(function () {
  var spanish = document.getElementById("lang-es");
  var search = document.getElementById("search");
  var words = window.readerkitWords; // in front of this script, where the site is built
  function say(english) { return spanish.checked && words[english] || english; }
  window.readerkit = { say: say };
  function show() {
    document.documentElement.lang = spanish.checked ? "es" : "en";
    // An attribute holds one language at a time; the style sheet cannot choose it.
    search.placeholder = say("Search");
    search.setAttribute("aria-label", say("Search names, files, notes"));
    document.querySelectorAll("[data-es]").forEach(change);
  }
  // Such an element has its Spanish with it, and gets its English back from there.
  function change(element) {
    var isTitle = /^(title|desc)$/.test(element.localName);
    var now = isTitle ? element.textContent : element.getAttribute("aria-label");
    if (!("en" in element.dataset)) element.dataset.en = now;
    now = spanish.checked ? element.dataset.es : element.dataset.en;
    if (isTitle) {
      element.textContent = now;
      element.setAttribute("lang", document.documentElement.lang);
    }
    else element.setAttribute("aria-label", now);
  }
  try {
    if (localStorage.getItem("readerkit.lang") === "es") spanish.checked = true;
  } catch (denied) { /* English */ }
  show();
  // What came after this script.
  if (spanish.checked) document.addEventListener("DOMContentLoaded", show);
  // What is read stays where it stands, whatever is longer above it in one language. The
  // page is put back for a moment, to see where that was.
  function stay(change) {
    var root = document.documentElement;
    root.lang = spanish.checked ? "en" : "es";
    var mark = scrollY > 0 && atTop(), before = mark && mark.getBoundingClientRect().top;
    change();
    if (!mark) return;
    root.style.overflowAnchor = "none"; // else the browser moves it once more
    scrollBy({ top: mark.getBoundingClientRect().top - before, behavior: "instant" });
    requestAnimationFrame(function () { requestAnimationFrame(function () { root.style.overflowAnchor = ""; }); });
  }
  // The first thing in view, under the bars, that is there in both languages.
  function atTop() {
    for (var y = 60; y < innerHeight; y += 12) {
      var seen = document.elementFromPoint(innerWidth / 2, y);
      var one = seen && seen.closest(".b"), whole = one ? one.parentElement : seen;
      if (whole && whole.closest("main *") && !whole.closest(".here, .tools, .only-es")) return whole;
    }
  }
  document.querySelector(".lang").addEventListener("change", function () {
    stay(show);
    try {
      localStorage.setItem("readerkit.lang", document.documentElement.lang);
    } catch (denied) { /* for this page only */ }
  });
})();
