import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { commandProgram } from '../test/support/command.js';
import { temporaryFolder } from '../test/support/folder.js';
import { freePort } from '../test/support/free-port.js';
import { installNode } from '../test/support/install-once.js';
import { type Service, startService } from '../test/support/service.js';
import { until } from '../test/support/until.js';
import { memoryOf } from './support/memory-of.js';
import { dropLog } from './support/service-log.js';
import { sum } from './support/statistics.js';
import type { Row } from './support/table.js';

const prompts = 10_000;
const slots = 4;
const commandKills = 10;
/** Answers after which the service is killed. */
const serviceKills = [3300, 6600];
const sampleMs = 250;
const limitMs = 45 * 60_000;
const node = '24.21.0';

/** What was seen between the kills. */
class Samples {
  /** Slots in use, while command and service run. */
  readonly busy: number[] = [];
  readonly command: number[] = [];
  readonly service: number[] = [];

  async take(command: ChildProcess, service: Service): Promise<void> {
    const { body } = await service.get('/health');
    const { model_runtime: runtime } = body.observability as { model_runtime: { active_requests: number } };
    this.busy.push(runtime.active_requests);
    this.command.push((await memoryOf(command.pid as number)).rssMb);
    this.service.push((await memoryOf(service.pid)).rssMb);
  }
}

/** A batch of 10,000 prompts with a store in SQLite, while the command and the service are killed. */
export async function batch(): Promise<Row[]> {
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
  const killsLeft = Array.from({ length: commandKills }, (_, kill) => ((kill + 1) * prompts) / (commandKills + 1));
  const serviceKillsLeft = [...serviceKills];
  try {
    for (;;) {
      if (performance.now() - beganMs > limitMs) throw new Error('the batch takes too long');
      await delay(sampleMs);
      if (command.exitCode !== null) break;
      const answered = await linesIn(output);
      if (answered >= (serviceKillsLeft[0] ?? Number.POSITIVE_INFINITY)) {
        serviceKillsLeft.shift();
        await kill(service);
        service = await start();
        await delay(5000); // until the command has noticed, and processes are on standby
      } else if (answered >= (killsLeft[0] ?? Number.POSITIVE_INFINITY)) {
        killsLeft.shift();
        command.kill('SIGKILL');
        await once(command, 'exit');
        command = ask(input, output, port);
        await delay(3000);
      } else if (answered > slots && answered < prompts - 2 * slots) {
        await samples.take(command, service).catch(() => {}); // the command may have ended
      }
    }
    lastLine = command.exitCode === 0 ? '' : ` (exit ${command.exitCode})`;
  } finally {
    command.kill('SIGKILL');
    await service.stop();
  }
  return rowsOf(samples, await readFile(output, 'utf8'), lastLine, (performance.now() - beganMs) / 1000);
}

function ask(input: string, output: string, port: string): ChildProcess {
  const env = { PATH: process.env.PATH ?? '', HOME: '/nonexistent', MODEL_API_PORT: port };
  return spawn(process.execPath, [commandProgram, 'batch', '-q', input, '-o', output], { env, stdio: 'inherit' });
}

async function kill(service: Service): Promise<void> {
  service.process.kill('SIGKILL');
  await service.exited;
  await until(async () => (await service.jobProcesses()).length === 0, 'the end of its jobs');
  await service.stop();
}

async function linesIn(path: string): Promise<number> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return text.split('\n').length - 1;
}

function rowsOf(samples: Samples, text: string, exit: string, seconds: number): Row[] {
  const answers = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly id: number; readonly response?: string });
  const right = answers.filter(({ id, response }) => response?.includes(`N${id}`) === true);
  const once = new Set(right.map(({ id }) => id)).size;
  const share = sum(samples.busy) / samples.busy.length / slots;
  const each = (name: string, values: readonly number[]): Row => {
    const half = values.slice(Math.ceil(values.length / 10)); // after its start
    const growth = Math.max(...half) - Math.min(...half);
    return {
      question: `Memory of ${name} in a batch of ${prompts} prompts`,
      target: '± 30 MB',
      measured: `${Math.min(...half).toFixed(0)}–${Math.max(...half).toFixed(0)} MB`,
      holds: growth <= 60,
    };
  };
  return [
    {
      question: `A batch of ${prompts} prompts, the command killed ${commandKills} times, the service twice, SQLite`,
      target: 'each answered once',
      measured: `${answers.length} lines, ${once} prompts answered${exit}, ${seconds.toFixed(0)} s, ${(prompts / seconds).toFixed(1)}/s`,
      holds: answers.length === prompts && once === prompts,
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
