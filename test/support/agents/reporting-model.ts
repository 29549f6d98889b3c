import { until } from '../basics/until.js';
import { type Service, script, startService } from '../service/service.js';

/** Report of the fixture `converses.pl` about itself. */
export interface ProcessReport {
  readonly pid: number;
  readonly edition: string;
  readonly messages: readonly { readonly from: string; readonly text: string }[];
}

export type ProcessCounts = Record<'standby' | 'renewed' | 'live' | 'busy' | 'stopping', number>;

/**
 * Starts a service whose model reports its process and all prompts it received. No standby and no live sessions, unless
 * `env` overrides this.
 */
export function startReportingModel(env: Readonly<Record<string, string>> = {}, command = script('converses.pl')) {
  return startService({
    env: { MODEL_API_CLI: 'demo', MODEL_API_CLI_COMMAND: command, MODEL_API_LIVE_SESSIONS: '0', ...env },
  });
}

/** Sends a prompt; resolves with the report of the process that answers. */
export async function askForReport(
  service: Service,
  path: '/ask' | '/chat',
  body: Readonly<Record<string, unknown>>,
): Promise<ProcessReport & { readonly id: string; readonly messageCount: number }> {
  const answer = await service.post(path, body);
  expect(answer.body).toMatchObject({ success: true });
  const { response, conversation_id: id, message_count: messageCount } = answer.body;
  return { ...readReport(response), id: id as string, messageCount: messageCount as number };
}

export function readReport(response: unknown): ProcessReport {
  return JSON.parse(response as string) as ProcessReport;
}

/** Returns the received texts, in order. */
export function messageTexts({ messages }: ProcessReport): string[] {
  return messages.map(({ text }) => text);
}

export async function processCounts(service: Service): Promise<ProcessCounts> {
  const { observability } = (await service.get('/health')).body as { observability: { cli_processes: ProcessCounts } };
  return observability.cli_processes;
}

/** Resolves when these counts of processes are reached. */
export function untilProcesses(
  service: Service,
  expected: Partial<ProcessCounts>,
  withinMs?: number,
): Promise<boolean> {
  const fits = async () => {
    const counts = await processCounts(service);
    return Object.entries(expected).every(([state, count]) => counts[state as keyof ProcessCounts] === count);
  };
  return until(fits, `processes as ${JSON.stringify(expected)}`, withinMs);
}

/** Resolves with the pid of the only job process, once exactly one exists that is not in `known`. */
export function untilOtherProcess(service: Service, known: readonly number[] = []): Promise<number> {
  return until(async () => {
    const [only, ...others] = await service.jobProcesses();
    return others.length === 0 && only !== undefined && !known.includes(only) ? only : null;
  }, 'one other process');
}
