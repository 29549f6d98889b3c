import { delay, systemClock } from '../shared/clock.js';
import { channelToPrimary } from '../shared/ipc/channel.js';
import { Peer } from '../shared/ipc/peer.js';
import { primaryCalls, workerCalls } from '../shared/ipc/protocol.js';
import { createLogger, describeError, type Logger, standardOutput } from '../shared/logger.js';
import type { Phase } from '../shared/phase.js';
import { sweepOrphans } from '../shared/proc/sweep-orphans.js';
import { createApp } from './app.js';
import { createHttpServer } from './http-server.js';
import { Listeners } from './listeners.js';
import { HttpMetrics } from './metrics.js';
import type { Primary } from './primary.js';

const heartbeatMs = 2000;
const exitBroken = 1;
const exitCannotListen = 69;

async function main(): Promise<void> {
  // A terminal's Ctrl-C and a unit's stop reach every process of the group: the primary leads, workers wait for its word.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});
  const primaryPid = process.ppid;
  process.once('disconnect', () => void follow(primaryPid));

  const listeners = new Listeners(systemClock);
  const metrics = new HttpMetrics();
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
      snapshot: async function* () {
        yield { text: await metrics.snapshot() };
      },
      stop: () => done(() => void listeners.stop().then(() => exit(log, 0))),
      retire: ({ limitMs }) => done(() => void listeners.retire(limitMs).then(() => exit(log, 0))),
    },
    (fault) => log.error('internal_error', { error: describeError(fault) }),
  );
  const settings = await primary.one('hello', {});
  const log = createLogger(
    settings.logLevel,
    'worker',
    standardOutput(() => metrics.logWriteFailed()),
  );
  process.on('uncaughtException', (error) => die(log, error));
  process.on('unhandledRejection', (reason) => die(log, reason));
  phase = settings.phase;

  const clock = systemClock;
  const isRetiring = () => listeners.isRetiring;
  const app = createApp({ primary, settings, phase: () => phase, isRetiring, metrics, log, clock });
  await listeners
    .open(settings, () => createHttpServer(app, log, clock))
    .catch((error: Error) => {
      log.error('listen_failed', { error: error.message });
      exit(log, exitCannotListen);
    });
  systemClock.every(heartbeatMs, () => void beat(primary, metrics));
}

/** Shows that this loop turns, and hands over what has been counted, so that it outlives this process. */
async function beat(primary: Primary, metrics: HttpMetrics): Promise<void> {
  await primary.one('heartbeat', { text: await metrics.snapshot() }).catch(() => {});
}

async function* done(act: () => void): AsyncGenerator<Record<string, never>> {
  act();
  yield {};
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
