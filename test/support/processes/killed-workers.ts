import { readdir, readFile, readlink } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../basics/until.js';
import { Exposition, fallen } from '../documents/exposition.js';
import { untilJobs } from '../jobs/jobs.js';
import type { Service } from '../service/service.js';

/** Counts of failed requests, and of the processes that killed workers leave behind. */
export interface KilledWorkers {
  answered: number;
  refused: number;
  /** Failures on connections that a killed worker had accepted. */
  ofKilled: number;
  /** Failures on other connections. */
  ofOthers: number;
  kills: number;
  /** Counters that decreased between scrapes. */
  fallen: string[];
  /** Processes of jobs that outlived their worker. */
  left: number;
}

const restLimitMs = 10_000;

/** Kills workers from time to time while clients request answers over these connections. Rejects if a slot is lost. */
export async function killWorkersUnderLoad(
  service: Service,
  { connections, everyMs, forMs }: Readonly<Record<'connections' | 'everyMs' | 'forMs', number>>,
): Promise<KilledWorkers> {
  const tally: KilledWorkers = { answered: 0, refused: 0, ofKilled: 0, ofOthers: 0, kills: 0, fallen: [], left: 0 };
  const portsOfKilled = new Set<number>();
  const ending = Date.now() + forMs;
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const call = async () => {
    while (Date.now() < ending) await ask(service, agent, tally, portsOfKilled);
  };
  const callers = Array.from({ length: connections }, call);
  await Promise.all([
    killWorkers(service, tally, portsOfKilled, ending, everyMs),
    watchCounters(service, tally, ending),
    ...callers,
  ]);
  agent.destroy();
  await untilJobs(service, 0, 0, restLimitMs);
  const hasNoJobs = async () => (await service.jobProcesses()).length === 0;
  await until(hasNoJobs, 'no process', restLimitMs).catch(() => {});
  tally.left = (await service.jobProcesses()).length;
  return tally;
}

async function watchCounters(service: Service, tally: KilledWorkers, ending: number): Promise<void> {
  let before: ReadonlyMap<string, number> = new Map();
  for (; Date.now() < ending; await sleep(500)) {
    const scrape = await service.get('/metrics').catch(() => null); // the worker may be killed
    if (scrape === null) continue;
    const after = new Exposition(scrape.text).growing();
    tally.fallen.push(...fallen(before, after));
    before = after;
  }
}

async function ask(
  service: Service,
  agent: Agent,
  tally: KilledWorkers,
  portsOfKilled: ReadonlySet<number>,
): Promise<void> {
  let socket: Socket | undefined;
  let port: number | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      const headers = { 'Content-Type': 'application/json' };
      const options = { host: '127.0.0.1', port: service.port, method: 'POST', path: '/ask', headers, agent };
      request(options, (response) => void text(response).then(() => resolve(), reject))
        .on('socket', (used: Socket) => {
          socket = used;
          port = used.localPort;
          if (!used.connecting) return;
          used.once('connect', () => {
            port = used.localPort;
          });
        })
        .on('error', reject)
        .end(JSON.stringify({ prompt: 'Hello.' }));
    });
    tally.answered++;
  } catch (error) {
    socket?.destroy();
    if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') tally.refused++;
    else if (port !== undefined && portsOfKilled.has(port)) tally.ofKilled++;
    else tally.ofOthers++;
  }
}

async function killWorkers(
  service: Service,
  tally: KilledWorkers,
  portsOfKilled: Set<number>,
  ending: number,
  everyMs: number,
): Promise<void> {
  for (; Date.now() < ending - everyMs; tally.kills++) {
    await sleep(everyMs);
    const pid = await until(async () => (await service.workers().catch(() => [])).at(0), 'a worker to kill');
    process.kill(pid, 'SIGSTOP'); // stops it, to read its connections safely
    for (const port of await clientPortsOf(pid, service.port)) portsOfKilled.add(port);
    process.kill(pid, 'SIGKILL');
  }
}

/** Returns the client ports of the open connections of this process. */
async function clientPortsOf(pid: number, ownPort: number): Promise<number[]> {
  const folder = `/proc/${pid}/fd`;
  const links = await Promise.all((await readdir(folder)).map((fd) => readlink(`${folder}/${fd}`).catch(() => '')));
  const inodes = new Set(links.map((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1]));
  const hexPort = ownPort.toString(16).toUpperCase().padStart(4, '0');
  const lines = (await readFile('/proc/net/tcp', 'utf8')).split('\n').map((line) => line.trim().split(/\s+/));
  return lines.flatMap(([, local = '', remote = '', , , , , , , inode]) => {
    if (!local.endsWith(`:${hexPort}`) || inode === '0' || !inodes.has(inode)) return [];
    return [Number.parseInt(remote.split(':')[1] ?? '', 16)];
  });
}
