// Measures the CPU time of the page's text functions in Node: reads cases as JSON from standard input, and prints the
// shortest of five times in milliseconds for each case at one size and at twice that size.

const FOLDER = process.argv[2];
const REPETITIONS = 5;

/** A DOM node that only stores its children and text. */
globalThis.Node = class {
  constructor() { this.childNodes = []; }
  append(...children) { for (const child of children) this.childNodes.push(child); }
  replaceChildren(...children) { this.childNodes = children; }
  get lastChild() { return { remove: () => this.childNodes.pop() }; }
  replaceWith() {}
  setAttribute() {}
  addEventListener() {}
};
globalThis.navigator ??= {};
globalThis.document = { createElement: () => new Node(), createTextNode: (text) => Object.assign(new Node(), { text }) };

const { showMarkdown } = await import(`${FOLDER}/markdown.js`);
const { showOutput } = await import(`${FOLDER}/diff.js`);
const { SentenceSplitter } = await import(`${FOLDER}/sentence_splitter.js`);

const FUNCTIONS = {
  markdown: (text) => showMarkdown(new Node(), text),
  output: (text) => showOutput(new Node(), text),
  sentences: (text) => {
    const splitter = new SentenceSplitter();
    splitter.add(text);
    splitter.end();
  },
};

function measure(run, text) {
  const start = process.cpuUsage();
  run(text);
  const used = process.cpuUsage(start);
  return (used.user + used.system) / 1000;
}

let input = "";
for await (const piece of process.stdin) input += piece;
const results = JSON.parse(input).map(({ name, start, piece, size }) => {
  const texts = [1, 2].map((factor) => start + piece.repeat(Math.floor((size * factor) / piece.length)));
  const best = [Infinity, Infinity];
  for (let round = 0; round < REPETITIONS; round++) {
    texts.forEach((text, index) => { best[index] = Math.min(best[index], measure(FUNCTIONS[name], text)); });
  }
  return best;
});
console.log(JSON.stringify(results));
