// Numbers, times and states as text.

/** Return a duration in the shortest readable form, such as "12 ms" or "3:05 min". */
export function formatDuration(milliseconds) {
  if (milliseconds < 9.95) return `${milliseconds.toFixed(1)} ms`;
  if (milliseconds < 999.5) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 59.95) return `${seconds.toFixed(seconds < 9.995 ? 2 : 1)} s`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  const remainder = String(Math.round(seconds) % 60).padStart(2, "0");
  return minutes < 60 ? `${minutes}:${remainder} min` : `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")} h`;
}

/** Return the age of a Unix time, such as "5 min", or its date. */
export function formatAge(at) {
  const seconds = Math.max(0, Date.now() / 1000 - at);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return new Date(at * 1000).toLocaleDateString(undefined, { month: "short", day: "numeric" });
}

/** Return the text for a message's receipt. */
export function formatReceipt(receipt) {
  const position = receipt.position ? ` ${receipt.position}` : "";
  const turn = receipt.turn ? ` · ${shortTurnName(receipt.turn)}` : "";
  switch (receipt.state) {
    case "sending": return "Sending…";
    case "started": return `✓ Started${turn}`;
    case "interrupting": return `Stopping the current turn first…${turn}`;
    case "steering": return `Hark will read this at its next step${turn}`;
    case "taken": return `✓${turn.slice(2)}`;
    case "steered": return `✓ Added to this turn${turn}`;
    case "queued": return `Queued${position} · after this turn`;
    case "held": return `On hold${position} · your next message releases it`;
    case "edited": return `Edited${position}`;
    case "withdrawn": return "Deleted";
    case "refused": return `Not accepted: ${receipt.reason}`;
    case "answered": return "✓ Answered";
    case "duplicate": return "✓ Already received";
    default: return receipt.state;
  }
}

/** Return a turn's name without its session, such as "t4". */
export const shortTurnName = (turn) => turn.slice(turn.lastIndexOf(".") + 1);

/** Return how a turn ended. For an interrupted turn this includes the time it took to stop. */
export function formatOutcome(outcome, timings) {
  switch (outcome.type) {
    case "completed": return "done";
    case "interrupted": return outcome.source === "pause" ? "paused · /continue resumes it" : `stopped by ${outcome.source}${formatSettleTime(timings)}`;
    case "limit_reached": return `limit reached: ${outcome.limit}`;
    default: return "failed";
  }
}

function formatSettleTime(timings) {
  if (!timings) return "";
  const parts = (timings.spans ?? []).filter((span) => span.settle > 0).map((span) => `${span.name} ${formatDuration(span.settle)}`);
  return ` in ${formatDuration(timings.settle ?? 0)}${parts.length ? ` (${parts.join(", ")})` : ""}`;
}

/** Return a cost in US dollars, or "" for zero. */
export const formatCost = (cost) => (cost ? `$${cost.toFixed(cost < 0.1 ? 4 : 2)}` : "");

/** Return a turn's input and output tokens, or "" if there are none. */
export function formatTokens(usage) {
  const input = usage?.input_tokens ?? 0, output = usage?.output_tokens ?? 0;
  return input || output ? `${input.toLocaleString("en")} in, ${output.toLocaleString("en")} out` : "";
}

/** Return a number of bytes in KB or MB. */
export const formatSize = (bytes) => (bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} KB` : `${(bytes / 1e6).toFixed(1)} MB`);
