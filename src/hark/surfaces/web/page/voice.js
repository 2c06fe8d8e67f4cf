// Voice: record, send, and show how long it has been; the words come back as a message like any other.

import { announce, find, setText } from "./dom.js";

const TYPES = ["audio/webm;codecs=opus", "audio/ogg;codecs=opus", "audio/mp4"];

export class VoiceRecorder {
  /** `receiver()` is who a recording that begins now is for: its hear(audio) takes it; `begun()` is told that one begins. */
  constructor({ receiver, begun, complain }) {
    this.receiver = receiver;
    this.begun = begun;
    this.complain = complain;
    this.recorder = null;
    this.pieces = [];
    this.timer = 0;
    this.isKept = true;
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
    this.begun();
    try {
      microphone = await navigator.mediaDevices.getUserMedia({ audio: true });
    } catch (error) {
      return this.complain(`The microphone can't be used: ${error.message}.`);
    }
    if (this.recorder) return microphone.getTracks().forEach((track) => track.stop());
    const receiver = this.receiver();
    const recorder = new MediaRecorder(microphone, { mimeType: TYPES.find((type) => MediaRecorder.isTypeSupported(type)) });
    this.recorder = recorder;
    this.pieces = [];
    this.isKept = true;
    const began = Date.now();
    recorder.addEventListener("dataavailable", (event) => this.pieces.push(event.data));
    recorder.addEventListener("stop", () => this.#over(microphone, receiver, recorder.mimeType));
    recorder.start();
    this.#show(true);
    announce("Recording.");
    this.timer = setInterval(() => setText(this.status, `recording ${Math.round((Date.now() - began) / 1000)} s · Esc drops it`), 200);
  }

  /** End the recording, and send it or not. */
  stop(isKept) {
    this.isKept = isKept;
    this.recorder?.stop();
  }

  #over(microphone, receiver, type) {
    for (const track of microphone.getTracks()) track.stop();
    clearInterval(this.timer);
    this.recorder = null;
    this.#show(false);
    setText(this.status, "");
    if (this.isKept) receiver.hear(new Blob(this.pieces, { type }));
  }

  #show(isOn) {
    this.button.classList.toggle("on", isOn);
    this.button.setAttribute("aria-pressed", String(isOn));
    this.button.setAttribute("aria-label", isOn ? "Send the recording" : "Record a voice message");
  }
}
