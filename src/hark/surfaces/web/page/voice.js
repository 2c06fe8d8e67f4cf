// Records voice messages and shows the recording time. The transcript is a message or the answer to a question.

import { announce, find, setText } from "./dom.js";

const AUDIO_TYPES = ["audio/webm;codecs=opus", "audio/ogg;codecs=opus", "audio/mp4"];

export class VoiceRecorder {
  /** `getReceiver()` returns the view whose sendRecording(audio, question) gets a recording that starts now; `onStart()` is called at its start. */
  constructor({ getReceiver, onStart, showProblem }) {
    this.getReceiver = getReceiver;
    this.onStart = onStart;
    this.showProblem = showProblem;
    this.recorder = null;
    this.chunks = [];
    this.timer = 0;
    this.isSent = true;
    this.button = find("record");
    this.status = find("recording");
    this.button.hidden = !navigator.mediaDevices || !window.MediaRecorder;
    this.button.addEventListener("click", () => (this.recorder ? this.stop(true) : this.start()));
  }

  get isRecording() {
    return this.recorder !== null;
  }

  async start() {
    let microphone;
    this.onStart();
    try {
      microphone = await navigator.mediaDevices.getUserMedia({ audio: true });
    } catch (error) {
      return this.showProblem(`The microphone can't be used: ${error.message}.`);
    }
    if (this.recorder) return microphone.getTracks().forEach((track) => track.stop());
    const receiver = this.getReceiver();
    const question = receiver?.readableQuestion ?? "";
    const recorder = new MediaRecorder(microphone, { mimeType: AUDIO_TYPES.find((type) => MediaRecorder.isTypeSupported(type)) });
    this.recorder = recorder;
    this.chunks = [];
    this.isSent = true;
    const startedAt = Date.now();
    recorder.addEventListener("dataavailable", (event) => this.chunks.push(event.data));
    recorder.addEventListener("stop", () => this.#onStop(microphone, (audio) => receiver.sendRecording(audio, question), recorder.mimeType));
    recorder.start();
    this.#updateButton(true);
    announce("Recording.");
    this.timer = setInterval(() => setText(this.status, `Recording ${Math.round((Date.now() - startedAt) / 1000)} s · Esc discards it`), 200);
  }

  /** End the recording, and send or discard it. */
  stop(isSent) {
    this.isSent = isSent;
    this.recorder?.stop();
  }

  #onStop(microphone, send, type) {
    for (const track of microphone.getTracks()) track.stop();
    clearInterval(this.timer);
    this.recorder = null;
    this.#updateButton(false);
    setText(this.status, "");
    if (this.isSent) send(new Blob(this.chunks, { type }));
  }

  #updateButton(isRecording) {
    this.button.classList.toggle("on", isRecording);
    this.button.setAttribute("aria-pressed", String(isRecording));
    this.button.setAttribute("aria-label", isRecording ? "Send the recording" : "Record a voice message");
  }
}
