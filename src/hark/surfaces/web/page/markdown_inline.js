// Markdown within a line, as DOM nodes: code, bold, italic, struck, links, addresses. Nothing of the text is read as HTML.

import { make } from "./dom.js";

const SAFE = ["http:", "https:", "mailto:"];
const ESCAPABLE = "\\`*_{}[]()#+-.!~|<>";
const ADDRESS = /^https?:\/\/[^\s<>"'`]+/;
const LINK = /^\[((?:[^\[\]\\]|\\.|\[[^\[\]]*\])*)\]\(\s*<?([^\s<>()]*(?:\([^\s()]*\)[^\s<>()]*)*)>?(?:\s+["'(][^\n]*?["')])?\s*\)/;
const MOST_DEPTH = 12;
const MOST_REACH = 4000; // how far apart two marks of emphasis may be: a bound on the work, not on the words

/** Return the address if a link may lead there, else null. */
export function safeAddress(text) {
  let url;
  try {
    url = new URL(text);
  } catch {
    return null; // also addresses without a scheme: the page has no place of its own to lead to
  }
  return SAFE.includes(url.protocol) ? url.href : null;
}

/** Return the nodes of a line or paragraph. */
export function inline(text, depth = 0) {
  const nodes = [];
  let plain = "";
  let place = 0;
  const flush = () => {
    if (plain) nodes.push(document.createTextNode(plain));
    plain = "";
  };
  while (place < text.length) {
    const found = depth < MOST_DEPTH ? piece(text, place, depth) : null;
    if (found) {
      flush();
      nodes.push(found.node);
      place = found.end;
    } else if (text[place] === "\\" && ESCAPABLE.includes(text[place + 1] ?? " ")) {
      plain += text[place + 1];
      place += 2;
    } else {
      plain += text[place++];
    }
  }
  flush();
  return nodes;
}

function piece(text, place, depth) {
  const rest = () => text.slice(place);
  switch (text[place]) {
    case "`": return code(text, place);
    case "*": return emphasis(text, place, "**", "strong", depth) ?? emphasis(text, place, "*", "em", depth);
    case "_": return isWord(text[place - 1]) ? null : emphasis(text, place, "__", "strong", depth) ?? emphasis(text, place, "_", "em", depth);
    case "~": return emphasis(text, place, "~~", "del", depth);
    case "!": return text[place + 1] === "[" ? picture(text.slice(place + 1), place + 1) : null;
    case "[": return link(rest(), place, depth);
    case "<": return bracketed(rest(), place);
    case "h": return isWord(text[place - 1]) ? null : bare(rest(), place);
    case "\n": return { node: make("br"), end: place + 1 };
    default: return null;
  }
}

const isWord = (letter) => letter !== undefined && /[\p{L}\p{N}_]/u.test(letter);

function code(text, place) {
  let ticks = 1;
  while (text[place + ticks] === "`") ticks++;
  const mark = "`".repeat(ticks);
  let end = text.indexOf(mark, place + ticks);
  while (end !== -1 && text[end + ticks] === "`") {
    while (text[end] === "`") end++;
    end = text.indexOf(mark, end);
  }
  if (end === -1) return { node: document.createTextNode(mark), end: place + ticks };
  const inside = text.slice(place + ticks, end).replaceAll("\n", " ");
  return { node: make("code", {}, /^ .*\S.* $/.test(inside) ? inside.slice(1, -1) : inside), end: end + ticks };
}

function emphasis(text, place, mark, tag, depth) {
  const from = place + mark.length;
  if (!text.startsWith(mark, place) || /\s/.test(text[from] ?? " ")) return null;
  for (let end = text.indexOf(mark, from + 1); end !== -1 && end - from < MOST_REACH; end = text.indexOf(mark, end + 1)) {
    if (/[\s\\]/.test(text[end - 1])) continue;
    if (mark.length === 1 && (text[end + 1] === mark || text[end - 1] === mark)) { end++; continue; }
    while (mark.length === 2 && text[end + 2] === mark[0]) end++;
    if (mark[0] === "_" && isWord(text[end + mark.length])) continue;
    return { node: make(tag, {}, ...inline(text.slice(from, end), depth + 1)), end: end + mark.length };
  }
  return null;
}

/** Return an anchor that tells the other side nothing; the words alone where it may not lead. */
function anchor(address, children) {
  const safe = safeAddress(address);
  if (safe === null) return make("span", { class: "no-link", title: "This link leads nowhere safe" }, ...children);
  return make("a", { href: safe, rel: "noopener noreferrer nofollow", target: "_blank" }, ...children);
}

function link(rest, place, depth) {
  const found = LINK.exec(rest);
  return found && { node: anchor(found[2], inline(found[1], depth + 1)), end: place + found[0].length };
}

/** A picture elsewhere is not loaded: that would tell its server who reads what. It is a link to it. */
function picture(rest, place) {
  const found = LINK.exec(rest);
  return found && { node: anchor(found[2], [`🖼 ${found[1] || found[2]}`]), end: place + found[0].length };
}

function bracketed(rest, place) {
  const found = /^<((?:https?:\/\/|mailto:)[^\s<>]+)>/.exec(rest);
  return found && { node: anchor(found[1], [found[1]]), end: place + found[0].length };
}

function bare(rest, place) {
  let found = ADDRESS.exec(rest)?.[0];
  if (!found) return null;
  found = found.replace(/[.,;:!?*_~]+$/, "");
  while (found.endsWith(")") && found.split("(").length < found.split(")").length) found = found.slice(0, -1);
  return { node: anchor(found, [found]), end: place + found.length };
}
