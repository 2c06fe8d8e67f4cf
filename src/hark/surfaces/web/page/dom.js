// Building and finding nodes. Text always becomes a text node: nothing here reads HTML.

export const find = (id) => document.getElementById(id);

/** Return a new element: attributes by name, `on` for listeners; children are nodes or texts. */
export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else if (name === "text") node.textContent = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** Return a button that does something. */
export const button = (text, act, attributes = {}) => make("button", { type: "button", on: { click: act }, ...attributes }, text);

/** Set a text only when it is another one, so that screen readers hear changes alone. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Tell whether keys typed now belong to a field. */
export function isTyping() {
  const node = document.activeElement;
  return node instanceof HTMLTextAreaElement || node instanceof HTMLInputElement || node instanceof HTMLSelectElement;
}

/** Have a screen reader say something: when it has time, or at once. */
export const announce = (text) => { find("announcer").textContent = text; };
export const alarm = (text) => { find("alarm").textContent = text; };
