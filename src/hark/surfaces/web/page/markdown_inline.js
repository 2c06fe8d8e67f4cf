// Inline Markdown as DOM nodes: code, bold, italic, strikethrough, links and bare URLs. HTML in the text stays text.

import { make } from "./dom.js";

const SAFE_PROTOCOLS = ["http:", "https:", "mailto:"];
const ESCAPABLE = "\\`*_{}[]()#+-.!~|<>";
const BARE_URL = /^https?:\/\/[^\s<>"'`]+/;
const LINK = /^\[((?:[^\[\]\\]|\\.|\[[^\[\]]*\])*)\]\(\s*<?([^\s<>()]*(?:\([^\s()]*\)[^\s<>()]*)*)>?(?:\s+["'(][^\n]{0,500}?["')])?\s*\)/;
const MAX_DEPTH = 12;
const MAX_EMPHASIS_CHARACTERS = 4000; // limits the search for a closing marker

/** Return the normalized URL if a link to it is safe, else null. */
export function safeUrl(text) {
  let url;
  try {
    url = new URL(text);
  } catch {
    return null; // also for relative URLs, which would point into this page
  }
  return SAFE_PROTOCOLS.includes(url.protocol) ? url.href : null;
}

/** Return the nodes of a line or paragraph. */
export function renderInline(text, depth = 0) {
  const nodes = [];
  let plain = "";
  let index = 0;
  const flush = () => {
    if (plain) nodes.push(document.createTextNode(plain));
    plain = "";
  };
  while (index < text.length) {
    const element = depth < MAX_DEPTH ? parseElement(text, index, depth) : null;
    if (element) {
      flush();
      nodes.push(element.node);
      index = element.end;
    } else if (text[index] === "\\" && ESCAPABLE.includes(text[index + 1] ?? " ")) {
      plain += text[index + 1];
      index += 2;
    } else {
      plain += text[index++];
    }
  }
  flush();
  return nodes;
}

/** Return the element that starts at an index, as `{node, end}`, or null. */
function parseElement(text, index, depth) {
  const remaining = () => text.slice(index);
  switch (text[index]) {
    case "`": return parseCode(text, index);
    case "*": return parseEmphasis(text, index, "**", "strong", depth) ?? parseEmphasis(text, index, "*", "em", depth);
    case "_": return isWordCharacter(text[index - 1]) ? null : parseEmphasis(text, index, "__", "strong", depth) ?? parseEmphasis(text, index, "_", "em", depth);
    case "~": return parseEmphasis(text, index, "~~", "del", depth);
    case "!": return text[index + 1] === "[" ? parseImage(text.slice(index + 1), index + 1) : null;
    case "[": return parseLink(remaining(), index, depth);
    case "<": return parseAutolink(remaining(), index);
    case "h": return isWordCharacter(text[index - 1]) ? null : parseBareUrl(remaining(), index);
    case "\n": return { node: make("br"), end: index + 1 };
    default: return null;
  }
}

const isWordCharacter = (character) => character !== undefined && /[\p{L}\p{N}_]/u.test(character);

function parseCode(text, index) {
  let ticks = 1;
  while (text[index + ticks] === "`") ticks++;
  const marker = "`".repeat(ticks);
  let end = text.indexOf(marker, index + ticks);
  while (end !== -1 && text[end + ticks] === "`") {
    while (text[end] === "`") end++;
    end = text.indexOf(marker, end);
  }
  if (end === -1) return { node: document.createTextNode(marker), end: index + ticks };
  const inside = text.slice(index + ticks, end).replaceAll("\n", " ");
  return { node: make("code", {}, /^ .*\S.* $/.test(inside) ? inside.slice(1, -1) : inside), end: end + ticks };
}

function parseEmphasis(text, index, marker, tag, depth) {
  const start = index + marker.length;
  if (!text.startsWith(marker, index) || /\s/.test(text[start] ?? " ")) return null;
  for (let end = text.indexOf(marker, start + 1); end !== -1 && end - start < MAX_EMPHASIS_CHARACTERS; end = text.indexOf(marker, end + 1)) {
    if (/[\s\\]/.test(text[end - 1])) continue;
    if (marker.length === 1 && (text[end + 1] === marker || text[end - 1] === marker)) { end++; continue; }
    while (marker.length === 2 && text[end + 2] === marker[0]) end++;
    if (marker[0] === "_" && isWordCharacter(text[end + marker.length])) continue;
    return { node: make(tag, {}, ...renderInline(text.slice(start, end), depth + 1)), end: end + marker.length };
  }
  return null;
}

/** Return a link that sends no referrer. An unsafe URL becomes plain text with a warning. */
function makeLink(url, children) {
  const safe = safeUrl(url);
  if (safe === null) return make("span", { class: "unsafe-link", title: "This link is not safe to open" }, ...children);
  return make("a", { href: safe, rel: "noopener noreferrer nofollow", target: "_blank" }, ...children);
}

function parseLink(remaining, index, depth) {
  const match = LINK.exec(remaining);
  return match && { node: makeLink(match[2], renderInline(match[1], depth + 1)), end: index + match[0].length };
}

/** Return an image as a link. Loading it would reveal the reader to the image's server. */
function parseImage(remaining, index) {
  const match = LINK.exec(remaining);
  return match && { node: makeLink(match[2], [`🖼 ${match[1] || match[2]}`]), end: index + match[0].length };
}

function parseAutolink(remaining, index) {
  const match = /^<((?:https?:\/\/|mailto:)[^\s<>]+)>/.exec(remaining);
  return match && { node: makeLink(match[1], [match[1]]), end: index + match[0].length };
}

function parseBareUrl(remaining, index) {
  let url = BARE_URL.exec(remaining)?.[0];
  if (!url) return null;
  url = url.replace(/(?<![.,;:!?*_~])[.,;:!?*_~]+$/, "");
  for (let unmatched = url.split(")").length - url.split("(").length; unmatched > 0 && url.endsWith(")"); unmatched--) url = url.slice(0, -1);
  return { node: makeLink(url, [url]), end: index + url.length };
}
