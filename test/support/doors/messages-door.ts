import { systemClock } from '../../../src/shared/clock.js';
import type { JobEvent, JobRequest } from '../../../src/shared/job.js';
import { postCountTokens, postMessages } from '../../../src/worker/anthropic/messages.js';
import { speakAsClient } from '../../../src/worker/api/doors.js';
import { BodyMemory } from '../../../src/worker/http/body-memory.js';
import type { Handler } from '../../../src/worker/http/exchange.js';
import { FakePrimary } from '../jobs/fake-primary.js';
import { serveWith } from './express-server.js';

const bodyLimitBytes = 100_000;

export interface DoorAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Record<string, unknown>;
}

/** First events of a job that runs. */
export const begun: readonly JobEvent[] = [
  { type: 'job-admitted', session: 'replay', ignoresEffort: false },
  { type: 'job-start', queueMs: 1 },
];

export async function* eventsOf(...list: readonly JobEvent[]): AsyncGenerator<JobEvent> {
  yield* list;
}

/** Messages API of the service, with a primary whose jobs do what the test says. */
export class MessagesDoor implements AsyncDisposable {
  readonly primary: FakePrimary;
  readonly url: string;
  readonly #server: AsyncDisposable;

  private constructor(primary: FakePrimary, port: number, server: AsyncDisposable) {
    this.primary = primary;
    this.url = `http://127.0.0.1:${port}`;
    this.#server = server;
  }

  /** Opens the API. `before`: handlers that run before it, like the checks of the service. */
  static async open(
    run: (request: JobRequest, signal: AbortSignal) => AsyncGenerator<JobEvent>,
    before: readonly Handler[] = [],
  ): Promise<MessagesDoor> {
    const primary = new FakePrimary(
      { schemaFault: { fault: null }, toolFault: { wrong: null }, countTokens: { tokens: 7 } },
      run,
    );
    const parts = {
      primary: primary.asPrimary,
      bodies: new BodyMemory(bodyLimitBytes, systemClock),
      spill: { file: async () => null },
      clock: systemClock,
    };
    const [messages, counting] = [postMessages(parts), postCountTokens(parts)];
    const server = await serveWith([
      speakAsClient(),
      ...before,
      (req, res, next) => (req.path.endsWith('/count_tokens') ? counting : messages)(req, res, next),
    ]);
    return new MessagesDoor(primary, server.port, server);
  }

  /** Request of the latest job. */
  get job(): JobRequest {
    return this.primary.calls.findLast(({ name }) => name === 'run')?.request as JobRequest;
  }

  async post(body: object | string, path = '/v1/messages', headers: Record<string, string> = {}): Promise<DoorAnswer> {
    const response = await fetch(this.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false;
    return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : {} };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}

/** Returns the events of a stream by name, and its comments unchanged. */
export function messageEvents(text: string): unknown[] {
  const blocks = text.split('\n\n').slice(0, -1);
  return blocks.map((block) => {
    const [, name, data] = /^event: (.+)\ndata: (.+)$/.exec(block) ?? [];
    return data === undefined ? block : [name, JSON.parse(data)];
  });
}
