// The message field. It is never disabled. Enter sends, other keys steer or queue, and files are attached as base64.

import { button, find, make } from "./dom.js";
import { formatSize } from "./format.js";

const MAX_FILES = 20;
const MAX_BYTES = 14e6; // base64 adds a third, and the server's default limit is 20 MB
const DRAFT_PREFIX = "hark-draft-";

/** Append a text that could not be sent to the session's draft. */
export function addToDraft(session, text) {
  const draft = sessionStorage.getItem(DRAFT_PREFIX + session);
  sessionStorage.setItem(DRAFT_PREFIX + session, draft ? `${draft}\n${text}` : text);
}

export class Composer {
  /** `send(text, delivery, files)` sends a message or an answer. */
  constructor({ send, showProblem }) {
    this.callbacks = { send, showProblem };
    this.files = [];
    this.session = "";
    this.input = find("input");
    this.fileList = find("files");
    find("composer").addEventListener("submit", (event) => { event.preventDefault(); this.submit(); });
    find("steer").addEventListener("click", () => this.submit("steer"));
    find("queue-message").addEventListener("click", () => this.submit("queue"));
    find("attach").addEventListener("click", () => find("file-input").click());
    find("file-input").addEventListener("change", (event) => { this.attach(event.target.files); event.target.value = ""; });
    this.input.addEventListener("keydown", (event) => this.#onKey(event));
    this.input.addEventListener("input", () => this.#onInput());
    this.input.addEventListener("paste", (event) => {
      if (event.clipboardData.files.length) { event.preventDefault(); this.attach(event.clipboardData.files); }
    });
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => { event.preventDefault(); this.attach(event.dataTransfer.files); });
  }

  /** Switch to a session and its draft. The draft of the previous session is already stored. */
  openSession(session) {
    this.session = session;
    this.input.value = sessionStorage.getItem(DRAFT_PREFIX + session) ?? "";
    this.files = [];
    this.#drawFiles();
    this.#onInput();
  }

  submit(delivery = null) {
    const text = this.input.value;
    if (!text.trim() && !this.files.length) return this.input.focus();
    const files = this.files;
    this.input.value = "";
    this.files = [];
    this.#drawFiles();
    this.#onInput();
    this.input.focus();
    this.callbacks.send(text, delivery, files);
  }

  async attach(fileList) {
    const session = this.session;
    for (const file of [...fileList]) { // a copy, because the browser empties the original list
      const size = this.files.reduce((sum, { size: bytes }) => sum + bytes, file.size);
      if (this.files.length >= MAX_FILES) return this.callbacks.showProblem(`A message can have at most ${MAX_FILES} attachments.`);
      if (size > MAX_BYTES) return this.callbacks.showProblem(`${file.name} is too large: ${formatSize(MAX_BYTES)} in all.`);
      if (!file.size) { this.callbacks.showProblem(`${file.name} is empty.`); continue; }
      const data = await toBase64(file).catch(() => null);
      if (session !== this.session) return;
      if (data === null) { this.callbacks.showProblem(`${file.name} can't be read.`); continue; }
      const name = file.name.replace(/[/\\\p{C}]/gu, "_").slice(-200);
      this.files.push({ media_type: file.type || "application/octet-stream", name, data, size: file.size, preview: file.type.startsWith("image/") ? URL.createObjectURL(file) : "" });
      this.#drawFiles();
    }
  }

  #onKey(event) {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.submit(event.altKey ? "queue" : event.ctrlKey || event.metaKey ? "steer" : null);
    }
  }

  /** Store the draft and fit the field's height to its text. */
  #onInput() {
    sessionStorage.setItem(DRAFT_PREFIX + this.session, this.input.value);
    this.input.style.blockSize = "auto";
    this.input.style.blockSize = `${Math.min(this.input.scrollHeight, innerHeight * 0.4)}px`;
  }

  #drawFiles() {
    this.fileList.hidden = !this.files.length;
    this.fileList.replaceChildren(...this.files.map((file, index) => make("li", {},
      file.preview ? make("img", { src: file.preview, alt: "" }) : null,
      make("span", {}, `${file.name} · ${formatSize(file.size)}`),
      button("✕", () => { this.files.splice(index, 1); this.#drawFiles(); this.input.focus(); }, { class: "icon", "aria-label": `Remove ${file.name}` }))));
  }
}

function toBase64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
