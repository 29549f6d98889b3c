import { until } from '../basics/until.js';
import { killIfAlive } from '../processes/processes.js';
import type { Answer, Service } from '../service/service.js';
import { startWithClaude } from './claude-service.js';
import { conversationOf, type MessagesApi, says, stalls } from './messages-api-stub.js';
import type { TokenEndpoint } from './token-endpoint.js';

const settings = {
  ANTHROPIC_API_KEY: '',
  MODEL_API_CLI_ENV: 'ANTHROPIC_BASE_URL,HTTPS_PROXY,NO_PROXY,NODE_EXTRA_CA_CERTS,SSL_CERT_FILE',
  MODEL_API_STANDBY: '3',
  MODEL_API_LIVE_SESSIONS: '4',
  MODEL_API_READINESS_INTERVAL_SECONDS: '2',
  MODEL_API_DRAIN_TIMEOUT_SECONDS: '1',
  MODEL_API_TIMEOUT: '10',
};

/** Starts a service with a claude whose login is in files and whose token endpoint is `endpoint`. */
export function startWithLogin(api: MessagesApi, endpoint: TokenEndpoint, env = {}): Promise<Service> {
  return startWithClaude(api, { env: { ...settings, ...endpoint.env, ...env } });
}

/** Maximum time before a client disconnects: covers all steps of a job. */
const leaveMs = 2000;
const stallingPrompt = 'never answer';
const betweenKillsMs = 3000;

export interface LoginTrial {
  readonly refreshes: number;
  /** Numbers of refreshes during which the service is stopped; then the next one starts. */
  readonly endsAt: readonly number[];
  /** Headers of each person, who send the jobs in turn; by default one without headers. */
  readonly people?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Whether workers are killed, one after another. */
  readonly killsWorkers?: boolean;
}

/** Counts of a trial. */
export interface LoginTrialResult {
  /** Number of jobs by HTTP status; 0 for disconnected clients. */
  readonly jobs: ReadonlyMap<number, number>;
  readonly kills: number;
}

/**
 * Sends, cancels and times out jobs until the logins have been refreshed this often, while the service checks its CLI
 * every two seconds. Each prompt ends with the name of its person.
 */
export async function tryLogin(
  api: MessagesApi,
  endpoint: TokenEndpoint,
  { refreshes, endsAt, people = { '': {} }, env = {}, killsWorkers = false }: LoginTrial,
): Promise<LoginTrialResult> {
  const jobs = new Map<number, number>();
  let kills = 0;
  const count = (status: number) => jobs.set(status, (jobs.get(status) ?? 0) + 1);
  api.behave = (request) =>
    conversationOf(request).some(({ text }) => text.startsWith(stallingPrompt)) ? stalls : says('yes');
  for (const end of [...endsAt, refreshes]) {
    const service = await startWithLogin(api, endpoint, env);
    const isOver = () => endpoint.refreshes >= end || endpoint.refused > 0;
    const load = lanes.map((run, lane) => run(new Lane(service, people, lane, count), isOver));
    const killed = killsWorkers ? killWorkers(service, isOver) : 0;
    await until(isOver, `refresh ${end}`, 20_000 * refreshes);
    await service.stop(); // during the refresh: the endpoint has not answered
    await Promise.all(load);
    kills += await killed;
    if (endpoint.refused > 0) break;
  }
  return { jobs, kills };
}

/** Kills one worker after another. Returns the number of kills. */
async function killWorkers(service: Service, isOver: () => boolean): Promise<number> {
  for (let kills = 0; ; ) {
    await new Promise((resolve) => setTimeout(resolve, betweenKillsMs));
    if (isOver()) return kills;
    const pids = await service.workers().catch(() => []);
    const pid = pids[kills % Math.max(pids.length, 1)];
    if (pid === undefined) continue;
    killIfAlive(pid);
    kills++;
  }
}

/** Sequence of jobs, each of the next person. */
class Lane {
  readonly #service: Service;
  readonly #people: readonly (readonly [name: string, headers: Readonly<Record<string, string>>])[];
  readonly #count: (status: number) => void;
  readonly #conversations = new Map<string, unknown>();
  #next: number;

  /** `first`: number of the person with the first job. */
  constructor(service: Service, people: LoginTrial['people'] = {}, first = 0, count: (status: number) => void) {
    this.#service = service;
    this.#people = Object.entries(people);
    this.#next = first;
    this.#count = count;
  }

  ask(prompt: string, signal?: AbortSignal): Promise<void> {
    return this.#post((name) => ['/ask', { prompt: `${prompt} ${name}`.trim() }], signal);
  }

  /** Continues the conversation of the next person. */
  chat(message: string): Promise<void> {
    return this.#post((name) => {
      const conversation_id = this.#conversations.get(name);
      return [
        '/chat',
        { message: `${message} ${name}`.trim(), ...(conversation_id !== undefined && { conversation_id }) },
      ];
    });
  }

  async #post(jobOf: (name: string) => readonly [path: string, body: object], signal?: AbortSignal): Promise<void> {
    const [name, headers] = this.#people[this.#next++ % this.#people.length] ?? ['', {}];
    const answer: Answer | null = await this.#service.post(...jobOf(name), headers, signal).catch(() => null);
    if (answer !== null) this.#conversations.set(name, answer.body.conversation_id);
    this.#count(answer?.status ?? 0);
  }
}

type Load = (lane: Lane, isOver: () => boolean) => Promise<void>;

const asks: Load = (lane, isOver) => repeat(isOver, () => lane.ask('is it?'));
const chats: Load = (lane, isOver) => repeat(isOver, () => lane.chat('is it?'));
const timeouts: Load = (lane, isOver) => repeat(isOver, () => lane.ask(stallingPrompt));
const sendAndDisconnect: Load = (lane, isOver) =>
  repeat(isOver, () => lane.ask(stallingPrompt, AbortSignal.timeout(leaveMs)));

const lanes = [asks, chats, sendAndDisconnect, timeouts];

async function repeat(isOver: () => boolean, run: () => Promise<void>): Promise<void> {
  while (!isOver()) await run();
}
