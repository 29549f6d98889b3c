import type { TextDelta } from '../../../src/shared/job.js';

/** Returns the event of a piece of text. */
export function textDelta(text: string): TextDelta {
  return { type: 'text-delta', text };
}
