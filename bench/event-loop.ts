import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../test/support/basics/until.js';
import { mainProgram, type Service, startWithProgram, twoWorkers } from '../test/support/service/service.js';
import type { LoopDelay } from './support/loop-probe.js';
import { median, spread } from './support/statistics.js';
import type { Row } from './support/table.js';

const targetMs = 20;
const streams = 4;
const answerBytes = 10 * 1024 * 1024;
const idleMs = 2000;
const flood = join(__dirname, '..', '..', 'bench', 'programs', 'ten-megabytes.js');

/** Measures how long much text blocks the primary's event loop, for which all connections wait. */
export async function eventLoop(rounds: number): Promise<Row[]> {
  const folder = await mkdtemp(join(tmpdir(), 'prompt-relay-bench-'));
  try {
    return [await delayWhileStreaming(join(folder, 'delays'), rounds)];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function delayWhileStreaming(file: string, rounds: number): Promise<Row> {
  await using service = await startWithProgram(`'${process.execPath}' '${flood}'`, {
    ...twoWorkers,
    NODE_OPTIONS: `--require "${join(__dirname, 'support', 'loop-probe.js')}"`,
    BENCH_LOOP_PROBE_FILE: file,
    BENCH_LOOP_PROBE_PROGRAM: mainProgram,
    MODEL_API_MAX_OUTPUT_BYTES: String(answerBytes),
  });
  await stream(service); // to warm up
  await takeDelay(service, file);
  await sleep(idleMs);
  const idle = await takeDelay(service, file);
  const busy: LoopDelay[] = [];
  for (let round = 0; round < rounds; round++) {
    await stream(service);
    busy.push(await takeDelay(service, file));
  }
  return rowOf(idle, busy);
}

function rowOf(idle: LoopDelay, busy: readonly LoopDelay[]): Row {
  const p99s = busy.map(({ p99Ms }) => p99Ms);
  const longest = Math.max(...busy.map(({ maxMs }) => maxMs));
  const figures = `${median(p99s).toFixed(1)} ms (${spread(p99s, 1)})`;
  return {
    question: `Primary's event-loop delay, p99, while ${streams} CLIs stream 10 MB each`,
    target: `≤ ${targetMs} ms`,
    measured: `${figures}; longest ${longest.toFixed(1)} ms; ${idle.p99Ms.toFixed(1)} ms when idle, not subtracted`,
    holds: median(p99s) <= targetMs,
  };
}

async function stream(service: Service): Promise<void> {
  const answers = await Promise.all(Array.from({ length: streams }, () => service.post('/ask', { prompt: 'Go on.' })));
  for (const { status, body } of answers) {
    if ((body.response as string | undefined)?.length !== answerBytes) throw new Error(`the relay answered ${status}`);
  }
}

/** Resolves with the measurements of the probe since the last call. */
async function takeDelay(service: Service, file: string): Promise<LoopDelay> {
  const before = (await linesOf(file)).length;
  service.process.kill('SIGUSR2');
  const lines = await until(async () => {
    const now = await linesOf(file);
    return now.length > before ? now : null;
  }, 'the probe to answer');
  return JSON.parse(lines.at(-1) as string) as LoopDelay;
}

async function linesOf(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text.split('\n').slice(0, -1);
}
