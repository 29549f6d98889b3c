import { postMessages } from '../../../src/features/anthropic/messages.js';
import { anthropicDoor } from '../../../src/features/anthropic/worker.js';
import { calls as jobCalls } from '../../../src/features/background/shared.js';
import { Claims } from '../../../src/features/idempotency/claims.js';
import { calls } from '../../../src/features/idempotency/shared.js';
import { postMcp } from '../../../src/features/mcp/mcp.js';
import { mcpDoor } from '../../../src/features/mcp/worker.js';
import { postOllamaChat } from '../../../src/features/ollama/jobs.js';
import { ollamaDoor } from '../../../src/features/ollama/worker.js';
import { postChatCompletions } from '../../../src/features/openai/chat.js';
import { openAiDoor } from '../../../src/features/openai/worker.js';
import type { AnswerStore } from '../../../src/features/stores/contract/answers.js';
import { clientText } from '../../../src/shared/client.js';
import { systemClock } from '../../../src/shared/clock.js';
import { type Handlers, Peer } from '../../../src/shared/ipc/peer.js';
import { type PrimaryCalls, primaryCalls, type WorkerCalls, workerCalls } from '../../../src/shared/ipc/protocol.js';
import type { JobEvent, JobRequest } from '../../../src/shared/job.js';
import { postAsk } from '../../../src/worker/api/ask.js';
import { speakAsClient } from '../../../src/worker/api/doors.js';
import { BodyMemory } from '../../../src/worker/http/body-memory.js';
import type { Handler, Primary } from '../../../src/worker/http/exchange.js';
import { ChannelPair } from '../jobs/channel-pair.js';
import { documentInspector } from '../jobs/inspected-documents.js';
import { type ExpressServer, serveWith } from './express-server.js';
import { keyGuard } from './key-guard.js';
import { readingFiles } from './no-features.js';

type RunKeyed = (request: JobRequest, signal: AbortSignal) => AsyncIterable<JobEvent>;

/** Routes that run jobs, with a primary that stores Idempotency-Keys and plays this model. */
export interface KeyedRoutes extends AsyncDisposable {
  readonly server: ExpressServer;
  /** Requests of the jobs that have run. */
  readonly jobs: JobRequest[];
  /** Closes the channel to the primary, as if the worker were killed. */
  cut(): void;
  post(path: string, body: object, headers?: Record<string, string>, signal?: AbortSignal): Promise<KeyedAnswer>;
  /** Sends POST /ask with the key `k`. */
  ask(body?: object, headers?: Record<string, string>): Promise<KeyedAnswer>;
}

interface KeyedAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly isReplayed: boolean;
}

export async function keyedRoutes(run: RunKeyed, store: AnswerStore): Promise<KeyedRoutes> {
  const claims = new Claims(store, systemClock, () => 3);
  const jobs: JobRequest[] = [];
  const pair = new ChannelPair();
  const handlers = {
    claim: (order, signal) => claims.hold(order, signal),
    recordedPiece: async (order) => ({ text: await claims.readAnswer(order) }),
    record: async ({ claim, answer }) => ({ isRecorded: await claims.record(claim, answer) }),
    accept: ({ job }) => {
      jobs.push(job);
      return { id: `job ${jobs.length}`, createdAt: 0, isDurable: false };
    },
    run: (request, signal) => {
      jobs.push(request);
      return run(request, signal);
    },
  } satisfies Partial<Handlers<PrimaryCalls & typeof calls & typeof jobCalls>>;
  const onFault = (fault: unknown) => {
    throw fault;
  };
  const served = { ...primaryCalls, ...calls, ...jobCalls };
  new Peer(pair.left, workerCalls, served, handlers as unknown as Handlers<typeof served>, onFault);
  const primary: Primary = new Peer(pair.right, served, workerCalls, {} as Handlers<WorkerCalls>, onFault);
  const server = await serveWith([
    speakAsClient([mcpDoor, ollamaDoor, anthropicDoor, openAiDoor]),
    keyGuard(primary),
    routes(primary),
  ]);
  const post: KeyedRoutes['post'] = async (path, body, headers = {}, signal) => {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
      ...(signal && { signal }),
    });
    const isReplayed = response.headers.get('idempotency-replayed') === 'true';
    return { status: response.status, headers: response.headers, text: await response.text(), isReplayed };
  };
  const ask: KeyedRoutes['ask'] = (body = { prompt: 'Hi' }, headers = {}) =>
    post('/ask', body, { 'idempotency-key': 'k', ...headers });
  return {
    server,
    jobs,
    cut: () => pair.close(),
    post,
    ask,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

function routes(primary: Primary): Handler {
  const bodies = new BodyMemory(2_000_000, systemClock);
  const spill = { file: async () => null };
  const parts = {
    primary,
    bodies,
    spill,
    features: readingFiles(primary, 2_000_000),
    documents: documentInspector(),
    clock: systemClock,
    take: async () => {},
  };
  const byPath = {
    '/ask': postAsk(parts),
    '/v1/chat/completions': postChatCompletions(parts),
    '/v1/messages': postMessages(parts),
    '/api/chat': postOllamaChat(parts),
    '/mcp': postMcp(parts, []),
  } as const;
  return (req, res, next) => {
    const path = req.path as keyof typeof byPath;
    res.locals.route = path;
    res.locals.client = clientText.parse(req.get('x-client') ?? 'address local');
    byPath[path](req, res, next).catch(next);
  };
}
