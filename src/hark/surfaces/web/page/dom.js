// Building and finding nodes. Text always becomes a text node: nothing here reads HTML.

export const find = (id) => document.getElementById(id);

// Colours of a terminal, signs that nobody sees, and those that turn the order of letters around: a name or a command must
// read as what it is.
const SEQUENCES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2060-\u206f\ufeff]/g;

/** Return a text as it may be shown. */
export const plain = (text) => String(text).replaceAll("\r\n", "\n").replace(SEQUENCES, "").replace(UNSEEN, "");

/** Return a new element: attributes by name, `on` for listeners; children are nodes or texts. */
export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else if (name === "text") node.textContent = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined).map((child) => (child instanceof Node ? child : plain(child))));
  return node;
}

/** Return a button that does something. */
export const button = (text, act, attributes = {}) => make("button", { type: "button", on: { click: act }, ...attributes }, text);

/** Set a text only when it is another one, so that screen readers hear changes alone. */
export function setText(node, text) {
  const shown = plain(text);
  if (node.textContent !== shown) node.textContent = shown;
}

/** Tell whether keys typed now belong to a field. */
export function isTyping() {
  const node = document.activeElement;
  return node instanceof HTMLTextAreaElement || node instanceof HTMLInputElement || node instanceof HTMLSelectElement;
}

/** Have a screen reader say something: when it has time, or at once. */
export const announce = (text) => { find("announcer").textContent = text; };
export const alarm = (text) => { find("alarm").textContent = text; };
