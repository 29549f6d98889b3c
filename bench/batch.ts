import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { installNode } from '../test/support/agents/install-once.js';
import { temporaryFolder } from '../test/support/basics/folder.js';
import { freePort } from '../test/support/basics/free-port.js';
import { until } from '../test/support/basics/until.js';
import { commandProgram } from '../test/support/clients/command.js';
import { metric } from '../test/support/documents/exposition.js';
import { type Service, startService } from '../test/support/service/service.js';
import { memoryOf } from './support/memory-of.js';
import { dropLog } from './support/service-log.js';
import { spread, sum } from './support/statistics.js';
import type { Row } from './support/table.js';

const maxPrompts = 10_000;
const slots = 4;
const commandKills = 10;
const serviceKills = 2;
/** Answers until a command or a service has loaded all its code. Earlier memory growth does not count as a leak. */
const warmAfter = 50;
const sampleMs = 250;
const limitMs = 45 * 60_000;
const node = '24.21.0';

/** Measurements between the kills, and effects of the kills. */
class Samples {
  /** Number of processes that a kill has ended. */
  readonly kills = { command: 0, service: 0 };
  /** Number of jobs that ran at a kill of the service. */
  lostJobs = 0;
  /** Slots in use while command and service run, and resident memory of both in megabytes. */
  readonly busy: number[] = [];
  readonly command: number[] = [];
  readonly service: number[] = [];

  async take(command: ChildProcess, service: Service): Promise<void> {
    this.busy.push(await metric(service, 'jobs_active'));
    this.command.push((await memoryOf(command.pid as number)).rssMb);
    this.service.push((await memoryOf(service.pid)).rssMb);
  }
}

/** Returns the thresholds that divide `whole` into `count` + 1 equal parts. */
function cuts(whole: number, count: number): number[] {
  return Array.from({ length: count }, (_, cut) => Math.round(((cut + 1) * whole) / (count + 1)));
}

/**
 * Runs a batch with a store in SQLite, and kills the command and the service: 1,000 prompts per round, at most 10,000.
 */
export async function batch(rounds: number): Promise<Row[]> {
  const prompts = Math.min(rounds * 1000, maxPrompts);
  await using folder = await temporaryFolder();
  const [input, output] = [join(folder.path, 'prompts.jsonl'), join(folder.path, 'answers.jsonl')];
  const lines = Array.from({ length: prompts }, (_, id) => JSON.stringify({ id, prompt: `Hello, my name is N${id}` }));
  await writeFile(input, `${lines.join('\n')}\n`);
  const port = String(await freePort());
  const program = join(await installNode(node), 'node');
  const env = {
    MODEL_API_PORT: port,
    MODEL_API_MAX_CONCURRENT: String(slots),
    MODEL_API_STANDBY: '2',
    MODEL_API_STORE: `sqlite:${join(folder.path, 'state', 'store.db')}`,
  };
  const start = async () => {
    const service = await startService({ env, node: program });
    dropLog(service);
    return service;
  };
  const samples = new Samples();
  const beganMs = performance.now();
  let service = await start();
  let command = ask(input, output, port);
  let lastLine = '';
  let warmFrom = warmAfter;
  const killsLeft = cuts(prompts, commandKills);
  const serviceKillsLeft = cuts(prompts, serviceKills);
  try {
    for (;;) {
      if (performance.now() - beganMs > limitMs) throw new Error('the batch takes too long');
      await delay(sampleMs);
      if (command.exitCode !== null) break;
      const answered = await linesIn(output);
      if (answered >= (serviceKillsLeft[0] ?? Number.POSITIVE_INFINITY)) {
        serviceKillsLeft.shift();
        await kill(service, samples);
        service = await start();
        await delay(5000); // for the command to notice, and for standby processes to start
        warmFrom = answered + warmAfter;
      } else if (answered >= (killsLeft[0] ?? Number.POSITIVE_INFINITY)) {
        killsLeft.shift();
        command.kill('SIGKILL');
        await once(command, 'exit');
        if (command.signalCode === 'SIGKILL') samples.kills.command++;
        command = ask(input, output, port);
        warmFrom = answered + warmAfter;
      } else if (answered >= warmFrom && answered < prompts - 2 * slots) {
        await samples.take(command, service).catch(() => {}); // the command may have exited
      }
    }
    lastLine = command.exitCode === 0 ? '' : ` (exit ${command.exitCode})`;
  } finally {
    command.kill('SIGKILL');
    await service.stop();
  }
  return rowsOf(prompts, samples, await readFile(output, 'utf8'), lastLine, (performance.now() - beganMs) / 1000);
}

function ask(input: string, output: string, port: string): ChildProcess {
  const env = { PATH: process.env.PATH ?? '', HOME: '/nonexistent', MODEL_API_PORT: port };
  return spawn(process.execPath, [commandProgram, 'batch', '-q', input, '-o', output], { env, stdio: 'inherit' });
}

/** Kills the service. Counts the jobs of the moment before as lost, which is one too many if a job ends in between. */
async function kill(service: Service, samples: Samples): Promise<void> {
  samples.lostJobs += await metric(service, 'jobs_active');
  service.process.kill('SIGKILL');
  await service.exited;
  if (service.process.signalCode === 'SIGKILL') samples.kills.service++;
  await until(async () => (await service.jobProcesses()).length === 0, 'the end of its jobs');
  await service.stop();
}

async function linesIn(path: string): Promise<number> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return text.split('\n').length - 1;
}

function rowsOf(prompts: number, samples: Samples, text: string, exit: string, seconds: number): Row[] {
  const answers = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly id: number; readonly response?: string });
  const right = answers.filter(({ id, response }) => response?.includes(`N${id}`) === true);
  const once = new Set(right.map(({ id }) => id)).size;
  const { kills, lostJobs } = samples;
  const share = sum(samples.busy) / samples.busy.length / slots;
  const each = (name: string, values: readonly number[]): Row => {
    const growth = Math.max(...values) - Math.min(...values);
    return {
      question: `Memory of ${name} in a batch of ${prompts} prompts`,
      target: '± 30 MB',
      measured: `${spread(values, 0)} MB`,
      holds: growth <= 60,
    };
  };
  return [
    {
      question: `A batch of ${prompts} prompts with SQLite, the command killed ${kills.command} times, the service ${kills.service} times`,
      target: 'each answered once',
      measured: `${answers.length} lines, ${once} prompts answered${exit}, ${seconds.toFixed(0)} s, ${(prompts / seconds).toFixed(1)}/s`,
      holds:
        answers.length === prompts &&
        once === prompts &&
        kills.command === commandKills &&
        kills.service === serviceKills,
    },
    {
      question: 'Jobs lost with these kills, and started again: all with the service, none with the command',
      target: `≤ ${serviceKills * slots}`,
      measured: `${lostJobs}`,
      holds: lostJobs <= serviceKills * slots,
    },
    {
      question: 'Slots in use between the kills',
      target: '≥ 0.95',
      measured: share.toFixed(3),
      holds: share >= 0.95,
    },
    each('the command', samples.command),
    each('the service', samples.service),
  ];
}
