// Before anything is painted: what the reader chose last time.
(function () {
  var root = document.documentElement;
  root.classList.add("js");
  try {
    var theme = localStorage.getItem("readerkit.theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch (denied) { /* a browser that keeps nothing: the system's theme */ }
})();
