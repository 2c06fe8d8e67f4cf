// What a turn asks its person: answered by a button, a key or words; withdrawn for all to see.

import * as api from "./api.js";
import { alarm, button, make, setText } from "./dom.js";
import { argumentBlock } from "./call.js";
import { showOutput } from "./diff.js";

const SETTLE_MS = 500; // a key that was meant for something else must not answer what has just come up
const WORDS = { yes: "Yes", session: "Yes, for this session", always: "Always", no: "No" };
const RUN = /^Run (\S+) with (\{.*\})\?(?:\n([^]*))?$/; // how an approval is asked for in one text, for surfaces that have no more
const KEYS = { yes: "y", session: "s", always: "a", no: "n" };

export class Question {
  constructor(session, asked) {
    this.session = session;
    this.id = asked.question;
    this.choices = asked.choices ?? [];
    this.kind = asked.kind ?? "question";
    this.isOpen = true;
    this.given = "";
    this.shownAt = performance.now();
    this.state = make("p", { class: "state", role: "status" });
    this.acts = make("div", { class: "acts" }, ...this.choices.map((choice, place) => this.#choice(choice, place)));
    this.form = this.kind === "question" ? this.#form() : null;
    const run = this.kind === "approval" && RUN.exec(asked.text);
    const title = run ? `May Hark run ${run[1]}?` : this.kind === "approval" ? "Hark asks for approval" : "Hark asks";
    this.node = make("section", { class: `question ${this.kind}`, role: "group", "aria-label": title },
      make("h3", {}, title), ...(run ? whatRuns(run) : [inWords(asked.text)]), this.acts, this.form, this.state);
    alarm(`${title}: ${asked.text.slice(0, 300)}`);
  }

  /** Answer by a single key; false when it is none of the choices. */
  press(key) {
    if (!this.isOpen || performance.now() - this.shownAt < SETTLE_MS) return false;
    const choice = this.choices.find((one, place) => key === String(place + 1) || (this.kind === "approval" && key === KEYS[one]));
    if (choice === undefined) return false;
    this.answer({ choice });
    return true;
  }

  async answer(given) {
    if (!this.isOpen) return;
    this.given = given.choice ?? given.text;
    this.#lock(true);
    setText(this.state, "sending …");
    try {
      await api.answer(this.session, this.id, given);
    } catch (error) {
      setText(this.state, error.message);
      this.#lock(!this.isOpen);
    }
  }

  /** It is answered, here or elsewhere, or taken back. */
  close(reason) {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.#lock(true);
    this.node.classList.add("closed", reason);
    const ends = { answered: `✓ answered${this.given ? `: ${this.given}` : ""}`, unanswered: "nobody answered in time: refused" };
    setText(this.state, ends[reason] ?? "withdrawn: the turn was stopped");
  }

  #lock(isLocked) {
    for (const node of this.node.querySelectorAll("button, input")) node.disabled = isLocked;
  }

  #choice(choice, place) {
    const key = this.kind === "approval" && KEYS[choice] ? KEYS[choice] : String(place + 1);
    const words = this.kind === "approval" ? WORDS[choice] ?? choice : choice;
    return button(words, () => this.answer({ choice }), { "data-choice": choice, "data-key": key, class: place ? "" : "main", "aria-keyshortcuts": key });
  }

  #form() {
    const field = make("input", { type: "text", "aria-label": "Your answer", placeholder: "Or in your own words" });
    const send = (event) => {
      event.preventDefault();
      if (field.value.trim()) this.answer({ text: field.value.trim() });
    };
    return make("form", { on: { submit: send } }, field, make("button", { type: "submit" }, "Answer"));
  }
}

/** Return what a call would do: what it is given, and why that is asked about. */
function whatRuns([, , given, why]) {
  return [argumentBlock(given), why ? make("p", { class: "why" }, why) : null];
}

function inWords(text) {
  const node = make("pre", { class: "asked" });
  showOutput(node, text);
  return node;
}
