import { type Clock, delay } from '../shared/clock.js';
import type { Client } from './client.js';
import { CommandError, exitCodes } from './errors.js';
import type { ServerEvent } from './http.js';

/** Times in a row that nothing new comes, until it is given up; and the time between them. */
const maxTries = 10;
const betweenMs = 500;
const lastEvents = ['done', 'error', 'cancelled'];

/** The events of a background job. It goes on where the stream has broken: when a worker is replaced, for example. */
export async function* followed(
  client: Client,
  path: string,
  signal: AbortSignal,
  clock: Clock,
): AsyncGenerator<ServerEvent> {
  let after: string | undefined;
  for (let tries = 0; tries < maxTries; tries++) {
    try {
      for await (const event of client.follow(path, after, signal)) {
        if (event.id !== after) tries = 0;
        after = event.id;
        yield event;
        if (lastEvents.includes(event.event)) return;
      }
    } catch (error) {
      const isCut = error instanceof CommandError && error.exitCode === exitCodes.unavailable;
      if (!isCut || after === undefined || tries === maxTries - 1) throw error;
    }
    signal.throwIfAborted();
    await delay(clock, betweenMs);
  }
}
