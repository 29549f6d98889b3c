import { until } from '../basics/until.js';
import { type Service, script, startService } from '../service/service.js';

/** Report of the fixture `converses.pl` about itself. */
export interface Confession {
  readonly pid: number;
  readonly edition: string;
  readonly heard: readonly { readonly from: string; readonly text: string }[];
}

export type Counts = Record<'standby' | 'live' | 'busy' | 'stopping', number>;

/**
 * Starts a service whose model reports its process and all prompts it received. No standby and no live sessions, unless
 * `env` overrides this.
 */
export function startConverser(env: Readonly<Record<string, string>> = {}, command = script('converses.pl')) {
  return startService({
    env: { MODEL_API_CLI: 'demo', MODEL_API_CLI_COMMAND: command, MODEL_API_LIVE_SESSIONS: '0', ...env },
  });
}

/** Sends a prompt; resolves with the report of the process that answers. */
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

/** Returns the received texts, in order. */
export function textsOf({ heard }: Confession): string[] {
  return heard.map(({ text }) => text);
}

export async function processCounts(service: Service): Promise<Counts> {
  const { observability } = (await service.get('/health')).body as { observability: { cli_processes: Counts } };
  return observability.cli_processes;
}

/** Resolves when these counts of processes are reached. */
export function untilProcesses(service: Service, expected: Partial<Counts>, withinMs?: number): Promise<boolean> {
  const fits = async () => {
    const counts = await processCounts(service);
    return Object.entries(expected).every(([state, count]) => counts[state as keyof Counts] === count);
  };
  return until(fits, `processes as ${JSON.stringify(expected)}`, withinMs);
}

/** Resolves with the pid of the only job process, once exactly one exists that is not in `known`. */
export function untilOther(service: Service, known: readonly number[] = []): Promise<number> {
  return until(async () => {
    const [only, ...others] = await service.jobProcesses();
    return others.length === 0 && only !== undefined && !known.includes(only) ? only : null;
  }, 'one other process');
}
