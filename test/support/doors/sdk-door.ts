import { postCountTokens, postMessages } from '../../../src/features/anthropic/messages.js';
import { anthropicDoor } from '../../../src/features/anthropic/worker.js';
import { postOllamaChat, postOllamaGenerate } from '../../../src/features/ollama/jobs.js';
import { ollamaDoor } from '../../../src/features/ollama/worker.js';
import { postChatCompletions } from '../../../src/features/openai/chat.js';
import { postCompletions } from '../../../src/features/openai/completions.js';
import { postResponses } from '../../../src/features/openai/responses.js';
import { openAiDoor } from '../../../src/features/openai/worker.js';
import { systemClock } from '../../../src/shared/clock.js';
import type { JobEvent, JobRequest } from '../../../src/shared/job.js';
import { postAsk, postChat } from '../../../src/worker/api/ask.js';
import { getDoorModel, getDoorModels, speakAsClient } from '../../../src/worker/api/doors.js';
import { BodyMemory } from '../../../src/worker/http/body-memory.js';
import type { AsyncHandler, Handler } from '../../../src/worker/http/exchange.js';
import type { SpillFolder } from '../../../src/worker/jobs/answer-text.js';
import { FakePrimary } from '../jobs/fake-primary.js';
import { documentInspector } from '../jobs/inspected-documents.js';
import { serveWith } from './express-server.js';
import { readingFiles } from './no-features.js';

interface Replied {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** APIs of the service for the SDKs of OpenAI and Anthropic, and POST /ask and POST /chat, with a primary whose jobs have these events. */
export interface SdkDoor extends AsyncDisposable {
  readonly primary: FakePrimary;
  /** Request of the latest job. */
  readonly job: JobRequest;
  get(path: string, headers?: Record<string, string>): Promise<Replied>;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Replied>;
  /** Sends a request, without waiting for the whole answer. */
  open(path: string, body: unknown, signal?: AbortSignal): Promise<Response>;
}

export type RunJob = (request: JobRequest, signal: AbortSignal) => AsyncGenerator<JobEvent>;

const models = [
  { id: 'echo', name: 'Echo', default: false },
  { id: 'eliza', name: 'Eliza', default: true },
];

export const modelsContext = { firstStartMs: Date.UTC(2026, 0, 2), modelAbilities: ['batch'] };

const doors = [ollamaDoor, anthropicDoor, openAiDoor];

export interface DoorOptions {
  /** Handlers that run before the API, like the checks of the service. */
  readonly before?: readonly Handler[];
  readonly schemaFault?: string | null;
  readonly spill?: Pick<SpillFolder, 'file'>;
  readonly bodyLimitBytes?: number;
  /** Further answers of the primary. */
  readonly answers?: Readonly<Record<string, unknown>>;
}

export async function sdkDoor(run: RunJob, options: DoorOptions = {}): Promise<SdkDoor> {
  const {
    before = [],
    schemaFault = null,
    spill = { file: async () => null },
    bodyLimitBytes = 2_000_000,
    answers = {},
  } = options;
  const model = ({ name }: { name: string }) => ({ model: models.find(({ id }) => id === name) ?? null });
  const primary = new FakePrimary(
    {
      ...{ schemaFault: { fault: schemaFault }, toolFault: { wrong: null }, countTokens: { tokens: 7 } },
      mayStore: { mayStore: true },
      ...{ models: { models }, model },
      ...answers,
    },
    run,
  );
  const bodies = new BodyMemory(bodyLimitBytes, systemClock);
  const closing = new AbortController().signal;
  const documents = documentInspector();
  const parts = {
    primary: primary.asPrimary,
    features: readingFiles(primary.asPrimary, bodyLimitBytes),
    bodies,
    spill,
    documents,
    clock: systemClock,
    closing,
  };
  const handlers: Readonly<Record<string, AsyncHandler>> = {
    '/ask': postAsk(parts),
    '/chat': postChat(parts),
    '/v1/models': getDoorModels(parts.primary, modelsContext, doors),
    '/v1/responses': postResponses(parts),
    '/v1/chat/completions': postChatCompletions(parts),
    '/v1/completions': postCompletions(parts),
    '/api/chat': postOllamaChat(parts),
    '/api/generate': postOllamaGenerate(parts),
    '/v1/messages': postMessages(parts),
    '/v1/messages/count_tokens': postCountTokens(parts),
  };
  const one = getDoorModel(parts.primary, modelsContext, doors);
  const route: Handler = (req, res, next) => {
    req.params = { id: req.path.slice('/v1/models/'.length) };
    (handlers[req.path] ?? one)(req, res, next).catch(next);
  };
  const server = await serveWith([speakAsClient(doors), ...before, route]);
  const url = `http://127.0.0.1:${server.port}`;
  const post = (path: string, body: unknown, headers = {}, signal?: AbortSignal) =>
    fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(signal && { signal }),
    });
  return {
    primary,
    get job() {
      return primary.calls.findLast(({ name }) => name === 'run')?.request as JobRequest;
    },
    get: async (path, headers = {}) => replied(await fetch(url + path, { headers })),
    post: async (path, body, headers) => replied(await post(path, body, headers)),
    open: (path, body, signal) => post(path, body, {}, signal),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

async function replied(response: Response): Promise<Replied> {
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false;
  return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : {} };
}

/** First events of a job that runs. */
export const begun: readonly JobEvent[] = [
  { type: 'job-admitted', session: 'replay', ignoresEffort: false },
  { type: 'job-start', queueMs: 1 },
];

export function answerEvents(...texts: readonly string[]): JobEvent[] {
  return texts.map((text) => ({ type: 'text-delta', text }));
}

/** Returns a run function whose jobs all have these events. */
export function always(...events: readonly JobEvent[]): RunJob {
  return async function* () {
    yield* events;
  };
}

/** Returns the chunks of a stream, its events (whose names must equal their types), and its comments unchanged. */
export function streamed(text: string): unknown[] {
  return text
    .split('\n\n')
    .slice(0, -1)
    .map((block) => {
      const [, name, data] = /^(?:event: (.+)\n)?data: (.+)$/.exec(block) ?? [];
      if (data === undefined || data === '[DONE]') return block;
      const content = JSON.parse(data) as Record<string, unknown>;
      if (name !== undefined) expect(content.type).toBe(name);
      return content;
    });
}

/** Returns the events of a stream of the Messages API by name, and its comments unchanged. */
export function messageEvents(text: string): unknown[] {
  const blocks = text.split('\n\n').slice(0, -1);
  return blocks.map((block) => {
    const [, name, data] = /^event: (.+)\ndata: (.+)$/.exec(block) ?? [];
    return data === undefined ? block : [name, JSON.parse(data)];
  });
}
