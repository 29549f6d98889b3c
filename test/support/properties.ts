import { type Arbitrary, assert, asyncProperty } from 'fast-check';
import { settled } from './settled.js';

/** Sequences that each property is held against. `npm run test:properties` sets many more. */
const sequences = Number(process.env.PROPERTY_SEQUENCES ?? 200);
/** A failure names the seed to repeat it with. */
const seed = Number(process.env.PROPERTY_SEED ?? Date.now() % 2 ** 31);

/** Turns of the event loop in which whatever a step has set off comes to rest. */
const turnsToRest = 6;

/** Something that goes through steps and can be asked at any time whether all is as it must be. */
export interface Player<S> {
  perform(step: S): void | Promise<void>;
  /** Throws where something is not as it must be. */
  check(): void;
  /** Ends what is still open, and throws where something is left. */
  finish(): void | Promise<void>;
}

/** Plays many sequences of steps, each with a new player, and checks after each step. A failure is told with its shortest sequence. */
export async function playAll<S>(step: Arbitrary<S[]>, begin: () => Player<S>): Promise<void> {
  const { currentTestName } = expect.getState();
  process.stderr.write(`${currentTestName}: ${sequences} sequences, PROPERTY_SEED=${seed}\n`);
  const property = asyncProperty(step, async (steps) => {
    const player = begin();
    for (const next of steps) {
      await player.perform(next);
      await settled(turnsToRest);
      player.check();
    }
    await player.finish();
  });
  await assert(property, { numRuns: sequences, seed });
}

/** The one that a number of a step stands for; undefined where there is none. */
export function pick<T>(from: readonly T[], which: number): T | undefined {
  return from[which % Math.max(1, from.length)];
}
