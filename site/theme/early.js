// Before anything is painted: what the reader chose last time.
(function () {
  var root = document.documentElement;
  root.classList.add("js");
  try {
    var theme = localStorage.getItem("readerkit.theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    // What is known of a page's answers is there before they are seen.
    var phase = /\/quiz\/(\d+)[./]/.exec(location.pathname);
    if (phase && localStorage.getItem("readerkit.quiz." + phase[1])) {
      root.classList.add("recalling");
      addEventListener("DOMContentLoaded", function () { root.classList.remove("recalling"); });
    }
  } catch (denied) { /* a browser that keeps nothing: the system's theme */ }
})();
