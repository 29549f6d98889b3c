import { fork } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { digestOf, scopes } from '../src/shared/config/api-keys.js';
import { KeyRing } from '../src/worker/access/keys.js';
import { type Service, startService } from '../test/support/service/service.js';
import type { Guesses } from './support/guesser.js';
import { keyedGet } from './support/keyed-get.js';
import { dropLog } from './support/service-log.js';
import { median, quantile } from './support/statistics.js';
import type { Row } from './support/table.js';

const key = 'the-right-key-of-this-bench-0123456789';
const guesses = 100_000;
/**
 * Connections with wrong keys, as many as the service answers in half a second, and connections with the right key, as
 * many as a script would use.
 */
const [wrongConnections, rightConnections] = [400, 8];
const tries = 10_000;
const lanes = 200;
/** Difference of medians that may be random, as a share. Two series of the same kind differ as much. */
const noise = 0.02;

/**
 * Measures how wrong keys affect clients with a right one, and whether the time of a refusal shows how wrong a key is.
 */
export async function keys(): Promise<Row[]> {
  await using service = await startService({ env: { MODEL_API_KEY: key, MODEL_API_WORKERS: '2' } });
  await service.log('readiness_checked');
  dropLog(service);
  return [await floodRow(service), await overHttp(service), inProcess()];
}

async function floodRow(service: Service): Promise<Row> {
  const probe = async (until: Promise<Guesses>) => ({
    latencies: await latenciesUntil(service, until),
    load: await until,
  });
  const alone = await latenciesUntil(service, sleep(5000));
  const right = await probe(load(service, key, rightConnections));
  const wrong = await probe(load(service, '', wrongConnections));
  const [p50, p99] = [0.5, 0.99].map((q) =>
    [alone, right.latencies, wrong.latencies].map((list) => quantile(list, q).toFixed(1)),
  );
  const { statuses, elapsedMs } = wrong.load;
  return {
    question: `A right key's request while ${guesses.toLocaleString('en')} wrong keys come from the same address on ${wrongConnections} connections`,
    target: 'no slower than under as many right ones on 8 connections',
    measured:
      `${statuses[401]} × 401, ${statuses[429]} × 429 in ${(elapsedMs / 1000).toFixed(1)} s (right ones: ${(right.load.elapsedMs / 1000).toFixed(1)} s); ` +
      `alone, under right, under wrong keys: p50 ${p50?.join(', ')} ms, p99 ${p99?.join(', ')} ms`,
    holds:
      median(wrong.latencies) <= median(right.latencies) * 1.1 && (statuses[401] ?? 0) <= 30 && isWhole(wrong.load),
  };
}

function isWhole({ statuses }: Guesses): boolean {
  return (statuses[401] ?? 0) + (statuses[429] ?? 0) === guesses;
}

async function load(service: Service, sent: string, connections: number): Promise<Guesses> {
  const args = [service.port, guesses, connections, sent].map(String);
  const child = fork(join(__dirname, 'support', 'guesser.js'), args);
  const [answer] = (await once(child, 'message')) as [Guesses];
  child.disconnect();
  await once(child, 'exit');
  return answer;
}

async function latenciesUntil(service: Service, end: Promise<unknown>): Promise<number[]> {
  let isOver = false;
  void end.finally(() => {
    isOver = true;
  });
  const socket = await open(service);
  const latencies: number[] = [];
  while (!isOver) {
    latencies.push(await timed(() => keyedGet(socket, key).then((status) => assertIs(status, 404))));
    await sleep(5);
  }
  socket.destroy();
  return latencies;
}

function assertIs(status: number, expected: number): void {
  if (status !== expected) throw new Error(`answered ${status} and not ${expected}`);
}

async function timed(act: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await act();
  return performance.now() - begun;
}

async function open(service: Service): Promise<Socket> {
  const socket = connect(service.port, '127.0.0.1').setNoDelay().setEncoding('latin1');
  await once(socket, 'connect');
  return socket;
}

/** Keys that differ from the right one in the first letter, twice for comparison, and in the last letter. */
const wrongKeys = [`X${key.slice(1)}`, `Y${key.slice(1)}`, `${key.slice(0, -1)}X`];

/** Measures refusals over HTTP, on many connections because the service delays each one. */
async function overHttp(service: Service): Promise<Row> {
  const times: number[][] = [[], [], []];
  const lane = async () => {
    const socket = await open(service);
    for (let round = 0; round < tries / lanes; round++) {
      for (const [kind, wrong] of shuffled()) times[kind]?.push(await timed(() => keyedGet(socket, wrong)));
    }
    socket.destroy();
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return timingRow(
    'over HTTP',
    times.map((list) => list.map((ms) => ms * 1000)),
  );
}

function inProcess(): Row {
  const ring = new KeyRing();
  const keys = [
    {
      name: 'default',
      client: 'key default' as const,
      digest: digestOf(key),
      scopes: [...scopes],
      isCapped: false,
      hasSubclients: false,
      expiresAt: null,
    },
  ];
  ring.setFirstKeys({ keys, personLines: [] });
  const times: number[][] = [[], [], []];
  for (let round = -2000; round < tries; round++) {
    for (const [kind, wrong] of shuffled()) {
      const begun = process.hrtime.bigint();
      ring.find(wrong);
      const us = Number(process.hrtime.bigint() - begun) / 1000;
      if (round >= 0) times[kind]?.push(us);
    }
  }
  return timingRow('in the comparison itself', times);
}

/** Returns the keys in a random order, so that none always follows the same other one. */
function shuffled(): [kind: number, wrong: string][] {
  return wrongKeys
    .map((wrong, kind): [number, string, number] => [kind, wrong, Math.random()])
    .toSorted((a, b) => a[2] - b[2])
    .map(([kind, wrong]) => [kind, wrong]);
}

function timingRow(where: string, times: readonly (readonly number[])[]): Row {
  const [wrong = 0, control = 0, nearlyRight = 0] = times.map(median);
  const share = (other: number) => `${(((other - wrong) / wrong) * 100).toFixed(2)} %`;
  return {
    question: `A key that is right up to its last letter against one that is wrong from its first on, ${where}, ${tries.toLocaleString('en')} tries each`,
    target: `medians within ${noise * 100} %`,
    measured: `${nearlyRight.toFixed(2)} µs against ${wrong.toFixed(2)} µs (${share(nearlyRight)}); two of the same kind: ${share(control)}`,
    holds: Math.abs(nearlyRight - wrong) / wrong <= noise,
  };
}
