import { z } from 'zod';
import { errorBody } from '../shared/api/error.js';
import { type Client, Refusal } from './client.js';
import { CommandFault, exitCodes } from './exit-codes.js';

/** Hears of a job while it waits and runs. */
export interface JobListener {
  queued(position: number): void;
  started(): void;
  delta(text: string): Promise<void>;
  /** What was heard is not how the answer begins: the model began anew. The whole answer. */
  corrected(response: string): Promise<void>;
}

export interface Answer {
  readonly response: string;
}

const queued = z.looseObject({ position: z.int() });
const delta = z.looseObject({ text: z.string() });

/** Runs one job; returns the body that ends it. Throws a CommandFault, or the signal's reason. */
export async function runJob<T extends Answer>(
  client: Client,
  request: { readonly path: string; readonly body: object; readonly schema: z.ZodType<T> },
  listener: JobListener,
  signal: AbortSignal,
): Promise<T> {
  let heard = '';
  for await (const { event, data } of client.stream(request.path, request.body, signal)) {
    if (event === 'queued') listener.queued(client.parse(data, queued).position);
    if (event === 'started') listener.started();
    if (event === 'error') throw new Refusal(client.parse(data, errorBody));
    if (event === 'delta') {
      const { text } = client.parse(data, delta);
      heard += text;
      await listener.delta(text);
    }
    if (event === 'done') return await finished(client.parse(data, request.schema), heard, listener);
  }
  throw new CommandFault(
    exitCodes.unavailable,
    `the service at ${client.url} broke off before the answer was complete`,
  );
}

/** The last word is the body's: a model may correct at the end what it said on the way. */
async function finished<T extends Answer>(body: T, heard: string, listener: JobListener): Promise<T> {
  const { response } = body;
  if (!response.startsWith(heard)) await listener.corrected(response);
  else if (response.length > heard.length) await listener.delta(response.slice(heard.length));
  return body;
}
