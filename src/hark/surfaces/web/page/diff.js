// Code and output: as it is, with the lines of a diff in their colours.

import { button, make, plain } from "./dom.js";

const HUNK = /^@@ .* @@/m;
const FILE = /^(?:--- |\+\+\+ |diff --git |\*\*\* (?:Begin|Update|Add|Delete))/m;
const MOST_LINES = 5000;

export const isDiff = (text) => HUNK.test(text) && FILE.test(text);

/** Put a text into a <pre>, coloured when it is a diff. */
export function showOutput(node, text) {
  const shown = plain(text);
  if (!isDiff(shown)) node.textContent = shown;
  else node.replaceChildren(...diffLines(shown));
}

function diffLines(text) {
  const lines = text.split("\n");
  if (lines.length > MOST_LINES) return [document.createTextNode(text)];
  return lines.map((line, place) => make("span", { class: kindOf(line) }, place < lines.length - 1 ? `${line}\n` : line));
}

function kindOf(line) {
  if (/^(?:\+\+\+|---) |^diff |^index |^\*\*\* /.test(line)) return "file";
  if (line.startsWith("@@")) return "hunk";
  if (line.startsWith("+")) return "added";
  if (line.startsWith("-")) return "removed";
  return null;
}

/** Return a block of code with its language and a button that copies it. */
export function codeBlock(text, language) {
  const isPatch = language === "diff" || language === "patch" || (!language && isDiff(text));
  const body = make("code", isPatch ? { class: "diff" } : {}, ...(isPatch ? diffLines(text) : [text]));
  const copy = button("Copy", async () => {
    await navigator.clipboard.writeText(text);
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  }, { class: "quiet copy", hidden: !navigator.clipboard }); // there is none without TLS
  return make("div", { class: "code" },
    make("div", { class: "code-head" }, make("span", {}, language || "text"), copy),
    make("pre", { tabindex: "0" }, body));
}
