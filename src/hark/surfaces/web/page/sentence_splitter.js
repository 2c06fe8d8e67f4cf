// Splits a growing text into sentences, so that each one can be spoken before the whole text has arrived.

const END = /[.!?:;…]["'”’)]*\s+|[。！？]|\n/g;
const FENCE = /^[ \t]*(```|~~~)/;

/** Each sentence has its text, and its start and end in the whole text. A code block is one sentence. */
export class SentenceSplitter {
  constructor() {
    this.text = "";
    this.position = 0;
  }

  /** Append a text. Return the sentences that are now complete. */
  add(text) {
    this.text += text;
    return this.#takeSentences(false);
  }

  /** Return the remaining text as sentences. */
  end() {
    return this.#takeSentences(true);
  }

  #takeSentences(isEnd) {
    const sentences = [];
    for (let sentence = this.#next(isEnd); sentence; sentence = this.#next(isEnd)) {
      this.position = sentence.end;
      if (sentence.text.trim()) sentences.push(sentence);
    }
    return sentences;
  }

  #next(isEnd) {
    const remaining = this.text.slice(this.position);
    if (!remaining) return null;
    const fence = FENCE.exec(remaining);
    const length = fence ? codeLength(remaining, fence[1]) : sentenceLength(remaining);
    if (!length && !isEnd) return null;
    const end = this.position + (length || remaining.length);
    return { text: fence ? `${fence[1]}\n${fence[1]}` : this.text.slice(this.position, end), start: this.position, end };
  }
}

function sentenceLength(text) {
  END.lastIndex = 0;
  return END.exec(text) ? END.lastIndex : 0;
}

function codeLength(text, fence) {
  const firstLineEnd = text.indexOf("\n");
  const close = firstLineEnd < 0 ? null : new RegExp(`\\n[ \\t]*${fence}[ \\t]*\\n`).exec(text.slice(firstLineEnd));
  return close ? firstLineEnd + close.index + close[0].length : 0;
}
