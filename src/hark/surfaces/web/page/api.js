// Client for the HTTP API.

/** An error response of the server, or a failed connection (status 0). */
export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

let handleLoginRequired = () => {};

/** Set the callback for responses that require a login. */
export const onLoginRequired = (callback) => { handleLoginRequired = callback; };

async function call(method, path, body, headers = {}) {
  let response;
  try {
    response = await fetch(path, { method, body, headers: { ...headers, "X-Hark-Surface": "page" }, credentials: "same-origin", cache: "no-store" });
  } catch {
    throw new ApiError(0, "unreachable", "The server can't be reached.");
  }
  const result = await response.json().catch(() => null);
  if (response.ok) return result;
  if (response.status === 401 && path !== "/login") handleLoginRequired();
  throw new ApiError(response.status, result?.error?.code ?? "", result?.error?.message ?? `The server answered ${response.status}.`);
}

const get = (path) => call("GET", path);
const sendJson = (method, path, body) => call(method, path, JSON.stringify(body), { "Content-Type": "application/json" });
const sessionPath = (session) => `/api/sessions/${encodeURIComponent(session)}`;

export const newId = () => {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return `web-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
};

export const logIn = (token) => sendJson("POST", "/login", { token });
export const logOut = () => sendJson("POST", "/logout", {});
export const listSessions = (query) => get(`/api/sessions?limit=200&q=${encodeURIComponent(query)}`);
export const searchMessages = (query) => get(`/api/search?limit=30&q=${encodeURIComponent(query)}`);
export const getStatus = () => get("/api/status");
export const listSchedules = () => get("/api/schedules");
export const getTimeline = (turn) => get(`/api/turns/${encodeURIComponent(turn)}/timeline`);
export const getTranscript = (session) => get(`${sessionPath(session)}/transcript`);
export const getQueue = (session) => get(`${sessionPath(session)}/queue`);
export const postMessage = (session, message) => sendJson("POST", `${sessionPath(session)}/messages`, message);
export const interrupt = (session, target) => sendJson("POST", `${sessionPath(session)}/interrupt`, { source: "user", ...target });
export const answerQuestion = (session, question, answer) => sendJson("POST", `${sessionPath(session)}/answers/${encodeURIComponent(question)}`, answer);
export const changeQueuedMessage = (session, id, change) => sendJson("PATCH", `${sessionPath(session)}/queue/${encodeURIComponent(id)}`, change);
export const withdrawMessage = (session, id) => call("DELETE", `${sessionPath(session)}/queue/${encodeURIComponent(id)}`);
const progressQuery = (progress) => (progress ? `&shown=${progress.characters}&turn=${encodeURIComponent(progress.turn)}` : "");
export const postVoiceMessage = (session, id, audio, question, progress) =>
  call("POST", `${sessionPath(session)}/voice?id=${encodeURIComponent(id)}&question=${encodeURIComponent(question)}${progressQuery(progress)}`, audio, { "Content-Type": audio.type || "audio/webm" });

/** Return the audio of a text, or null if the text has nothing to speak. */
export async function synthesizeSpeech(text, signal) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch("/api/speech", { method: "POST", body: JSON.stringify({ text }), headers, credentials: "same-origin", signal });
  if (response.status === 204) return null;
  if (response.ok) return response.blob();
  const result = await response.json().catch(() => null);
  throw new ApiError(response.status, result?.error?.code ?? "", result?.error?.message ?? "The reply can't be spoken.");
}

export const eventsPath = (session, seq) => `${sessionPath(session)}/events${seq === null ? "" : `?last_event_id=${seq}`}`;
