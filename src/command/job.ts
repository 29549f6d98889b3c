import { z } from 'zod';
import { errorBody } from '../shared/api/error.js';
import type { Client } from './client.js';
import { CommandError, exitCodes, ServiceError } from './errors.js';
import type { ServerEvent } from './http.js';

/** Receives the progress of a job. */
export interface JobListener {
  onQueued(position: number): void;
  onStarted(): void;
  onDelta(text: string): Promise<void>;
  /** The final answer does not begin with the deltas so far. `response` is the whole answer. */
  onReplaced(response: string): Promise<void>;
}

export interface JobAnswer {
  readonly response: string;
}

export interface JobCall<T extends JobAnswer> {
  readonly path: '/ask' | '/chat';
  readonly body: object;
  /** Of the final answer. */
  readonly schema: z.ZodType<T>;
}

const queuedEvent = z.looseObject({ position: z.int() });
const deltaEvent = z.looseObject({ text: z.string() });

/** Runs one job and returns its answer. Throws a CommandError, or the reason of the signal. */
export function runJob<T extends JobAnswer>(
  client: Client,
  { path, body, schema }: JobCall<T>,
  signal: AbortSignal,
  listener?: JobListener,
): Promise<T> {
  return collectJob(client, client.stream(path, body, signal), (data) => client.parse(data, schema), listener);
}

/** Returns the answer of the job that these events tell of. Throws a CommandError. */
export async function collectJob<T extends JobAnswer>(
  client: Client,
  events: AsyncIterable<ServerEvent>,
  answerOf: (data: string) => T,
  listener?: JobListener,
): Promise<T> {
  let received = '';
  for await (const { event, data } of events) {
    if (event === 'queued') listener?.onQueued(client.parse(data, queuedEvent).position);
    if (event === 'started') listener?.onStarted();
    if (event === 'error') throw new ServiceError(client.parse(data, errorBody));
    if (event === 'cancelled') throw new CommandError(exitCodes.failed, 'the job was cancelled');
    if (event === 'delta') {
      const { text } = client.parse(data, deltaEvent);
      received += text;
      await listener?.onDelta(text);
    }
    if (event === 'done') {
      const answer = answerOf(data);
      await reportRest(answer.response, received, listener);
      return answer;
    }
  }
  throw new CommandError(exitCodes.unavailable, `the response from ${client.url} was cut off before the answer ended`);
}

/** The final answer takes precedence over the deltas: a model may start over. */
async function reportRest(response: string, received: string, listener?: JobListener): Promise<void> {
  if (!response.startsWith(received)) await listener?.onReplaced(response);
  else if (response.length > received.length) await listener?.onDelta(response.slice(received.length));
}
