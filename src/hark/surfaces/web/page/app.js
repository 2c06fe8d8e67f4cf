// The page: opens the session or view that the URL names, and connects the parts of the page.

import * as api from "./api.js";
import { Composer } from "./composer.js";
import { Dashboard } from "./dashboard.js";
import { find, isTyping, setText } from "./dom.js";
import { askLogin } from "./login.js";
import { SessionList } from "./sessions.js";
import { Speaker } from "./speech.js";
import { SessionView } from "./view.js";
import { VoiceRecorder } from "./voice.js";

const PROBLEM_MS = 8000;

let view = null;
let problemTimer = 0;
const sessions = new SessionList(showTitle);
const dashboard = new Dashboard(find("dashboard"));
const composer = new Composer({
  send: (text, delivery, files) => view.sendInput(text, delivery, files),
  showProblem,
});
const speaker = new Speaker({ onChange: () => view?.updateControls(), showProblem });
const recorder = new VoiceRecorder({ getReceiver: () => view, onStart: () => speaker.stop(), showProblem });

/** Show an error below the message field for a few seconds. */
function showProblem(text) {
  const node = find("problem");
  clearTimeout(problemTimer);
  setText(node, text);
  node.hidden = false;
  problemTimer = setTimeout(() => { node.hidden = true; }, PROBLEM_MS);
}

const newSessionName = () => `web-${new Date().toISOString().slice(2, 16).replace(/[-:T]/g, "")}-${api.newId().slice(-4)}`;

function showTitle(title) {
  setText(find("title"), title);
  document.title = `${title} · Hark`;
}

function decodePart(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return ""; // a URL that was typed by hand
  }
}

/** Show the session or view that the URL names. */
function openUrl() {
  const [, kind, name, turn] = location.hash.split("/").map(decodePart);
  setDrawerOpen(false);
  const isDashboard = kind === "dashboard";
  find("chat").hidden = isDashboard;
  find("dashboard").hidden = !isDashboard;
  find("dashboard-link").toggleAttribute("aria-current", isDashboard);
  if (isDashboard) {
    sessions.select("");
    showTitle("Dashboard");
    view?.close();
    view = null;
    find("stop").hidden = true;
    setText(find("activity"), "");
    dashboard.open();
    return find("dashboard").focus();
  }
  dashboard.close();
  if (kind !== "s" || !name) return location.replace(`#/s/${encodeURIComponent(localStorage.getItem("hark-session") || newSessionName())}`);
  openSession(name);
  if (turn) view.scrollToTurn(turn);
}

function openSession(name) {
  if (view?.session === name) return;
  view?.close();
  showTitle(name);
  find("log").replaceChildren();
  view = new SessionView(name, { showProblem, sessions, speaker });
  composer.openSession(name);
  sessions.select(name);
  if (matchMedia("(pointer: fine)").matches) find("input").focus();
}

/** Open or close the session list. Has a visible effect on narrow screens only, where the list is a drawer. */
function setDrawerOpen(isOpen) {
  const wasOpen = document.body.classList.contains("drawer-open");
  document.body.classList.toggle("drawer-open", isOpen);
  find("drawer-backdrop").hidden = !isOpen;
  find("content").inert = isOpen;
  find("open-drawer").setAttribute("aria-expanded", String(isOpen));
  if (isOpen) find("search").focus();
  else if (wasOpen) find("open-drawer").focus();
}

function onKey(event) {
  if (event.isComposing) return;
  if (event.key === "Escape" && !find("login").open) {
    if (document.body.classList.contains("drawer-open")) setDrawerOpen(false);
    else if (recorder.isRecording) recorder.stop(false);
    else if (event.target !== find("search")) view?.stop(); // Escape in the search field clears that field
  } else if (!isTyping() && !event.ctrlKey && !event.altKey && !event.metaKey) {
    if (event.key === "/") { event.preventDefault(); find("input").focus(); }
  }
}

api.onLoginRequired(() => askLogin(() => {
  localStorage.setItem("hark-login", "yes");
  find("logout").hidden = false;
  view?.stream.reconnect();
  sessions.refresh();
}));
find("stop").addEventListener("click", () => view?.stop());
find("new-session").addEventListener("click", () => { location.hash = `#/s/${newSessionName()}`; });
find("open-drawer").addEventListener("click", () => setDrawerOpen(true));
find("close-drawer").addEventListener("click", () => setDrawerOpen(false));
find("drawer-backdrop").addEventListener("click", () => setDrawerOpen(false));
find("latest").addEventListener("click", () => { view.conversation.isFollowing = true; view.conversation.scrollToEnd(); });
find("logout").addEventListener("click", async () => {
  await api.logOut();
  localStorage.removeItem("hark-login");
  location.reload();
});
find("logout").hidden = !localStorage.getItem("hark-login");
addEventListener("beforeunload", (event) => { if (view?.queue.sending.size) event.preventDefault(); });
document.addEventListener("keydown", onKey);
addEventListener("hashchange", openUrl);
openUrl();
