/** Elements of the page. What they show is set as text, never as markup: keys may be anything. */

function element(kind, className = "", text = "") {
  const made = document.createElement(kind);
  made.className = className;
  made.textContent = text;
  return made;
}

function button(className, text, action) {
  const made = element("button", className, text);
  made.type = "button";
  made.addEventListener("click", action);
  return made;
}

/** What shows the colour of a cluster beside its name. */
function dot(colour) {
  const made = element("span", "dot");
  made.style.backgroundColor = colour;
  return made;
}

/* Texts. */

const LONGEST = 60; // characters of a key or a value, where it is one of several

function shortText(text) {
  return text.length <= LONGEST ? text : `${Array.from(text.slice(0, 2 * LONGEST)).slice(0, LONGEST - 1).join("")}…`;
}

function shortNumber(value) {
  const rounded = Number(value.toPrecision(4));
  const text = Math.abs(rounded) >= 1e7 ? rounded.toExponential() : String(rounded);
  return text.replace("e+", "e");
}

function counted(number, what = "point") {
  return `${number.toLocaleString("en-GB")} ${what}${number === 1 ? "" : "s"}`;
}

function share(part, whole) {
  const percent = (100 * part) / whole;
  return `${percent > 0 && percent < 1 ? percent.toPrecision(1) : Math.round(percent)}%`;
}
