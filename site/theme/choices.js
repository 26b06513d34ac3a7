// Right behind the switches: the language that was chosen, before the text is shown.
(function () {
  var spanish = document.getElementById("lang-es");
  function say() {
    document.documentElement.lang = spanish.checked ? "es" : "en";
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
