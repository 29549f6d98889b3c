import '../shared/node-version.js';

import { delay, systemClock } from '../shared/clock.js';
import { channelToPrimary, type Handlers, Peer } from '../shared/ipc/peer.js';
import { primaryCalls, type WorkerCalls, type WorkerSettings, workerCalls } from '../shared/ipc/protocol.js';
import { createLogger, describeError, type Logger, LogOutput, openForLog, stdoutFd } from '../shared/log/logger.js';
import { logIn } from '../shared/log/text.js';
import { collectAll, HeapKeeper } from '../shared/node-internals/heap.js';
import { PeerCredentials } from '../shared/node-internals/peer-credentials.js';
import { type Phase, workerExits } from '../shared/phase.js';
import { endLeftovers, type TracePlaces } from '../shared/process/leftovers.js';
import { instanceOfProcess } from '../shared/process/proc.js';
import { ProcessScanner } from '../shared/process/scanner.js';
import { ConnectionLimit, LocalUsers } from './access/authenticate.js';
import { KeyRing, WrongKeys } from './access/keys.js';
import { OwnJobs } from './access/own-jobs.js';
import { SocketTable, UserNames } from './access/user-tables.js';
import { StatusViewers } from './api/status.js';
import { createApp, createOllamaApp } from './app.js';
import { BodyMemory } from './http/body-memory.js';
import { HttpMetrics, type Primary } from './http/exchange.js';
import { RequestSpans } from './http/request-spans.js';
import { HttpServer, Listeners } from './http/server.js';
import { SpillFolder } from './jobs/answer-text.js';

const heartbeatMs = 2000;
/** What was counted is sent this often, so that little is lost with a worker that is killed. */
const figuresMs = 10_000;
const lastFiguresLimitMs = 500;
/** A worker is replaced after the first one. */
const maxLoggedDefects = 10;
/** More than it takes to end what a dead primary has left behind. */
const outliveMs = 30_000;
/** The folder of long answers, if TMPDIR names no other one: on a disk, which /tmp may not be. */
const spillPath = '/var/tmp';

/** What this worker knows of itself and of the service. */
interface WorkerContext {
  phase: Phase;
  /** In a drain, a client that takes nothing of its answer for so long is given up; Infinity before the primary has sent its settings. */
  drainUnreadMs: number;
  /** At the level `info` until the primary has sent the configured one. */
  log: Logger;
  /** Where the primary leaves traces; null before it has sent its settings. */
  traces: TracePlaces | null;
  /** null where no spans are exported. */
  spans: RequestSpans | null;
  /** Exceptions that nothing has caught. */
  defects: number;
  readonly keys: KeyRing;
  readonly listeners: Listeners;
  readonly metrics: HttpMetrics;
}

async function main(): Promise<void> {
  // A terminal's Ctrl-C and a unit's stop reach every process of the group. Workers wait for the primary's word.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2']) process.on(signal, () => {});
  process.on('SIGUSR1', () => {}); // else Node opens its debugger, to every program of this machine
  const primaryPid = process.ppid;
  const metrics = new HttpMetrics();
  const output = new LogOutput(openForLog(stdoutFd), systemClock, () => metrics.logWriteFailed());
  const log = createLogger('info', 'worker', output);
  const parts = { keys: new KeyRing(), listeners: new Listeners(), metrics };
  const context: WorkerContext = {
    phase: 'starting',
    drainUnreadMs: Number.POSITIVE_INFINITY,
    log,
    traces: null,
    spans: null,
    defects: 0,
    ...parts,
  };
  process.once('disconnect', () => void outlive(primaryPid, context));
  const primary = connect(context);
  const onDefect = (thrown: unknown) =>
    void (context.listeners.isOpen ? serveOn(context, primary, thrown) : die(log, thrown));
  process.on('uncaughtException', onDefect);
  process.on('unhandledRejection', onDefect);
  const settings = await primary.call('hello', {});
  context.log = createLogger(settings.logLevel, 'worker', logIn(settings.logStyle, output));
  context.phase = settings.phase;
  context.drainUnreadMs = settings.drainUnreadMs;
  context.traces = settings.traces;
  context.keys.begin(settings.keys);
  await serve(context, primary, settings);
  systemClock.every(heartbeatMs, () => primary.call('heartbeat', {}).catch(() => {}));
  systemClock.every(figuresMs, () => metrics.hasNews && void sendFigures(primary, metrics));
}

function connect(context: WorkerContext): Primary {
  const { listeners, metrics } = context;
  const leaveWith = (isWhole: boolean) => leave(peer, context, isWhole ? workerExits.clean : workerExits.cut);
  const handlers: Handlers<WorkerCalls> = {
    phase: ({ phase }) => {
      context.phase = phase;
      if (phase === 'draining') listeners.hurry(context.drainUnreadMs);
    },
    keys: ({ keys }) => context.keys.replace(keys),
    figures: async () => ({ families: await metrics.changes() }),
    stop: ({ limitMs }) => void listeners.close('stop', limitMs).then(leaveWith),
    retire: ({ limitMs }) => void listeners.close('retire', limitMs).then(leaveWith),
  };
  const onFault = (fault: unknown) => context.log.error('internal_error', { error: describeError(fault) });
  const peer: Primary = new Peer(channelToPrimary(process), primaryCalls, workerCalls, handlers, onFault);
  return peer;
}

function localUsers(settings: WorkerSettings, credentials: PeerCredentials): LocalUsers {
  return new LocalUsers(settings, { table: new SocketTable(), credentials, names: new UserNames() });
}

async function ownJobsOf(primaryPid: number, credentials: PeerCredentials): Promise<OwnJobs> {
  const instance = await instanceOfProcess(primaryPid);
  return new OwnJobs(instance, new SocketTable(), new ProcessScanner(systemClock), credentials);
}

async function serve(context: WorkerContext, primary: Primary, settings: WorkerSettings): Promise<void> {
  const { listeners, metrics, log } = context;
  const phase = () => context.phase;
  const isClosing = () => context.phase === 'draining' || listeners.isClosing;
  const parts = { metrics, log, clock: systemClock };
  const heap = new HeapKeeper(systemClock, collectAll);
  const wrongKeys = new WrongKeys(primary, systemClock);
  const credentials = new PeerCredentials(systemClock);
  const users = localUsers(settings, credentials);
  const authority = { keys: context.keys, users, wrongKeys, clock: systemClock };
  const limit = new ConnectionLimit(primary, credentials);
  const spill = new SpillFolder(process.env.TMPDIR || spillPath, log);
  const bodies = new BodyMemory(settings.bodyLimitBytes, systemClock);
  const { closing } = listeners;
  const viewers = new StatusViewers(primary, systemClock, closing);
  const { sampler } = settings;
  const spans = sampler && new RequestSpans(sampler, primary, systemClock);
  context.spans = spans;
  const ownJobs = await ownJobsOf(process.ppid, credentials);
  const owned = { bodies, spill, viewers, spans, ownJobs };
  const ofApp = { primary, settings, authority, phase, isClosing, closing, heap, ...owned, ...parts };
  const app = createApp(ofApp);
  const ollamaApp = settings.ollamaFd === null ? app : createOllamaApp(ofApp);
  try {
    await listeners.open(settings.fds, (fd) => {
      return new HttpServer(fd === settings.ollamaFd ? ollamaApp : app, { ...parts, limit, pace: bodies.pace });
    });
  } catch (error) {
    log.error('listen_failed', { error: (error as Error).message });
    return exit(log, workerExits.cannotListen);
  }
  await sendFigures(primary, metrics); // every family is there from the first scrape on
  await primary.call('listening', {});
  heap.touch();
}

async function sendFigures(primary: Primary, metrics: HttpMetrics): Promise<void> {
  await primary.call('figures', { families: await metrics.changes() }).catch(() => {});
}

/** Sends the last spans, and what was counted last. A primary that has gone, or has no time, is not waited for. */
async function leave(primary: Primary, { spans, metrics, log }: WorkerContext, code: number): Promise<void> {
  if (spans !== null) spans.send();
  const sent = Promise.all([sendFigures(primary, metrics), primary.call('leaving', { code }).catch(() => {})]);
  await Promise.race([sent, delay(systemClock, lastFiguresLimitMs)]);
  return exit(log, code);
}

/** The primary has died. Every worker ends what it has left behind: doing so twice does no harm. */
async function outlive(primaryPid: number, { traces, listeners }: WorkerContext): Promise<never> {
  void listeners.close('retire', outliveMs); // a front sends a client elsewhere if it can't connect, but not one that is lost here
  // Its channel closes a moment before it is gone, and as long as it lives, its processes are not left behind.
  for (let tries = 0; process.ppid === primaryPid && tries < 40; tries++) await delay(systemClock, 10);
  if (traces !== null) await endLeftovers(systemClock, traces);
  process.exit(workerExits.clean);
}

/** Its open requests are not lost: the primary replaces this worker, and it exits after their answers. */
function serveOn(context: WorkerContext, primary: Primary, thrown: unknown): void {
  if (++context.defects <= maxLoggedDefects) context.log.error('internal_error', { error: describeError(thrown) });
  primary.call('broke', {}).catch(() => {});
}

/** During its start. */
function die(log: Logger, reason: unknown): Promise<void> {
  log.error('internal_error', { error: describeError(reason) });
  return exit(log, workerExits.broken);
}

async function exit(log: Logger, code: number): Promise<void> {
  if (await log.flush()) process.exit(code);
  process.kill(process.pid, 'SIGKILL'); // process.exit() would wait for a write that blocks
}

main().catch((error: unknown) => {
  process.stderr.write(`a worker can't start: ${describeError(error)}\n`);
  process.exit(workerExits.broken);
});
