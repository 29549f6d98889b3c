import type { Server } from 'node:http';
import { delay, systemClock } from '../shared/clock.js';
import { channelToPrimary } from '../shared/ipc/channel.js';
import { Peer } from '../shared/ipc/peer.js';
import { type DoorSettings, primaryCalls, workerCalls } from '../shared/ipc/protocol.js';
import { createLogger, describeError, type Logger } from '../shared/logger.js';
import type { Phase } from '../shared/phase.js';
import { sweepOrphans } from '../shared/proc/sweep-orphans.js';
import { createApp } from './app.js';
import { createHttpServer } from './http-server.js';
import { listen, stopListening } from './listen.js';
import type { Primary } from './primary.js';

const heartbeatMs = 2000;
const exitBroken = 1;
const exitCannotListen = 69;

async function main(): Promise<void> {
  // A terminal's Ctrl-C and a unit's stop reach every process of the group: the primary leads, workers wait for its word.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});
  const primaryPid = process.ppid;
  process.once('disconnect', () => void follow(primaryPid));

  const servers: Server[] = [];
  let phase: Phase = 'starting';
  const primary: Primary = new Peer(
    channelToPrimary(process),
    primaryCalls,
    workerCalls,
    {
      phase: async function* (told) {
        phase = told.phase;
        yield {};
      },
      stop: async function* () {
        yield {};
        await stop(servers, log);
      },
    },
    (fault) => log.error('internal_error', { error: describeError(fault) }),
  );
  const settings = await primary.one('hello', {});
  const log = createLogger(settings.logLevel, 'worker');
  process.on('uncaughtException', (error) => die(log, error));
  process.on('unhandledRejection', (reason) => die(log, reason));
  phase = settings.phase;

  const app = createApp({ primary, settings, phase: () => phase, log, clock: systemClock });
  await open(settings, servers, () => createHttpServer(app, log), log);
  systemClock.every(heartbeatMs, () => primary.one('heartbeat', {}).catch(() => {}));
}

async function open(settings: DoorSettings, servers: Server[], create: () => Server, log: Logger): Promise<void> {
  const { host, port, socketPath } = settings;
  try {
    for (const address of [{ host, port }, ...(socketPath === null ? [] : [{ path: socketPath }])]) {
      const server = create();
      await listen(server, address);
      servers.push(server);
    }
  } catch (error) {
    log.error('listen_failed', { error: (error as Error).message });
    exit(log, exitCannotListen);
  }
}

async function stop(servers: readonly Server[], log: Logger): Promise<void> {
  await Promise.all(servers.map(stopListening));
  exit(log, 0);
}

/** The primary has gone. What it can no longer end is ended here, by every worker: doing it twice does no harm. */
async function follow(primaryPid: number): Promise<never> {
  // Its channel closes a moment before it is gone; as long as it counts as alive, its processes are not orphans.
  for (let tries = 0; process.ppid === primaryPid && tries < 40; tries++) await delay(systemClock, 10);
  await sweepOrphans(systemClock);
  process.exit(0);
}

function die(log: Logger, reason: unknown): never {
  log.error('internal_error', { error: describeError(reason) });
  return exit(log, exitBroken);
}

function exit(log: Logger, code: number): never {
  log.flush();
  process.exit(code);
}

main().catch((error: unknown) => {
  process.stderr.write(`a worker can't start: ${describeError(error)}\n`);
  process.exit(exitBroken);
});
