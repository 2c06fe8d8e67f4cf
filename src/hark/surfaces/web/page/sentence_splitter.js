// A text that grows, cut where its sentences end: what can be spoken before all of it is there.

const END = /[.!?:;…]["'”’)]*\s+|[。！？]|\n/g;
const FENCE = /^[ \t]*(```|~~~)/;

/** Each piece has its text, and where it starts and ends in the whole. A block of code is one piece. */
export class Sentences {
  constructor() {
    this.text = "";
    this.place = 0;
  }

  /** Take more text; return the pieces that are whole now. */
  add(text) {
    this.text += text;
    return this.#pieces(false);
  }

  /** Return what is left: no more comes. */
  end() {
    return this.#pieces(true);
  }

  #pieces(isOver) {
    const pieces = [];
    for (let piece = this.#next(isOver); piece; piece = this.#next(isOver)) {
      this.place = piece.end;
      if (piece.text.trim()) pieces.push(piece);
    }
    return pieces;
  }

  #next(isOver) {
    const rest = this.text.slice(this.place);
    if (!rest) return null;
    const fence = FENCE.exec(rest);
    const size = fence ? fenceSize(rest, fence[1]) : sentenceSize(rest);
    if (!size && !isOver) return null;
    const end = this.place + (size || rest.length);
    return { text: fence ? `${fence[1]}\n${fence[1]}` : this.text.slice(this.place, end), start: this.place, end };
  }
}

function sentenceSize(rest) {
  END.lastIndex = 0;
  return END.exec(rest) ? END.lastIndex : 0;
}

function fenceSize(rest, mark) {
  const begins = rest.indexOf("\n");
  const close = begins < 0 ? null : new RegExp(`\\n[ \\t]*${mark}[ \\t]*\\n`).exec(rest.slice(begins));
  return close ? begins + close.index + close[0].length : 0;
}
