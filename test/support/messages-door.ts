import { systemClock } from '../../src/shared/clock.js';
import type { JobEvent, JobRequest } from '../../src/shared/job.js';
import { postCountTokens, postMessages } from '../../src/worker/anthropic/messages.js';
import { speakAsClient } from '../../src/worker/api/doors.js';
import { BodyMemory } from '../../src/worker/http/body-memory.js';
import type { Handler } from '../../src/worker/http/exchange.js';
import { serveWith } from './express-server.js';
import { FakePrimary } from './fake-primary.js';

const bodyLimitBytes = 100_000;

export interface DoorAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Record<string, unknown>;
}

/** The first events of a job that has begun. */
export const begun: readonly JobEvent[] = [
  { type: 'job-admitted', session: 'replay', ignoresEffort: false },
  { type: 'job-start', queueMs: 1 },
];

export async function* eventsOf(...list: readonly JobEvent[]): AsyncGenerator<JobEvent> {
  yield* list;
}

/** The door for the SDKs of Anthropic, before a primary whose jobs run as they are told here. */
export class MessagesDoor implements AsyncDisposable {
  readonly primary: FakePrimary;
  readonly url: string;
  readonly #server: AsyncDisposable;

  private constructor(primary: FakePrimary, port: number, server: AsyncDisposable) {
    this.primary = primary;
    this.url = `http://127.0.0.1:${port}`;
    this.#server = server;
  }

  /** `before` stands before the door, as the checks of the service do. */
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

  /** The job that was asked for last. */
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

/** The events of a stream, by name, and its comments as they are. */
export function messageEvents(text: string): unknown[] {
  const blocks = text.split('\n\n').slice(0, -1);
  return blocks.map((block) => {
    const [, name, data] = /^event: (.+)\ndata: (.+)$/.exec(block) ?? [];
    return data === undefined ? block : [name, JSON.parse(data)];
  });
}
