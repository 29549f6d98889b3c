import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { temporaryFolder } from '../test/support/basics/folder.js';
import { request } from '../test/support/clients/raw-http.js';
import { startService } from '../test/support/service/service.js';
import { memoryOf } from './support/memory-of.js';
import { dropLog } from './support/service-log.js';
import { quantile } from './support/statistics.js';
import type { Row } from './support/table.js';

const connections = 100;
const targets = { addedMs: 10, helperMb: 8 };

/**
 * Measures the cost of naming the users of connections without a key: the time that the first request of a connection
 * takes longer than its second one, and the memory of the Perl process that a Unix socket needs.
 */
export async function localUsers(): Promise<Row[]> {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'socket');
  await using service = await startService({ env: { MODEL_API_SOCKET: path, MODEL_API_WORKERS: '1' } });
  dropLog(service);
  await service.log('readiness_checked');
  await timesOf(() => connect(path)); // starts Perl
  const rows = [
    row('on the Unix socket', await times(() => connect(path))),
    row('on loopback', await times(() => connect(service.port, '127.0.0.1'))),
  ];
  const [worker = 0] = await service.workers();
  const { pssMb } = await memoryOf(await perlOf(worker));
  return [
    ...rows,
    {
      question: 'Memory of the Perl process of a worker, after 100 connections',
      target: `≤ ${targets.helperMb} MB`,
      measured: `PSS ${pssMb.toFixed(1)} MB; 0 without a connection on the Unix socket`,
      holds: pssMb <= targets.helperMb,
    },
  ];
}

function row(where: string, all: readonly (readonly [firstMs: number, secondMs: number])[]): Row {
  const added = all.map(([firstMs, secondMs]) => firstMs - secondMs);
  const [p50, p95] = [quantile(added, 0.5), quantile(added, 0.95)];
  return {
    question: `First request of a connection ${where}, with its user, over its second request, ${connections} connections`,
    target: `p50 ≤ ${targets.addedMs} ms`,
    measured: `p50 ${p50.toFixed(1)} ms, p95 ${p95.toFixed(1)} ms`,
    holds: p50 <= targets.addedMs,
  };
}

async function times(open: () => Socket): Promise<(readonly [number, number])[]> {
  const all: (readonly [number, number])[] = [];
  for (let index = 0; index < connections; index++) all.push(await timesOf(open));
  return all;
}

/** Returns the times of two requests that name their client, on a new connection. */
async function timesOf(open: () => Socket): Promise<readonly [number, number]> {
  const socket = open();
  await once(socket, 'connect');
  const sent = [await answerMs(socket), await answerMs(socket)] as const;
  socket.destroy();
  return sent;
}

async function answerMs(socket: Socket): Promise<number> {
  const begun = performance.now();
  socket.write(request('GET /usage', []));
  let text = '';
  while (!/\}$/.test(text)) text += String((await once(socket, 'data'))[0]);
  return performance.now() - begun;
}

async function perlOf(worker: number): Promise<number> {
  const pids = (await readFile(`/proc/${worker}/task/${worker}/children`, 'utf8')).trim().split(' ').map(Number);
  const names = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/comm`, 'utf8')));
  const pid = pids[names.findIndex((name) => name.trim() === 'perl')];
  if (pid === undefined) throw new Error('the worker has no Perl process');
  return pid;
}
