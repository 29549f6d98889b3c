import { type Arbitrary, assert, asyncProperty } from 'fast-check';
import { settled } from './settled.js';

/** Sequences per property. `npm run test:properties` sets more. */
const sequences = Number(process.env.PROPERTY_SEQUENCES ?? 200);
/** Random seed; failures print the seed to repeat. */
const seed = Number(process.env.PROPERTY_SEED ?? Date.now() % 2 ** 31);

/** Turns of the event loop in which all effects of a step complete. */
const turnsToRest = 6;

/** Model-based test: performs steps, and can check its invariants at any time. */
export interface Player<S> {
  perform(step: S): void | Promise<void>;
  /** Throws if an invariant is broken. */
  check(): void;
  /** Ends all open parts, and throws if something is left. */
  finish(): void | Promise<void>;
}

/**
 * Plays many sequences of steps, each with a new player, and checks after each step. A failure is reported with its
 * shortest sequence.
 */
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

/** Returns the element for a random number; undefined if the list is empty. */
export function pick<T>(from: readonly T[], which: number): T | undefined {
  return from[which % Math.max(1, from.length)];
}
