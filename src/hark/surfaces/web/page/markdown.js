// Markdown as DOM nodes, block by block: while a text grows, only the blocks that changed are made anew.

import { make, plain } from "./dom.js";
import { codeBlock } from "./diff.js";
import { inline } from "./markdown_inline.js";

const FENCE = /^( {0,3})(`{3,}|~{3,})\s*([^`\n]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])( +|$)/;
const TABLE_LINE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const MOST_DEPTH = 8;

/** Show a text in a node, whose children are its blocks. */
export function showMarkdown(node, text) {
  const blocks = split(plain(text));
  blocks.forEach((block, place) => {
    const old = node.childNodes[place];
    const source = `${block.kind}\n${block.lines.join("\n")}`;
    if (old?.source === source) return;
    const made = build(block, 0);
    made.source = source;
    if (old) old.replaceWith(made);
    else node.append(made);
  });
  while (node.childNodes.length > blocks.length) node.lastChild.remove();
}

/** Return the blocks of a text: `{kind, lines}`. */
function split(text) {
  const lines = text.replaceAll("\t", "    ").split("\n");
  const blocks = [];
  let place = 0;
  while (place < lines.length) {
    if (!lines[place].trim()) { place++; continue; }
    const [kind, end] = extent(lines, place);
    blocks.push({ kind, lines: lines.slice(place, end) });
    place = end;
  }
  return blocks;
}

/** Return the kind of the block that begins at a line, and where it ends. */
function extent(lines, place) {
  const line = lines[place];
  const fence = FENCE.exec(line);
  if (fence) return ["code", fenceEnd(lines, place, fence[2])];
  if (HEADING.test(line)) return ["heading", place + 1];
  if (RULE.test(line)) return ["rule", place + 1];
  if (QUOTE.test(line)) return ["quote", runEnd(lines, place, (one) => QUOTE.test(one))];
  if (ITEM.test(line)) return ["list", listEnd(lines, place)];
  if (isTable(lines, place)) return ["table", runEnd(lines, place, (one) => one.includes("|"))];
  return ["paragraph", paragraphEnd(lines, place)];
}

function runEnd(lines, place, belongs) {
  while (place < lines.length && belongs(lines[place])) place++;
  return place;
}

function fenceEnd(lines, place, mark) {
  for (let end = place + 1; end < lines.length; end++) {
    const line = lines[end].trim();
    if (line.startsWith(mark) && !line.replaceAll(mark[0], "")) return end + 1;
  }
  return lines.length;
}

function listEnd(lines, place) {
  let end = place + 1;
  for (let line = end; line < lines.length; line++) {
    const isInside = ITEM.test(lines[line]) || /^ {2,}\S/.test(lines[line]);
    if (!lines[line].trim()) continue;
    if (!isInside && (line > end || startsBlock(lines, line))) break;
    if (RULE.test(lines[line]) && !/^ /.test(lines[line])) break;
    end = line + 1;
  }
  return end;
}

function paragraphEnd(lines, place) {
  let end = place + 1;
  while (end < lines.length && lines[end].trim() && !startsBlock(lines, end)) end++;
  return end;
}

const startsBlock = (lines, place) => extentIsOther(lines[place]) || isTable(lines, place);
const extentIsOther = (line) => [FENCE, HEADING, RULE, QUOTE, ITEM].some((pattern) => pattern.test(line));
const isTable = (lines, place) => lines[place].includes("|") && TABLE_LINE.test(lines[place + 1] ?? "") && lines[place + 1].includes("-");

function build({ kind, lines }, depth) {
  switch (kind) {
    case "code": return fenced(lines);
    case "heading": return heading(lines[0]);
    case "rule": return make("hr");
    case "quote": return make("blockquote", {}, ...within(lines.map((line) => line.replace(QUOTE, "")), depth));
    case "list": return list(lines, depth);
    case "table": return table(lines);
    default: return make("p", {}, ...inline(lines.map((line) => line.trimStart()).join("\n").trimEnd()));
  }
}

/** Return the blocks inside of a block. */
function within(lines, depth) {
  if (depth >= MOST_DEPTH) return [make("p", {}, lines.join("\n"))];
  return split(lines.join("\n")).map((block) => build(block, depth + 1));
}

function fenced(lines) {
  const [, indent, mark, language] = FENCE.exec(lines[0]);
  const last = lines.at(-1).trim();
  const isClosed = lines.length > 1 && last.startsWith(mark) && !last.replaceAll(mark[0], "");
  const body = lines.slice(1, isClosed ? -1 : undefined);
  return codeBlock(body.map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line)).join("\n"), language.trim().split(/\s/)[0]);
}

function heading(line) {
  const [, marks, words] = HEADING.exec(line);
  return make(`h${Math.min(6, marks.length + 2)}`, {}, ...inline(words));
}

function list(lines, depth) {
  const [, , mark] = ITEM.exec(lines[0]);
  const isOrdered = /\d/.test(mark);
  const node = make(isOrdered ? "ol" : "ul", isOrdered && parseInt(mark, 10) !== 1 ? { start: parseInt(mark, 10) } : {});
  for (const item of items(lines)) node.append(listItem(item, depth));
  return node;
}

/** Return the lines of each item, without what stands before its words. */
function items(lines) {
  const all = [];
  const margin = ITEM.exec(lines[0])[1].length;
  let width = 0;
  for (const line of lines) {
    const found = ITEM.exec(line);
    if (found && found[1].length <= margin + 1) {
      width = found[0].length;
      all.push([line.slice(width)]);
    } else {
      all.at(-1).push(line.slice(Math.min(width, line.length - line.trimStart().length)));
    }
  }
  return all;
}

function listItem(lines, depth) {
  const task = /^\[([ xX])\]\s+/.exec(lines[0]);
  if (task) lines = [lines[0].slice(task[0].length), ...lines.slice(1)];
  const blocks = within(lines, depth);
  const first = blocks[0];
  const children = first?.tagName === "P" ? [...first.childNodes, ...blocks.slice(1)] : blocks;
  const box = task && make("input", { type: "checkbox", disabled: true, checked: task[1] !== " ", "aria-label": task[1] === " " ? "open" : "done" });
  return make("li", task ? { class: "task" } : {}, box, ...children);
}

function table(lines) {
  const sides = cells(lines[1]).map((cell) => (/^:-+:$/.test(cell) ? "center" : /-:$/.test(cell) ? "right" : null));
  const row = (line, tag) => make("tr", {}, ...cells(line).map((cell, place) => make(tag, { class: sides[place] }, ...inline(cell))));
  const body = lines.slice(2).map((line) => row(line, "td"));
  return make("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Table" },
    make("table", {}, make("thead", {}, row(lines[0], "th")), make("tbody", {}, ...body)));
}

function cells(line) {
  const inside = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return inside.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}
