import { until } from '../basics/until.js';
import { Exposition, type Sample } from '../documents/exposition.js';
import type { Answer, LogRecord, Service } from '../service/service.js';
import { untilJobs, untilTreeGone } from './jobs.js';

/** Traces of one job in the answer, the log and the metrics. */
export interface Aftermath {
  readonly status: number;
  readonly error?: unknown;
  readonly reason?: unknown;
  readonly message?: unknown;
  readonly response?: unknown;
  readonly outcome: unknown;
  /** Increases of the job and program metrics. */
  readonly counted: Readonly<Record<string, number>>;
}

const patienceMs = 15_000;
const watched = ['jobs_total', 'cli_exits_total'];

/** Sends a job, waits until no process is left and no slot is in use, and returns its effects. */
export async function aftermathOf(service: Service, body: Readonly<Record<string, unknown>>): Promise<Aftermath> {
  const before = await counts(service);
  const answer = await service.post('/ask', body);
  await untilTreeGone(service, patienceMs);
  await untilJobs(service, 0, 0);
  const record = await recordOf(service, answer);
  expect(record).toMatchObject({ method: 'POST', path: '/ask', status_code: answer.status });
  expect((await service.get('/health')).status).toBe(200);
  return { ...answerPart(answer), outcome: record.outcome, counted: grown(before, await counts(service)) };
}

/** Resolves when /health reports no problem, such as after a fault that failed the last job. */
export function untilHealthy(service: Service): Promise<boolean> {
  return until(async () => (await service.get('/health')).body.status === 'ok', 'the service to be well');
}

function recordOf(service: Service, { body }: Answer): Promise<LogRecord> {
  return service.log('http_request_completed', ({ request_id }) => request_id === body.request_id);
}

function answerPart({ status, body }: Answer): Pick<Aftermath, 'status' | 'error' | 'reason' | 'message' | 'response'> {
  const { error, message, response, reason, details } = body;
  if (error === undefined) return { status, response };
  const [detail] = (details ?? []) as { readonly message: string }[];
  const why = reason ?? detail?.message;
  return { status, error, message, ...(why !== undefined && { reason: why }) };
}

async function counts(service: Service): Promise<readonly Sample[]> {
  const { samples } = new Exposition((await service.get('/metrics')).text);
  return samples.filter(({ name }) => watched.includes(name));
}

function grown(before: readonly Sample[], after: readonly Sample[]): Record<string, number> {
  const changes = after.map((sample, index) => {
    const { operation = '', outcome, class: exit } = sample.labels;
    const name = outcome === undefined ? `exit ${exit}` : `${operation} ${outcome}`;
    return [name, sample.value - (before[index]?.value ?? 0)] as const;
  });
  return Object.fromEntries(changes.filter(([, change]) => change !== 0));
}
