import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../src/shared/config/api-keys.js';
import { startWithClaude } from './claude-service.js';
import { temporaryFolder } from './folder.js';
import { untilJobs } from './jobs.js';
import { type MessagesApi, startMessagesApi } from './messages-api-stub.js';
import { type SdkClient, startSdkClient } from './sdk-client.js';
import { type Service, script, startService, startWithProgram } from './service.js';

/** One interface of one SDK, as the tests know it. */
export interface SdkFace {
  readonly name: string;
  /** Which of the two APIs it speaks. */
  readonly dialect: 'openai' | 'anthropic';
  readonly path: string;
  /** What it calls the endings. */
  readonly endings: { readonly whole: string; readonly tool: string };
  /** Calls that answer with a person. */
  readonly structured: readonly string[];
  /** Calls that answer with any JSON object. */
  readonly objects: readonly string[];
  /** Further calls that it has. */
  readonly has: readonly ('models' | 'helper' | 'countTokens' | 'requestId')[];
  /** The class of what it raises for a status, and for the code of an error that has a class of its own. */
  readonly classOf: (status: number, code: string) => string;
  /** Whether the tests can give it headers of their own. */
  readonly takesHeaders?: boolean;
  /** Whether it minds `x-should-retry`. */
  readonly mindsAdvice: boolean;
}

/** What the tests of one SDK share: its client, and the services that it calls. */
export interface SdkLab {
  readonly client: SdkClient;
  readonly demo: Service;
  readonly command: Service;
  /** The real claude, on a stub of its API. */
  readonly claude: Service;
  readonly api: MessagesApi;
  /** Does what a prompt orders. Needs a key, and holds one job and one more that waits. */
  readonly strict: Service;
  /** The same without keys, with two seconds for a job and less for waiting. */
  readonly hasty: Service;
  /** Its program is not there. */
  readonly broken: Service;
  /** It drains, for as long as the tests take. */
  readonly leaving: Service;
}

/** A picture as a data URL. */
export const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** The keys of the strict service. */
export const keys = {
  all: 'key-of-everything',
  chat: 'key-of-chat-alone',
  /** Of one request in a minute. */
  rare: 'key-of-a-minute',
  /** Of one request in a second. */
  brief: 'key-of-a-second',
} as const;

const keyOptions = { all: '', chat: ':scopes=chat', rare: ':rate=1/60', brief: ':rate=1/1' };

/** The program that does what a prompt orders. */
export const orderedProgram = { MODEL_API_CLI: 'demo', MODEL_API_CLI_COMMAND: script('converses.pl') };
const narrow = { ...orderedProgram, MODEL_API_MAX_CONCURRENT: '1' };
/** More than the conversations that the tests of a file leave: at the maximum, a first question would lose its process to them. */
const live = { MODEL_API_LIVE_SESSIONS: '16' };
const named = { MODEL_API_DEFAULT_MODEL: 'eliza' };
/** A drain, and the one job that holds it up, that last longer than all tests of a file. */
const leavesLate = { MODEL_API_DRAIN_TIMEOUT_SECONDS: '3600', MODEL_API_TIMEOUT: '3600' };
const shortLimits = { ...narrow, MODEL_API_TIMEOUT: '2', MODEL_API_QUEUE_TIMEOUT_MS: '300' };

/** With what has to be installed first. */
const startLimitMs = 600_000;
const endLimitMs = 60_000;

/** Starts what the tests of a file need, one after the other, and ends it after them. To be read inside tests only. */
export function sdkLab(sdk: string): SdkLab {
  const lab: { -readonly [Name in keyof SdkLab]?: SdkLab[Name] } = {};
  const started: AsyncDisposable[] = [];
  const kept = <T extends AsyncDisposable>(part: T): T => {
    started.unshift(part);
    return part;
  };
  beforeAll(async () => {
    const folder = kept(await temporaryFolder());
    const left = new AbortController();
    lab.client = kept(await startSdkClient(sdk));
    lab.api = kept(await startMessagesApi());
    lab.demo = kept(await startService({ env: live }));
    lab.command = kept(await startWithProgram(script('needs-a-repair.pl', '{model}'), named));
    lab.claude = kept(await startWithClaude(lab.api, { env: { MODEL_API_WORKERS: '1', ...live } }));
    lab.strict = kept(await startStrict(folder.path));
    lab.hasty = kept(await startHasty());
    lab.broken = kept(await startWithProgram('/nowhere/there'));
    lab.leaving = kept(await startService({ env: { ...narrow, ...leavesLate } }));
    kept({ [Symbol.asyncDispose]: async () => left.abort() });
    await beginToLeave(lab.leaving, left.signal);
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

/** The service drains from now on, until its only job is given up by its caller. */
async function beginToLeave(service: Service, signal: AbortSignal): Promise<void> {
  service.post('/ask', { prompt: 'silent' }, {}, signal).catch(() => {});
  await untilJobs(service, 1, 0);
  service.process.kill('SIGTERM');
  await service.log('shutdown_start');
}

/** A job that takes the only slot until it is left. */
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
