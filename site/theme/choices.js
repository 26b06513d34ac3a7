// Right behind the switches: the language that was chosen, before the text is shown.
(function () {
  var spanish = document.getElementById("lang-es");
  var search = document.getElementById("search");
  var words = JSON.parse(document.getElementById("words").textContent);
  function say(english) { return spanish.checked && words[english] || english; }
  window.readerkit = { say: say };
  function show() {
    document.documentElement.lang = spanish.checked ? "es" : "en";
    // An attribute holds one language at a time; the style sheet cannot choose it.
    search.placeholder = say("Search");
    search.setAttribute("aria-label", say("Search names, files, notes"));
  }
  try {
    if (localStorage.getItem("readerkit.lang") === "es") spanish.checked = true;
  } catch (denied) { /* English */ }
  show();
  document.querySelector(".lang").addEventListener("change", function () {
    show();
    try {
      localStorage.setItem("readerkit.lang", document.documentElement.lang);
    } catch (denied) { /* for this page only */ }
  });
})();
