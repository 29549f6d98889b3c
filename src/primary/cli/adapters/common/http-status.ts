import type { TurnFailed } from '../../contract/adapter.js';

/** What the HTTP status of a model's API means, for programs that tell it. */
export const reasonByStatus: ReadonlyMap<number, TurnFailed['reason']> = new Map([
  [401, 'auth'],
  [402, 'quota'],
  [403, 'auth'],
  [404, 'model_unknown'],
  [413, 'prompt_too_long'],
  [429, 'quota'],
  [503, 'overloaded'],
  [529, 'overloaded'],
]);
