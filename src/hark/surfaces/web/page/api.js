// The HTTP API, as the page uses it.

/** An error that the server told, or that it could not be reached (status 0). */
export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

let needLogin = () => {};

/** Say what to do when the server wants a login. */
export const onLogin = (act) => { needLogin = act; };

async function call(method, path, body, headers = {}) {
  let response;
  try {
    response = await fetch(path, { method, body, headers: { ...headers, "X-Hark-Surface": "page" }, credentials: "same-origin", cache: "no-store" });
  } catch {
    throw new ApiError(0, "unreachable", "The server can't be reached.");
  }
  const told = await response.json().catch(() => null);
  if (response.ok) return told;
  if (response.status === 401 && path !== "/login") needLogin();
  throw new ApiError(response.status, told?.error?.code ?? "", told?.error?.message ?? `The server answered ${response.status}.`);
}

const get = (path) => call("GET", path);
const send = (method, path, body) => call(method, path, JSON.stringify(body), { "Content-Type": "application/json" });
const at = (session) => `/api/sessions/${encodeURIComponent(session)}`;

export const newId = () => {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return `web-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
};

export const login = (token) => send("POST", "/login", { token });
export const logout = () => send("POST", "/logout", {});
export const sessions = (words) => get(`/api/sessions?limit=200&q=${encodeURIComponent(words)}`);
export const search = (words) => get(`/api/search?limit=30&q=${encodeURIComponent(words)}`);
export const status = () => get("/api/status");
export const schedules = () => get("/api/schedules");
export const timeline = (turn) => get(`/api/turns/${encodeURIComponent(turn)}/timeline`);
export const transcript = (session) => get(`${at(session)}/transcript`);
export const queue = (session) => get(`${at(session)}/queue`);
export const say = (session, message) => send("POST", `${at(session)}/messages`, message);
export const interrupt = (session, what) => send("POST", `${at(session)}/interrupt`, { source: "user", ...what });
export const answer = (session, question, given) => send("POST", `${at(session)}/answers/${encodeURIComponent(question)}`, given);
export const change = (session, id, what) => send("PATCH", `${at(session)}/queue/${encodeURIComponent(id)}`, what);
export const withdraw = (session, id) => call("DELETE", `${at(session)}/queue/${encodeURIComponent(id)}`);
const heard = (shown) => (shown ? `&shown=${shown.characters}&turn=${encodeURIComponent(shown.turn)}` : "");
export const voice = (session, id, audio, shown) =>
  call("POST", `${at(session)}/voice?id=${encodeURIComponent(id)}${heard(shown)}`, audio, { "Content-Type": audio.type || "audio/webm" });

/** Return a text as sound, or null when there is nothing in it to be said. */
export async function speech(text, signal) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch("/api/speech", { method: "POST", body: JSON.stringify({ text }), headers, credentials: "same-origin", signal });
  if (response.status === 204) return null;
  if (response.ok) return response.blob();
  const told = await response.json().catch(() => null);
  throw new ApiError(response.status, told?.error?.code ?? "", told?.error?.message ?? "The reply can't be spoken.");
}

export const eventsPath = (session, seq) => `${at(session)}/events${seq === null ? "" : `?last_event_id=${seq}`}`;
