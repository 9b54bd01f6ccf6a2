// A short tone, made by the browser: no file, so nothing to load under the page's policy.

let context: AudioContext | null = null;

/** Nothing is heard before the user has clicked or typed on the page: browsers see to that. */
export function playTone(): void {
  context ??= new AudioContext();
  if (context.state === "suspended") void context.resume();
  const start = context.currentTime;
  const gain = context.createGain();
  gain.gain.setValueAtTime(0, start);
  gain.gain.linearRampToValueAtTime(0.12, start + 0.01);
  gain.gain.exponentialRampToValueAtTime(0.001, start + 0.35);
  gain.connect(context.destination);
  for (const [frequency, at] of [[660, 0], [880, 0.09]] as const) {
    const tone = context.createOscillator();
    tone.frequency.value = frequency;
    tone.connect(gain);
    tone.start(start + at);
    tone.stop(start + 0.36);
  }
}
