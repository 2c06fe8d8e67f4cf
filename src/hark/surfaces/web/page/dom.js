// Helpers for DOM nodes. Text always becomes a text node and is never parsed as HTML.

export const find = (id) => document.getElementById(id);

// Terminal escape sequences, invisible characters and text direction overrides are removed, so that names and commands
// can't be displayed as something else.
const ESCAPE_SEQUENCES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2060-\u206f\ufeff]/g;

/** Return a text without escape sequences, invisible characters and direction overrides. */
export const plainText = (text) => String(text).replaceAll("\r\n", "\n").replace(ESCAPE_SEQUENCES, "").replace(INVISIBLE, "");

/** Return a new element. `attributes.on` has event listeners; children are nodes or texts, and null is skipped. */
export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    else if (name === "text") node.textContent = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined).map((child) => (child instanceof Node ? child : plainText(child))));
  return node;
}

/** Return a button with a click listener. */
export const button = (text, onClick, attributes = {}) => make("button", { type: "button", on: { click: onClick }, ...attributes }, text);

/** Set a node's text only if it differs, so that screen readers announce changes only. */
export function setText(node, text) {
  const plain = plainText(text);
  if (node.textContent !== plain) node.textContent = plain;
}

/** Return whether an input field has the focus. */
export function isTyping() {
  const node = document.activeElement;
  return node instanceof HTMLTextAreaElement || node instanceof HTMLInputElement || node instanceof HTMLSelectElement;
}

const MAX_ANNOUNCEMENTS = 5;

/** Have screen readers announce a text after the earlier ones. Replacing an earlier text would silence it. */
export function announce(text) {
  const announcer = find("announcer");
  announcer.append(make("p", {}, text));
  if (announcer.childElementCount > MAX_ANNOUNCEMENTS) announcer.firstElementChild.remove();
}

/** Have screen readers announce a text immediately. */
export const announceUrgently = (text) => { find("urgent-announcer").textContent = text; };
