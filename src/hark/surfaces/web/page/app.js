// The page: which session or view is open, and who is told of what.

import * as api from "./api.js";
import { Composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { Dashboard } from "./dashboard.js";
import { find, isTyping, setText } from "./dom.js";
import { askLogin } from "./login.js";
import { QueuePanel } from "./queue.js";
import { SessionList } from "./sessions.js";
import { Stream } from "./stream.js";
import { VoiceRecorder } from "./voice.js";
import { receiptWords, shortTurn } from "./words.js";

const PROBLEM_MS = 8000;

/** One open session: its stream, its conversation, its queue. */
class View {
  constructor(session) {
    this.session = session;
    this.texts = new Map();
    this.files = new Map();
    this.stopping = "";
    this.queue = new QueuePanel(session, this.texts, complain);
    this.conversation = new Conversation(find("log"), this);
    this.stream = new Stream(session, this);
  }

  close() {
    this.stream.close();
    this.conversation.close();
  }

  resync() {
    this.stream.resync();
  }

  open(transcript, queue) {
    this.queue.show(queue);
    this.conversation.open(transcript);
    this.changed();
    sessions.soon();
  }

  take(event) {
    this.conversation.take(event);
    if (["receipt", "turn.started", "turn.ended"].includes(event.type)) {
      this.queue.refresh();
      sessions.soon();
    }
    this.changed();
  }

  lost(isLost) {
    find("connection").hidden = !isLost;
    if (!isLost) sessions.soon();
  }

  /** Show what can be done now. */
  changed() {
    const turn = this.conversation.running;
    const isStopping = turn !== null && this.stopping === turn.id;
    const stop = find("stop");
    stop.hidden = turn === null;
    stop.disabled = isStopping;
    if (turn) {
      setText(stop, isStopping ? "Stopping …" : `■ Stop ${shortTurn(turn.id)}`);
      stop.setAttribute("aria-label", `Stop turn ${shortTurn(turn.id)}`);
    }
    setText(find("activity"), turn === null ? "" : this.conversation.question ? "waits for you" : "working");
    find("steer").hidden = find("queue-up").hidden = turn === null;
    find("latest").hidden = this.conversation.isFollowing;
  }

  /** Send a message; it stays on the page until the server has it. */
  async send(text, delivery, files, id = api.newId()) {
    this.queue.send(id, text);
    this.conversation.isFollowing = true;
    if (files.length) this.files.set(id, files.map(({ name, media_type }) => ({ name, media_type })));
    const attachments = files.map(({ media_type, name, data }) => ({ media_type, name, data }));
    try {
      const receipt = await api.say(this.session, { id, text, ...(delivery && { delivery }), ...(attachments.length && { attachments }) });
      if (!receipt.turn && receipt.state === "started" && text.startsWith("/")) this.conversation.remark(`› ${text}`, "command");
      await this.queue.refresh();
      this.queue.sent(id);
      setText(find("announcer"), `Your message: ${receiptWords(receipt)}`);
    } catch (error) {
      this.queue.failed(id, `Not sent: ${error.message}`, () => this.send(text, delivery, files, id));
    }
  }

  /** Stop the turn that runs, and no other. */
  async stop() {
    const turn = this.conversation.running;
    if (!turn || this.stopping === turn.id) return;
    this.stopping = turn.id;
    this.changed();
    try {
      await api.interrupt(this.session, turn.id);
    } catch (error) {
      complain(`Not stopped: ${error.message}`);
    }
    this.stopping = "";
    this.changed();
  }
}

let view = null;
let problemTimer = 0;
const sessions = new SessionList();
const dashboard = new Dashboard(find("dashboard"));
const composer = new Composer({
  send: (text, delivery, files) => view.send(text, delivery, files),
  press: (key) => view?.conversation.question?.press(key) ?? false,
  complain,
});
const recorder = new VoiceRecorder({ session: () => view.session, complain });

/** Tell what went wrong, below the message field, for a while. */
function complain(text) {
  const node = find("problem");
  clearTimeout(problemTimer);
  setText(node, text);
  node.hidden = false;
  problemTimer = setTimeout(() => { node.hidden = true; }, PROBLEM_MS);
}

const newName = () => `web-${new Date().toISOString().slice(2, 16).replace(/[-:T]/g, "")}-${api.newId().slice(-4)}`;

/** Show what the address names. */
function route() {
  const [, kind, name, turn] = location.hash.split("/").map(decodeURIComponent);
  drawer(false);
  const isDashboard = kind === "dashboard";
  find("chat").hidden = isDashboard;
  find("dashboard").hidden = !isDashboard;
  find("dashboard-link").toggleAttribute("aria-current", isDashboard);
  if (isDashboard) {
    sessions.choose("");
    setText(find("title"), "Dashboard");
    document.title = "Dashboard · Hark";
    view?.close();
    view = null;
    find("stop").hidden = true;
    setText(find("activity"), "");
    dashboard.open();
    return find("dashboard").focus();
  }
  dashboard.close();
  if (kind !== "s" || !name) return location.replace(`#/s/${encodeURIComponent(localStorage.getItem("hark-session") || newName())}`);
  openSession(name);
  if (turn) find("log").querySelector(`[data-turn="${CSS.escape(turn)}"]`)?.scrollIntoView();
}

function openSession(name) {
  if (view?.session === name) return;
  view?.close();
  localStorage.setItem("hark-session", name);
  setText(find("title"), name);
  document.title = `${name} · Hark`;
  find("log").replaceChildren();
  view = new View(name);
  composer.open(name);
  sessions.choose(name);
  if (matchMedia("(pointer: fine)").matches) find("input").focus();
}

/** Open or close the list of sessions, where it is a drawer. */
function drawer(isOpen) {
  const wasOpen = document.body.classList.contains("drawn");
  document.body.classList.toggle("drawn", isOpen);
  find("shade").hidden = !isOpen;
  find("open-drawer").setAttribute("aria-expanded", String(isOpen));
  if (isOpen) find("search").focus();
  else if (wasOpen) find("open-drawer").focus();
}

function onKey(event) {
  if (event.key === "Escape" && !find("login").open) {
    if (document.body.classList.contains("drawn")) drawer(false);
    else if (recorder.isRecording) recorder.stop(false);
    else view?.stop();
  } else if (!isTyping() && !event.ctrlKey && !event.altKey && !event.metaKey) {
    if (view?.conversation.question?.press(event.key)) event.preventDefault();
    else if (event.key === "/") { event.preventDefault(); find("input").focus(); }
  }
}

api.onLogin(() => askLogin(() => {
  view?.close();
  view = null;
  find("logout").hidden = false;
  route();
}));
find("stop").addEventListener("click", () => view?.stop());
find("new-session").addEventListener("click", () => { location.hash = `#/s/${newName()}`; });
find("open-drawer").addEventListener("click", () => drawer(true));
find("close-drawer").addEventListener("click", () => drawer(false));
find("shade").addEventListener("click", () => drawer(false));
find("latest").addEventListener("click", () => { view.conversation.isFollowing = true; view.conversation.follow(); });
find("logout").addEventListener("click", async () => { await api.logout(); location.reload(); });
document.addEventListener("keydown", onKey);
addEventListener("hashchange", route);
route();
