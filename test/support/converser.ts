import { type Service, script, startService } from './service.js';
import { until } from './until.js';

/** What the fixture `converses.pl` says of itself. */
export interface Confession {
  readonly pid: number;
  readonly edition: string;
  readonly heard: readonly { readonly from: string; readonly text: string }[];
}

export type Counts = Record<'standby' | 'live' | 'busy' | 'stopping', number>;

/** A service whose model tells which process it is and all that it has heard; no standby and no live sessions unless `env` says so. */
export function startConverser(env: Readonly<Record<string, string>> = {}, command = script('converses.pl')) {
  return startService({
    env: { MODEL_API_CLI: 'demo', MODEL_API_CLI_COMMAND: command, MODEL_API_LIVE_SESSIONS: '0', ...env },
  });
}

/** What a model says of itself that was asked something. */
export async function confess(
  service: Service,
  path: '/ask' | '/chat',
  body: Readonly<Record<string, unknown>>,
): Promise<Confession & { readonly id: string; readonly messageCount: number }> {
  const answer = await service.post(path, body);
  expect(answer.body).toMatchObject({ success: true });
  const { response, conversation_id: id, message_count: messageCount } = answer.body;
  return { ...confessionOf(response), id: id as string, messageCount: messageCount as number };
}

export function confessionOf(response: unknown): Confession {
  return JSON.parse(response as string) as Confession;
}

/** Texts it has heard, in order. */
export function textsOf({ heard }: Confession): string[] {
  return heard.map(({ text }) => text);
}

export async function processCounts(service: Service): Promise<Counts> {
  const { observability } = (await service.get('/health')).body as { observability: { cli_processes: Counts } };
  return observability.cli_processes;
}

/** Resolves when these many processes do these things. */
export function untilProcesses(service: Service, expected: Partial<Counts>, withinMs?: number): Promise<boolean> {
  const fits = async () => {
    const counts = await processCounts(service);
    return Object.entries(expected).every(([state, count]) => counts[state as keyof Counts] === count);
  };
  return until(fits, `processes as ${JSON.stringify(expected)}`, withinMs);
}

/** Resolves with the pid of the only process of a job there is, once there is exactly one that was not there before. */
export function untilOther(service: Service, known: readonly number[] = []): Promise<number> {
  return until(async () => {
    const [only, ...others] = await service.jobProcesses();
    return others.length === 0 && only !== undefined && !known.includes(only) ? only : null;
  }, 'one other process');
}
