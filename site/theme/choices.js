// Right behind the switches: the language that was chosen, before the text is shown.
(function () {
  var spanish = document.getElementById("lang-es");
  var search = document.getElementById("search");
  var english = { text: search.placeholder, label: search.getAttribute("aria-label") };
  function say() {
    document.documentElement.lang = spanish.checked ? "es" : "en";
    // An attribute holds one language at a time; the style sheet cannot choose it.
    search.placeholder = spanish.checked ? search.dataset.es : english.text;
    search.setAttribute("aria-label", spanish.checked ? search.dataset.esLabel : english.label);
  }
  try {
    if (localStorage.getItem("readerkit.lang") === "es") spanish.checked = true;
  } catch (denied) { /* English */ }
  say();
  document.querySelector(".lang").addEventListener("change", function () {
    say();
    try {
      localStorage.setItem("readerkit.lang", document.documentElement.lang);
    } catch (denied) { /* for this page only */ }
  });
})();
