// A question or approval request of a turn. The user answers with a button or a text; a stop withdraws it.

import * as api from "./api.js";
import { announceUrgently, button, make, setText } from "./dom.js";
import { argumentBlock } from "./call.js";
import { showOutput } from "./diff.js";

const READ_DELAY_MS = 500; // text sent before the user could read the question must not answer it
const CHOICE_LABELS = { yes: "Allow once", session: "Allow for this session", always: "Always allow", no: "Don't allow" };
const APPROVAL_TEXT = /^Run (\S+) with (\{.*\})\?(?:\n([^]*))?$/; // the text of an approval request: tool, arguments, reasons
const CHOICE_LETTERS = { yes: "y", session: "s", always: "a", no: "n" };

export class Question {
  constructor(session, question, sendMessage) {
    this.session = session;
    this.sendMessage = sendMessage;
    this.id = question.question;
    this.choices = question.choices ?? [];
    this.kind = question.kind ?? "question";
    this.isOpenEnded = question.is_open_ended ?? false;
    this.isOpen = true;
    this.answerText = "";
    this.shownAt = performance.now();
    this.state = make("p", { class: "state", role: "status" });
    this.buttons = make("div", { class: "actions" }, ...this.choices.map((choice, index) => this.#choiceButton(choice, index)));
    this.form = this.kind === "question" ? this.#answerForm() : null;
    const request = this.kind === "approval" && APPROVAL_TEXT.exec(question.text);
    const title = request ? approvalTitle(request[1]) : this.kind === "approval" ? "Hark asks for approval" : "Hark asks";
    this.node = make("section", { class: `question ${this.kind}`, role: "group", "aria-label": title },
      make("h3", {}, title), ...(request ? approvalDetails(request) : [questionText(question.text)]), this.buttons, this.form, this.state);
    announceUrgently(`${title}: ${question.text.slice(0, 300)}`);
  }

  /** Whether the question is open and has been visible long enough to be read. */
  get isReadable() {
    return this.isOpen && performance.now() - this.shownAt >= READ_DELAY_MS;
  }

  /** Answer with the text of the message field. Raises an ApiError if the text is not accepted as an answer. */
  async answerInput(text) {
    const { answer } = await api.answerQuestion(this.session, this.id, { input: text });
    this.answerText = this.#choiceLabel(answer);
  }

  /** Send an answer: `{choice}` or `{input}`. An input that is a command or a stop word is sent as a message. */
  async answer(answer) {
    if (!this.isOpen) return;
    this.answerText = answer.choice === undefined ? answer.input : this.#choiceLabel(answer.choice);
    this.#setDisabled(true);
    setText(this.state, "Sending…");
    try {
      await api.answerQuestion(this.session, this.id, answer);
    } catch (error) {
      const isMessage = error.code === "not_an_answer";
      setText(this.state, isMessage ? "" : error.message);
      this.#setDisabled(!this.isOpen);
      if (isMessage) this.sendMessage(answer.input);
    }
  }

  /** Close the question: `reason` is "answered" (here or elsewhere), "unanswered" or "withdrawn". */
  close(reason) {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.#setDisabled(true);
    this.node.classList.add("closed", reason);
    const results = { answered: `✓ Answered${this.answerText ? `: ${this.answerText}` : ""}`, unanswered: "Not answered in time, so declined" };
    setText(this.state, results[reason] ?? "Withdrawn: the turn was stopped");
  }

  #setDisabled(isDisabled) {
    for (const node of this.node.querySelectorAll("button, input")) node.disabled = isDisabled;
  }

  #choiceLabel(choice) {
    return this.kind === "approval" ? CHOICE_LABELS[choice] ?? choice : choice;
  }

  #choiceButton(choice, index) {
    const key = (this.kind === "approval" && CHOICE_LETTERS[choice]) || String(index + 1);
    const attributes = { "data-choice": choice, class: index ? "" : "main", ...(!this.isOpenEnded && { "data-key": key }) };
    return button(this.#choiceLabel(choice), () => this.answer({ choice }), attributes);
  }

  #answerForm() {
    const field = make("input", { type: "text", "aria-label": "Your answer", placeholder: "Or in your own words" });
    const send = (event) => {
      event.preventDefault();
      if (field.value.trim()) this.answer({ input: field.value.trim(), is_directed: true });
    };
    return make("form", { on: { submit: send } }, field, make("button", { type: "submit" }, "Answer"));
  }
}

const approvalTitle = (tool) => (tool === "shell" ? "Allow this command?" : `Allow ${tool}?`);

/** Return the arguments of the call and the reasons for asking. */
function approvalDetails([, , argumentsText, reasons]) {
  return [argumentBlock(argumentsText), reasons ? make("p", { class: "reasons" }, reasons) : null];
}

function questionText(text) {
  const node = make("pre", { class: "question-text" });
  showOutput(node, text);
  return node;
}
