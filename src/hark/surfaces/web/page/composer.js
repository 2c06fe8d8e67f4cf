// The message field: always live; Enter sends, other keys queue or steer; files come along as base64.

import { button, find, make } from "./dom.js";
import { sizeWords } from "./format.js";

const MOST_FILES = 20;
const MOST_BYTES = 14e6; // base64 makes it a third more, and the server takes 20 MB unless told otherwise
const DRAFTS = "hark-draft-";

/** Keep what was not sent, to be found when that session is opened again. */
export function keepDraft(session, text) {
  const kept = sessionStorage.getItem(DRAFTS + session);
  sessionStorage.setItem(DRAFTS + session, kept ? `${kept}\n${text}` : text);
}

export class Composer {
  /** `send(text, delivery, files)` takes a message; `press(key)` tells whether a single key was an answer. */
  constructor({ send, press, complain }) {
    this.act = { send, press, complain };
    this.files = [];
    this.session = "";
    this.input = find("input");
    this.list = find("files");
    find("composer").addEventListener("submit", (event) => { event.preventDefault(); this.submit(); });
    find("steer").addEventListener("click", () => this.submit("steer"));
    find("queue-up").addEventListener("click", () => this.submit("queue"));
    find("attach").addEventListener("click", () => find("file-input").click());
    find("file-input").addEventListener("change", (event) => { this.attach(event.target.files); event.target.value = ""; });
    this.input.addEventListener("keydown", (event) => this.#key(event));
    this.input.addEventListener("input", () => this.#changed());
    this.input.addEventListener("paste", (event) => {
      if (event.clipboardData.files.length) { event.preventDefault(); this.attach(event.clipboardData.files); }
    });
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => { event.preventDefault(); this.attach(event.dataTransfer.files); });
  }

  /** Write for another session; what was begun for this one is kept for it. */
  open(session) {
    this.session = session;
    this.input.value = sessionStorage.getItem(DRAFTS + session) ?? "";
    this.files = [];
    this.#drawFiles();
    this.#changed();
  }

  submit(delivery = null) {
    const text = this.input.value;
    if (!text.trim() && !this.files.length) return this.input.focus();
    const files = this.files;
    this.input.value = "";
    this.files = [];
    this.#drawFiles();
    this.#changed();
    this.input.focus();
    this.act.send(text, delivery, files);
  }

  async attach(chosen) {
    const session = this.session;
    for (const file of [...chosen]) { // a copy: the browser empties its own list
      const size = this.files.reduce((sum, one) => sum + one.size, file.size);
      if (this.files.length >= MOST_FILES) return this.act.complain(`A message may have ${MOST_FILES} attachments at most.`);
      if (size > MOST_BYTES) return this.act.complain(`${file.name} is too large: attachments may have ${sizeWords(MOST_BYTES)} together.`);
      if (!file.size) { this.act.complain(`${file.name} is empty.`); continue; }
      const data = await asBase64(file).catch(() => null);
      if (session !== this.session) return;
      if (data === null) { this.act.complain(`${file.name} can't be read.`); continue; }
      const name = file.name.replace(/[/\\\p{C}]/gu, "_").slice(-200);
      this.files.push({ media_type: file.type || "application/octet-stream", name, data, size: file.size, picture: file.type.startsWith("image/") ? URL.createObjectURL(file) : "" });
      this.#drawFiles();
    }
  }

  #key(event) {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.submit(event.altKey ? "queue" : event.ctrlKey || event.metaKey ? "steer" : null);
    } else if (!this.input.value && !event.ctrlKey && !event.altKey && !event.metaKey && this.act.press(event.key)) {
      event.preventDefault();
    }
  }

  #changed() {
    sessionStorage.setItem(DRAFTS + this.session, this.input.value);
    this.input.style.blockSize = "auto";
    this.input.style.blockSize = `${Math.min(this.input.scrollHeight, innerHeight * 0.4)}px`;
  }

  #drawFiles() {
    this.list.hidden = !this.files.length;
    this.list.replaceChildren(...this.files.map((file, place) => make("li", {},
      file.picture ? make("img", { src: file.picture, alt: "" }) : null,
      make("span", {}, `${file.name} · ${sizeWords(file.size)}`),
      button("✕", () => { this.files.splice(place, 1); this.#drawFiles(); this.input.focus(); }, { class: "icon", "aria-label": `Remove ${file.name}` }))));
  }
}

function asBase64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
