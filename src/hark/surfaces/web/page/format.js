// Numbers, times and states in words.

/** Return a stretch of time, as short as it can be read. */
export function timeWords(milliseconds) {
  if (milliseconds < 9.95) return `${milliseconds.toFixed(1)} ms`;
  if (milliseconds < 999.5) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 59.95) return `${seconds.toFixed(seconds < 9.995 ? 2 : 1)} s`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  const rest = String(Math.round(seconds) % 60).padStart(2, "0");
  return minutes < 60 ? `${minutes}:${rest} min` : `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")} h`;
}

/** Return how long ago a Unix time was. */
export function agoWords(at) {
  const seconds = Math.max(0, Date.now() / 1000 - at);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return new Date(at * 1000).toLocaleDateString(undefined, { month: "short", day: "numeric" });
}

/** Return what became of a message. */
export function receiptWords(receipt) {
  const place = receipt.position ? ` · ${receipt.position}. in line` : "";
  const turn = receipt.turn ? ` · ${shortTurn(receipt.turn)}` : "";
  switch (receipt.state) {
    case "sending": return "sending …";
    case "started": return `✓ started${turn}`;
    case "interrupting": return `interrupting${turn} …`;
    case "steering": return `steering${turn}: comes in at its next step`;
    case "taken": return `✓${turn.slice(2)}`;
    case "steered": return `✓ steered${turn}`;
    case "queued": return `queued${place}`;
    case "held": return `held${place} · your next message releases it`;
    case "edited": return `edited${place}`;
    case "withdrawn": return "withdrawn";
    case "duplicate": return "✓ received before";
    default: return receipt.state;
  }
}

export const shortTurn = (turn) => turn.slice(turn.lastIndexOf(".") + 1);

/** Return how a turn ended, and what it took. */
export function outcomeWords(outcome, timings) {
  switch (outcome.type) {
    case "completed": return "done";
    case "interrupted": return `stopped by ${outcome.source}${settleWords(timings)}`;
    case "limit_reached": return `limit reached: ${outcome.limit}`;
    default: return "failed";
  }
}

function settleWords(timings) {
  if (!timings) return "";
  const parts = (timings.spans ?? []).filter((span) => span.settle > 0).map((span) => `${span.name} ${timeWords(span.settle)}`);
  return ` in ${timeWords(timings.settle ?? 0)}${parts.length ? ` (${parts.join(", ")})` : ""}`;
}

/** Return US dollars. */
export const costWords = (cost) => (cost ? `$${cost.toFixed(cost < 0.1 ? 4 : 2)}` : "");

/** Return a turn's tokens. */
export function tokenWords(usage) {
  const sent = usage?.input_tokens ?? 0, got = usage?.output_tokens ?? 0;
  return sent || got ? `${sent.toLocaleString("en")} in, ${got.toLocaleString("en")} out` : "";
}

/** Return a size in bytes. */
export const sizeWords = (bytes) => (bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} KB` : `${(bytes / 1e6).toFixed(1)} MB`);
