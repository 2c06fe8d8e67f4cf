// The page: which session or view is open, and who is told of what.

import * as api from "./api.js";
import { Composer } from "./composer.js";
import { Dashboard } from "./dashboard.js";
import { find, isTyping, setText } from "./dom.js";
import { askLogin } from "./login.js";
import { SessionList } from "./sessions.js";
import { Speaker } from "./speech.js";
import { View } from "./view.js";
import { VoiceRecorder } from "./voice.js";

const PROBLEM_MS = 8000;

let view = null;
let problemTimer = 0;
const sessions = new SessionList(showTitle);
const dashboard = new Dashboard(find("dashboard"));
const composer = new Composer({
  send: (text, delivery, files) => view.send(text, delivery, files),
  press: (key) => view?.conversation.question?.press(key) ?? false,
  complain,
});
const speaker = new Speaker({ changed: () => view?.changed(), complain });
const recorder = new VoiceRecorder({ receiver: () => view, begun: () => speaker.cut(), complain });

/** Tell what went wrong, below the message field, for a while. */
function complain(text) {
  const node = find("problem");
  clearTimeout(problemTimer);
  setText(node, text);
  node.hidden = false;
  problemTimer = setTimeout(() => { node.hidden = true; }, PROBLEM_MS);
}

const newName = () => `web-${new Date().toISOString().slice(2, 16).replace(/[-:T]/g, "")}-${api.newId().slice(-4)}`;

function showTitle(title) {
  setText(find("title"), title);
  document.title = `${title} · Hark`;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return ""; // somebody typed it
  }
}

/** Show what the address names. */
function route() {
  const [, kind, name, turn] = location.hash.split("/").map(decoded);
  drawer(false);
  const isDashboard = kind === "dashboard";
  find("chat").hidden = isDashboard;
  find("dashboard").hidden = !isDashboard;
  find("dashboard-link").toggleAttribute("aria-current", isDashboard);
  if (isDashboard) {
    sessions.choose("");
    showTitle("Dashboard");
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
  if (turn) view.goTo(turn);
}

function openSession(name) {
  if (view?.session === name) return;
  view?.close();
  showTitle(name);
  find("log").replaceChildren();
  view = new View(name, { complain, sessions, speaker });
  composer.open(name);
  sessions.choose(name);
  if (matchMedia("(pointer: fine)").matches) find("input").focus();
}

/** Open or close the list of sessions, where it is a drawer. */
function drawer(isOpen) {
  const wasOpen = document.body.classList.contains("drawn");
  document.body.classList.toggle("drawn", isOpen);
  find("shade").hidden = !isOpen;
  find("stage").inert = isOpen;
  find("open-drawer").setAttribute("aria-expanded", String(isOpen));
  if (isOpen) find("search").focus();
  else if (wasOpen) find("open-drawer").focus();
}

function onKey(event) {
  if (event.isComposing) return;
  if (event.key === "Escape" && !find("login").open) {
    if (document.body.classList.contains("drawn")) drawer(false);
    else if (recorder.isRecording) recorder.stop(false);
    else if (event.target !== find("search")) view?.stop(); // there it empties the field
  } else if (!isTyping() && !event.ctrlKey && !event.altKey && !event.metaKey) {
    if (view?.conversation.question?.press(event.key)) event.preventDefault();
    else if (event.key === "/") { event.preventDefault(); find("input").focus(); }
  }
}

api.onLogin(() => askLogin(() => {
  localStorage.setItem("hark-login", "yes");
  find("logout").hidden = false;
  view?.stream.wake();
  sessions.refresh();
}));
find("stop").addEventListener("click", () => view?.stop());
find("new-session").addEventListener("click", () => { location.hash = `#/s/${newName()}`; });
find("open-drawer").addEventListener("click", () => drawer(true));
find("close-drawer").addEventListener("click", () => drawer(false));
find("shade").addEventListener("click", () => drawer(false));
find("latest").addEventListener("click", () => { view.conversation.isFollowing = true; view.conversation.follow(); });
find("logout").addEventListener("click", async () => {
  await api.logout();
  localStorage.removeItem("hark-login");
  location.reload();
});
find("logout").hidden = !localStorage.getItem("hark-login");
addEventListener("beforeunload", (event) => { if (view?.queue.sending.size) event.preventDefault(); });
document.addEventListener("keydown", onKey);
addEventListener("hashchange", route);
route();
