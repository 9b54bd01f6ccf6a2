import assert from "node:assert/strict";
import { test } from "node:test";
import { playTone } from "../src/views/tone.ts";

const made: FakeAudio[] = [];
class FakeAudio {
  state = "suspended";
  currentTime = 7;
  destination = "loudspeaker";
  resumed = 0;
  levels: [level: number, at: number][] = [];
  joined: unknown[] = [];
  tones: { hertz: number; from: number; to: number }[] = [];

  constructor() {
    made.push(this);
  }

  async resume(): Promise<void> {
    this.resumed += 1;
    this.state = "running";
  }

  createGain(): object {
    const set = (level: number, at: number): void => void this.levels.push([level, at]);
    const gain = { setValueAtTime: set, linearRampToValueAtTime: set, exponentialRampToValueAtTime: set };
    return { gain, connect: (to: unknown) => this.joined.push(to) };
  }

  createOscillator(): object {
    const tone = { hertz: 0, from: 0, to: 0 };
    this.tones.push(tone);
    return {
      frequency: { set value(hertz: number) { tone.hertz = hertz; } },
      connect: (to: unknown) => this.joined.push(to),
      start: (at: number) => { tone.from = at; },
      stop: (at: number) => { tone.to = at; },
    };
  }
}
Object.assign(globalThis, { AudioContext: FakeAudio });

test("a tone rises, is short, and ends in silence", () => {
  playTone();
  const [audio] = made;
  assert.ok(audio);
  assert.equal(audio.resumed, 1, "a browser may have suspended it");
  assert.deepEqual(audio.tones.map(({ hertz }) => hertz), [660, 880]);
  assert.ok(audio.tones.every(({ from, to }) => from >= 7 && to > from && to < 7.5));
  const [first, , last] = audio.levels;
  assert.equal(first?.[0], 0, "it begins without a click");
  assert.ok(last !== undefined && last[0] < 0.01 && audio.tones.every(({ to }) => to >= last[1]), "and is not cut off");
  assert.ok(audio.joined.includes("loudspeaker"));
});

test("further tones need no further context", () => {
  playTone();
  playTone();
  assert.equal(made.length, 1);
  assert.equal(made[0]?.resumed, 1);
  assert.equal(made[0]?.tones.length, 6);
});
