import { readdir, readFile, readlink } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { untilJobs } from '../test/support/jobs.js';
import { type Service, startService, twoWorkers } from '../test/support/service.js';
import { until } from '../test/support/until.js';
import { dropLog } from './support/service-log.js';
import type { Row } from './support/table.js';

const connections = 20;
const killEveryMs = 1000;
const forMs = 30_000;

/** What happened to the requests. */
interface Tally {
  answered: number;
  refused: number;
  /** Failed on a connection that a killed worker had accepted. */
  ofKilled: number;
  /** Failed on any other connection. */
  ofOthers: number;
}

/** A worker is killed every second under load: who notices? */
export async function fleet(): Promise<Row[]> {
  await using service = await startService({ env: twoWorkers });
  dropLog(service);
  const tally: Tally = { answered: 0, refused: 0, ofKilled: 0, ofOthers: 0 };
  const portsOfKilled = new Set<number>();
  const ending = Date.now() + forMs;
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const caller = async () => {
    while (Date.now() < ending) await ask(service, agent, tally, portsOfKilled);
  };
  const [kills] = await Promise.all([
    killWorkers(service, portsOfKilled, ending),
    ...Array.from({ length: connections }, caller),
  ]);
  agent.destroy();
  await untilJobs(service, 0, 0, 10_000); // no slot is lost
  const { answered, refused, ofKilled, ofOthers } = tally;
  return [
    {
      question: `A worker of two killed every second for ${forMs / 1000} s, ${connections} connections`,
      target: "0 refused connects, failures only of the killed workers' own requests",
      measured: `${refused} refused; ${ofKilled} of the killed, ${ofOthers} of others; ${answered} answered, ${kills} kills`,
      holds: refused === 0 && ofOthers === 0,
    },
  ];
}

async function ask(service: Service, agent: Agent, tally: Tally, portsOfKilled: ReadonlySet<number>): Promise<void> {
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

async function killWorkers(service: Service, portsOfKilled: Set<number>, ending: number): Promise<number> {
  let kills = 0;
  for (; Date.now() < ending - killEveryMs; kills++) {
    await sleep(killEveryMs);
    const pid = await until(async () => (await service.workers().catch(() => [])).at(0), 'a worker to kill');
    process.kill(pid, 'SIGSTOP'); // what it has accepted can be read in peace
    for (const port of await clientPortsOf(pid, service.port)) portsOfKilled.add(port);
    process.kill(pid, 'SIGKILL');
  }
  return kills;
}

/** Ports of the clients whose connections this process has open. */
async function clientPortsOf(pid: number, ownPort: number): Promise<number[]> {
  const folder = `/proc/${pid}/fd`;
  const links = await Promise.all((await readdir(folder)).map((fd) => readlink(`${folder}/${fd}`).catch(() => '')));
  const inodes = new Set(links.map((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1]));
  const own = ownPort.toString(16).toUpperCase().padStart(4, '0');
  const lines = (await readFile('/proc/net/tcp', 'utf8')).split('\n').map((line) => line.trim().split(/\s+/));
  return lines.flatMap(([, local = '', remote = '', , , , , , , inode]) => {
    if (!local.endsWith(`:${own}`) || inode === '0' || !inodes.has(inode)) return [];
    return [Number.parseInt(remote.split(':')[1] ?? '', 16)];
  });
}
