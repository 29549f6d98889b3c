import { delay, systemClock } from '../shared/clock.js';
import { workerExits } from '../shared/exit-codes.js';
import { channelToPrimary } from '../shared/ipc/channel.js';
import type { Handlers } from '../shared/ipc/message.js';
import { Peer } from '../shared/ipc/peer.js';
import { type DoorSettings, primaryCalls, type WorkerCalls, workerCalls } from '../shared/ipc/protocol.js';
import { LogOutput, openForLog } from '../shared/log-output.js';
import { createLogger, describeError, type Logger } from '../shared/logger.js';
import type { Phase } from '../shared/phase.js';
import { runtimeParent } from '../shared/proc/runtime-directory.js';
import { sweepOrphans } from '../shared/proc/sweep-orphans.js';
import { createApp } from './app.js';
import { HttpServer } from './http-server.js';
import { Listeners } from './listeners.js';
import { HttpMetrics } from './metrics.js';
import type { Primary } from './primary.js';

const heartbeatMs = 2000;
const lastBeatLimitMs = 500;

async function main(): Promise<void> {
  // A terminal's Ctrl-C and a unit's stop reach every process of the group: the primary leads, workers wait for its word.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});
  const primaryPid = process.ppid;
  process.once('disconnect', () => void follow(primaryPid));

  const metrics = new HttpMetrics();
  const output = new LogOutput(openForLog(process.stdout.fd), systemClock, () => metrics.logWriteFailed());
  const log = createLogger('info', 'worker', output);
  const state: WorkerState = { phase: 'starting', log, listeners: new Listeners(), metrics };
  process.on('uncaughtException', (error) => die(state.log, error));
  process.on('unhandledRejection', (reason) => die(state.log, reason));
  const primary = connect(state);
  const settings = await primary.call('hello', {});
  state.log = createLogger(settings.logLevel, 'worker', output);
  state.phase = settings.phase;
  await serve(state, primary, settings);
  systemClock.every(heartbeatMs, () => void beat(primary, state.metrics));
}

/** What this worker knows of itself and of the service. */
interface WorkerState {
  phase: Phase;
  /** Of the usual level until the primary has told which one is wanted. */
  log: Logger;
  readonly listeners: Listeners;
  readonly metrics: HttpMetrics;
}

function connect(state: WorkerState): Primary {
  const { listeners, metrics } = state;
  const leaveWith = (isWhole: boolean) => leave(peer, state, isWhole ? workerExits.clean : workerExits.cut);
  const handlers: Handlers<WorkerCalls> = {
    phase: ({ phase }) => {
      state.phase = phase;
      return {};
    },
    snapshot: async () => ({ text: await metrics.snapshot() }),
    stop: ({ limitMs }) => {
      void listeners.stop(limitMs).then(leaveWith);
      return {};
    },
    retire: ({ limitMs }) => {
      void listeners.retire(limitMs).then(leaveWith);
      return {};
    },
  };
  const onFault = (fault: unknown) => state.log.error('internal_error', { error: describeError(fault) });
  const peer: Primary = new Peer(channelToPrimary(process), primaryCalls, workerCalls, handlers, onFault);
  return peer;
}

async function serve(state: WorkerState, primary: Primary, settings: DoorSettings): Promise<void> {
  const { listeners, metrics, log } = state;
  const phase = () => state.phase;
  const isClosing = () => state.phase === 'draining' || listeners.isClosing;
  const parts = { metrics, log, clock: systemClock };
  const app = createApp({ primary, settings, phase, isClosing, ...parts });
  try {
    const passed = await listeners.open(settings, () => new HttpServer(app, parts));
    if (passed !== null) await primary.call('listening', passed);
  } catch (error) {
    log.error('listen_failed', { error: (error as Error).message });
    exit(log, workerExits.cannotListen);
  }
}

/** Shows that this loop turns, and hands over what has been counted, so that it outlives this process. */
async function beat(primary: Primary, metrics: HttpMetrics): Promise<void> {
  await primary.call('heartbeat', { text: await metrics.snapshot() }).catch(() => {});
}

/** What was counted since the last beat goes with it. A primary that is gone, or has no time, is not waited for. */
async function leave(primary: Primary, { metrics, log }: WorkerState, code: number): Promise<never> {
  await Promise.race([beat(primary, metrics), delay(systemClock, lastBeatLimitMs)]);
  return exit(log, code);
}

/** The primary has gone. What it can no longer end is ended here, by every worker: doing it twice does no harm. */
async function follow(primaryPid: number): Promise<never> {
  // Its channel closes a moment before it is gone; as long as it counts as alive, its processes are not orphans.
  for (let tries = 0; process.ppid === primaryPid && tries < 40; tries++) await delay(systemClock, 10);
  await sweepOrphans(systemClock, runtimeParent(process.env));
  process.exit(workerExits.clean);
}

function die(log: Logger, reason: unknown): never {
  log.error('internal_error', { error: describeError(reason) });
  return exit(log, workerExits.broken);
}

function exit(log: Logger, code: number): never {
  log.flush();
  process.exit(code);
}

main().catch((error: unknown) => {
  process.stderr.write(`a worker can't start: ${describeError(error)}\n`);
  process.exit(workerExits.broken);
});
