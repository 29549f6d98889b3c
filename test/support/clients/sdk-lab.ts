import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { startWithClaude } from '../agents/claude-service.js';
import { type MessagesApi, startMessagesApi } from '../agents/messages-api-stub.js';
import { temporaryFolder } from '../basics/folder.js';
import { untilJobs } from '../jobs/jobs.js';
import { type Service, script, startService, startWithProgram } from '../service/service.js';
import { type SdkClient, startSdkClient } from './sdk-client.js';

/** Test-relevant properties of one SDK interface. */
export interface SdkFace {
  readonly name: string;
  /** API of the interface. */
  readonly dialect: 'openai' | 'anthropic';
  readonly path: string;
  /** Names of the finish reasons. */
  readonly endings: { readonly whole: string; readonly tool: string };
  /** Calls that answer with a person. */
  readonly structured: readonly string[];
  /** Calls that answer with any JSON object. */
  readonly objects: readonly string[];
  /** Additional calls of the interface. */
  readonly has: readonly ('models' | 'countTokens')[];
  /** Class of the error for a status, or for a code that has a class. */
  readonly classOf: (status: number, code: string) => string;
}

/** Client and services that the tests of one SDK share. */
export interface SdkLab {
  readonly client: SdkClient;
  readonly demo: Service;
  readonly command: Service;
  /** Service with the real claude, on a stub of its API. */
  readonly claude: Service;
  readonly api: MessagesApi;
  /** Service with keys, for one running and one waiting job. A prompt can be an order to the model. */
  readonly strict: Service;
  /** Service like `strict`, without keys, with two seconds per job and less for waiting. */
  readonly hasty: Service;
  /** Service whose program does not exist. */
  readonly broken: Service;
  /** Service that drains as long as the tests run. */
  readonly leaving: Service;
}

/** Picture as a data URL. */
export const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** Keys of the strict service. */
export const keys = {
  all: 'key-of-everything',
  chat: 'key-of-chat-alone',
  /** rate limit: one request per minute */
  rare: 'key-of-a-minute',
  /** rate limit: one request per second */
  brief: 'key-of-a-second',
} as const;

const keyOptions = { all: '', chat: ':scopes=chat', rare: ':rate=1/60', brief: ':rate=1/1' };

/** Program that obeys orders in prompts. */
export const orderedProgram = { MODEL_API_CLI: 'demo', MODEL_API_CLI_COMMAND: script('converses.pl') };
const narrow = { ...orderedProgram, MODEL_API_MAX_CONCURRENT: '1' };
/**
 * More than the conversations that a file's tests leave behind: at the maximum, a first question would lose its process
 * to them.
 */
const live = { MODEL_API_LIVE_SESSIONS: '16' };
const named = { MODEL_API_DEFAULT_MODEL: 'eliza' };
/** Drain time and job time that exceed all tests of a file. */
const leavesLate = { MODEL_API_DRAIN_TIMEOUT_SECONDS: '3600', MODEL_API_TIMEOUT: '3600' };
const shortLimits = { ...narrow, MODEL_API_TIMEOUT: '2', MODEL_API_QUEUE_TIMEOUT_MS: '300' };

/** Includes the time to install packages. */
const startLimitMs = 600_000;
const endLimitMs = 60_000;

type SdkService = Exclude<keyof SdkLab, 'client' | 'api'>;

/**
 * Starts the services for the tests of a file (all of them, or `names`), one after the other, and stops them afterwards.
 * Readable only inside tests.
 */
export function sdkLab(sdk: string, names?: readonly SdkService[]): SdkLab {
  const lab: { -readonly [Name in keyof SdkLab]?: SdkLab[Name] } = {};
  const started: AsyncDisposable[] = [];
  const closedLater = <T extends AsyncDisposable>(part: T): T => {
    started.unshift(part);
    return part;
  };
  const starts: Readonly<Record<SdkService, () => Promise<Service>>> = {
    demo: () => startService({ env: live }),
    command: () => startWithProgram(script('needs-a-repair.pl', '{model}'), named),
    claude: async () => startWithClaude(lab.api as MessagesApi, { env: { MODEL_API_WORKERS: '1', ...live } }),
    strict: async () => startStrict(closedLater(await temporaryFolder()).path),
    hasty: startHasty,
    broken: () => startWithProgram('/nowhere/there'),
    leaving: async () => {
      const service = closedLater(await startService({ env: { ...narrow, ...leavesLate } }));
      const left = new AbortController();
      closedLater({ [Symbol.asyncDispose]: async () => left.abort() });
      await beginToLeave(service, left.signal);
      return service;
    },
  };
  beforeAll(async () => {
    lab.client = closedLater(await startSdkClient(sdk));
    lab.api = closedLater(await startMessagesApi());
    for (const name of names ?? (Object.keys(starts) as SdkService[])) {
      const service = await starts[name]();
      if (name !== 'leaving') closedLater(service);
      lab[name] = service;
    }
  }, startLimitMs);
  afterAll(async () => {
    for (const part of started) await part[Symbol.asyncDispose]();
  }, endLimitMs);
  return lab as SdkLab;
}

export function startHasty(): Promise<Service> {
  return startService({ env: shortLimits });
}

async function startStrict(folder: string): Promise<Service> {
  const path = join(folder, 'keys');
  const lines = Object.entries(keys).map(([name, key]) => {
    return `${name}:sha256:${digestOf(key)}${keyOptions[name as keyof typeof keys]}\n`;
  });
  await writeFile(path, lines.join(''), { mode: 0o600 });
  const limits = { MODEL_API_MAX_QUEUE: '1', MODEL_API_BODY_LIMIT: '64kb' };
  return startService({ env: { ...narrow, ...limits, MODEL_API_KEYS_FILE: path } });
}

/** Starts a drain that lasts until the caller aborts the only job. */
async function beginToLeave(service: Service, signal: AbortSignal): Promise<void> {
  service.post('/ask', { prompt: 'silent' }, {}, signal).catch(() => {});
  await untilJobs(service, 1, 0);
  service.process.kill('SIGTERM');
  await service.log('shutdown_start');
}

/** Starts jobs that occupy the service until disposed. */
export async function occupied(service: Service, jobs: 1 | 2 = 1, key = ''): Promise<Disposable> {
  const left = new AbortController();
  await untilJobs(service, 0, 0);
  for (let count = 1; count <= jobs; count++) {
    const headers: Record<string, string> = key === '' ? {} : { 'x-api-key': key };
    service.post('/ask', { prompt: 'silent' }, headers, left.signal).catch(() => {});
    await untilJobs(service, 1, count - 1);
  }
  return { [Symbol.dispose]: () => left.abort() };
}
