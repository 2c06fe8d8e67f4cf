// Code and output as plain text, with coloured diff lines.

import { button, make, plainText } from "./dom.js";

const HUNK = /^@@ .* @@/m;
const FILE = /^(?:--- |\+\+\+ |diff --git |\*\*\* (?:Begin|Update|Add|Delete))/m;
const MAX_LINES = 5000;

export const isDiff = (text) => HUNK.test(text) && FILE.test(text);

/** Put a text into a <pre>, coloured if it is a diff. */
export function showOutput(node, text) {
  const plain = plainText(text);
  if (!isDiff(plain)) node.textContent = plain;
  else node.replaceChildren(...diffLines(plain));
}

function diffLines(text) {
  const lines = text.split("\n");
  if (lines.length > MAX_LINES) return [document.createTextNode(text)];
  return lines.map((line, index) => make("span", { class: lineClass(line) }, index < lines.length - 1 ? `${line}\n` : line));
}

function lineClass(line) {
  if (/^(?:\+\+\+|---) |^diff |^index |^\*\*\* /.test(line)) return "file";
  if (line.startsWith("@@")) return "hunk";
  if (line.startsWith("+")) return "added";
  if (line.startsWith("-")) return "removed";
  return null;
}

/** Return a code block with its language and a Copy button. */
export function codeBlock(text, language) {
  const isPatch = language === "diff" || language === "patch" || (!language && isDiff(text));
  const body = make("code", isPatch ? { class: "diff" } : {}, ...(isPatch ? diffLines(text) : [text]));
  const copy = button("Copy", async () => {
    await navigator.clipboard.writeText(text);
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  }, { class: "quiet copy", hidden: !navigator.clipboard }); // browsers offer no clipboard without TLS
  return make("div", { class: "code" },
    make("div", { class: "code-header" }, make("span", {}, language || "text"), copy),
    make("pre", { tabindex: "0" }, body));
}
