// Markdown as DOM nodes. While a text grows, only the blocks that changed are rebuilt.

import { make, plainText } from "./dom.js";
import { codeBlock } from "./diff.js";
import { renderInline } from "./markdown_inline.js";

const FENCE = /^( {0,3})(`{3,}|~{3,})\s*([^`\n]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])( +|$)/;
const TABLE_DIVIDER = /^\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?$/; // of a trimmed line
const MAX_DEPTH = 8;

/** Render a Markdown text into a node, one child per block. */
export function showMarkdown(node, text) {
  const blocks = splitBlocks(plainText(text));
  blocks.forEach((block, index) => {
    const old = node.childNodes[index];
    const source = `${block.kind}\n${block.lines.join("\n")}`;
    if (old?.source === source) return;
    const rendered = renderBlock(block, 0);
    rendered.source = source;
    if (old) old.replaceWith(rendered);
    else node.append(rendered);
  });
  while (node.childNodes.length > blocks.length) node.lastChild.remove();
}

/** Split a text into blocks: `{kind, lines}`. */
function splitBlocks(text) {
  const lines = text.replaceAll("\t", "    ").split("\n");
  const blocks = [];
  let start = 0;
  while (start < lines.length) {
    if (!lines[start].trim()) { start++; continue; }
    const [kind, end] = findBlockEnd(lines, start);
    blocks.push({ kind, lines: lines.slice(start, end) });
    start = end;
  }
  return blocks;
}

/** Return the kind of the block that starts at a line, and the index after its last line. */
function findBlockEnd(lines, start) {
  const first = lines[start];
  const fence = FENCE.exec(first);
  if (fence) return ["code", findFenceEnd(lines, start, fence[2])];
  if (HEADING.test(first)) return ["heading", start + 1];
  if (RULE.test(first)) return ["rule", start + 1];
  if (QUOTE.test(first)) return ["quote", findRunEnd(lines, start, (line) => QUOTE.test(line))];
  if (ITEM.test(first)) return ["list", findListEnd(lines, start)];
  if (isTable(lines, start)) return ["table", findRunEnd(lines, start, (line) => line.includes("|"))];
  return ["paragraph", findParagraphEnd(lines, start)];
}

function findRunEnd(lines, start, isInside) {
  let end = start;
  while (end < lines.length && isInside(lines[end])) end++;
  return end;
}

function findFenceEnd(lines, start, fence) {
  for (let end = start + 1; end < lines.length; end++) {
    const line = lines[end].trim();
    if (line.startsWith(fence) && !line.replaceAll(fence[0], "")) return end + 1;
  }
  return lines.length;
}

function findListEnd(lines, start) {
  let end = start + 1;
  for (let index = end; index < lines.length; index++) {
    const isInside = ITEM.test(lines[index]) || /^ {2,}\S/.test(lines[index]);
    if (!lines[index].trim()) continue;
    if (!isInside && (index > end || startsBlock(lines, index))) break;
    if (RULE.test(lines[index]) && !/^ /.test(lines[index])) break;
    end = index + 1;
  }
  return end;
}

function findParagraphEnd(lines, start) {
  let end = start + 1;
  while (end < lines.length && lines[end].trim() && !startsBlock(lines, end)) end++;
  return end;
}

const startsBlock = (lines, index) => startsMarkedBlock(lines[index]) || isTable(lines, index);
const startsMarkedBlock = (line) => [FENCE, HEADING, RULE, QUOTE, ITEM].some((pattern) => pattern.test(line));
const isTable = (lines, index) => lines[index].includes("|") && Boolean(lines[index + 1]?.includes("|")) && TABLE_DIVIDER.test(lines[index + 1].trim());

function renderBlock({ kind, lines }, depth) {
  switch (kind) {
    case "code": return renderCode(lines);
    case "heading": return renderHeading(lines[0]);
    case "rule": return make("hr");
    case "quote": return make("blockquote", {}, ...renderNested(lines.map((line) => line.replace(QUOTE, "")), depth));
    case "list": return renderList(lines, depth);
    case "table": return renderTable(lines);
    default: return make("p", {}, ...renderInline(lines.map((line) => line.trimStart()).join("\n").trimEnd()));
  }
}

/** Return the nodes of the blocks inside a block. */
function renderNested(lines, depth) {
  if (depth >= MAX_DEPTH) return [make("p", {}, lines.join("\n"))];
  return splitBlocks(lines.join("\n")).map((block) => renderBlock(block, depth + 1));
}

function renderCode(lines) {
  const [, indent, fence, language] = FENCE.exec(lines[0]);
  const last = lines.at(-1).trim();
  const isClosed = lines.length > 1 && last.startsWith(fence) && !last.replaceAll(fence[0], "");
  const body = lines.slice(1, isClosed ? -1 : undefined);
  return codeBlock(body.map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line)).join("\n"), language.trim().split(/\s/)[0]);
}

function renderHeading(line) {
  const [, hashes, text] = HEADING.exec(line);
  return make(`h${Math.min(6, hashes.length + 2)}`, {}, ...renderInline(text));
}

function renderList(lines, depth) {
  const [, , marker] = ITEM.exec(lines[0]);
  const isOrdered = /\d/.test(marker);
  const node = make(isOrdered ? "ol" : "ul", isOrdered && parseInt(marker, 10) !== 1 ? { start: parseInt(marker, 10) } : {});
  for (const item of splitItems(lines)) node.append(renderItem(item, depth));
  return node;
}

/** Return the lines of each list item, without its marker and indentation. */
function splitItems(lines) {
  const items = [];
  const margin = ITEM.exec(lines[0])[1].length;
  let width = 0;
  for (const line of lines) {
    const match = ITEM.exec(line);
    if (match && match[1].length <= margin + 1) {
      width = match[0].length;
      items.push([line.slice(width)]);
    } else {
      items.at(-1).push(line.slice(Math.min(width, line.length - line.trimStart().length)));
    }
  }
  return items;
}

function renderItem(lines, depth) {
  const task = /^\[([ xX])\]\s+/.exec(lines[0]);
  if (task) lines = [lines[0].slice(task[0].length), ...lines.slice(1)];
  const blocks = renderNested(lines, depth);
  const first = blocks[0];
  const children = first?.tagName === "P" ? [...first.childNodes, ...blocks.slice(1)] : blocks;
  const checkbox = task && make("input", { type: "checkbox", disabled: true, checked: task[1] !== " ", "aria-label": task[1] === " " ? "open" : "done" });
  return make("li", task ? { class: "task" } : {}, checkbox, ...children);
}

function renderTable(lines) {
  const alignments = splitCells(lines[1]).map((cell) => (/^:-+:$/.test(cell) ? "center" : /-:$/.test(cell) ? "right" : null));
  const renderRow = (line, tag) => make("tr", {}, ...splitCells(line).map((cell, index) => make(tag, { class: alignments[index] }, ...renderInline(cell))));
  const body = lines.slice(2).map((line) => renderRow(line, "td"));
  return make("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Table" },
    make("table", {}, make("thead", {}, renderRow(lines[0], "th")), make("tbody", {}, ...body)));
}

function splitCells(line) {
  const inside = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return inside.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}
