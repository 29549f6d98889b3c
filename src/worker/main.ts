import '../shared/node-version.js';

import { features } from '../features.js';
import { withLimit } from '../shared/async.js';
import { delay, systemClock } from '../shared/clock.js';
import {
  keyFieldsOf,
  primaryCallsWith,
  refusedFieldsOf,
  requestFieldsOf,
  workerCallsWith,
} from '../shared/features/feature.js';
import { channelToPrimary } from '../shared/ipc/cluster-channel.js';
import { type Handlers, Peer } from '../shared/ipc/peer.js';
import type { WorkerCalls, WorkerSettings } from '../shared/ipc/protocol.js';
import { createLogger, describeError, type Logger, LogOutput, openForLog, workerLogFd } from '../shared/log/logger.js';
import { logIn } from '../shared/log/text.js';
import { collectAll, HeapKeeper } from '../shared/node-internals/heap.js';
import { PeerCredentials } from '../shared/node-internals/peer-credentials.js';
import { type Phase, workerExits } from '../shared/phase.js';
import { endLeftovers, type RuntimePlaces } from '../shared/process/leftovers.js';
import { instanceOfProcess } from '../shared/process/proc.js';
import { ProcessScanner } from '../shared/process/scanner.js';
import { ConnectionLimit, type UserSource } from './access/authenticate.js';
import { routeGuards } from './access/guards.js';
import { KeyRing, WrongKeys } from './access/keys.js';
import { OpenRequests } from './access/open-requests.js';
import { OwnJobs } from './access/own-jobs.js';
import { SocketTable } from './access/user-tables.js';
import { createApp, createDoorApp } from './app.js';
import type { WorkerCore, WorkerFeature } from './features/feature.js';
import { createRequestHooks, type RequestHooks } from './features/request-hooks.js';
import { BodyMemory } from './http/body-memory.js';
import { HttpMetrics, type Primary } from './http/exchange.js';
import { HttpServer, Listeners } from './http/server.js';
import { SpillFolder } from './jobs/answer-text.js';
import { type JobInspector, noDocuments } from './jobs/documents.js';
import type { JobParts } from './jobs/run-job.js';

const heartbeatMs = 2000;
/** Interval of sending counts to the primary. A worker that is killed loses those since the last time. */
const figuresMs = 10_000;
const lastFiguresLimitMs = 500;
/** Maximum of uncaught exceptions to log. There are few, because a worker is replaced after the first one. */
const maxLoggedDefects = 10;
/**
 * Time limit of open requests after the primary has died. Ending its processes, after which the worker exits, takes
 * less.
 */
const outliveMs = 30_000;
/** Default folder of long answers: on a disk, while /tmp may be in memory. */
const spillPath = '/var/tmp';

/** State of this worker, and of the service as the worker knows it. */
interface WorkerContext {
  phase: Phase;
  /**
   * Milliseconds that a client may leave its answer unread during a drain, before the worker closes the connection.
   * Infinity until the primary has sent its settings.
   */
  drainUnreadMs: number;
  /** Has the level `info` until the primary has sent the configured one. */
  log: Logger;
  /** Information for finding the primary's processes; null until the primary has sent its settings. */
  runtimePlaces: RuntimePlaces | null;
  /** Largest size of a request body, with the files that it refers to; 0 until the primary has sent its settings. */
  bodyLimitBytes: number;
  /** null until the features are loaded. */
  features: RequestHooks | null;
  /** Number of uncaught exceptions. */
  defects: number;
  readonly keys: KeyRing;
  readonly listeners: Listeners;
  readonly metrics: HttpMetrics;
}

async function main(): Promise<void> {
  // Ctrl-C and systemd's stop signal reach every process of the group. Workers wait for a command of the primary.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2']) process.on(signal, () => {});
  process.on('SIGUSR1', () => {}); // without a listener, Node opens its debugger to all local programs
  const primaryPid = process.ppid;
  const metrics = new HttpMetrics();
  const output = new LogOutput(openForLog(workerLogFd), systemClock, () => metrics.logWriteFailed());
  const log = createLogger('info', 'worker', output);
  const parts = { keys: new KeyRing(), listeners: new Listeners(), metrics };
  const context: WorkerContext = {
    phase: 'starting',
    drainUnreadMs: Number.POSITIVE_INFINITY,
    log,
    runtimePlaces: null,
    bodyLimitBytes: 0,
    features: null,
    defects: 0,
    ...parts,
  };
  process.once('disconnect', () => void outlive(primaryPid, context));
  const inputs = connect(context);
  const { primary } = inputs;
  const onDefect = (thrown: unknown) =>
    void (context.listeners.isOpen ? serveOn(context, primary, thrown) : die(log, thrown));
  process.on('uncaughtException', onDefect);
  process.on('unhandledRejection', onDefect);
  const settings = await primary.call('hello', {});
  context.log = createLogger(settings.logLevel, 'worker', logIn(settings.logStyle, output));
  context.phase = settings.phase;
  context.drainUnreadMs = settings.drainUnreadMs;
  context.bodyLimitBytes = settings.bodyLimitBytes;
  context.runtimePlaces = settings.runtimePlaces;
  context.keys.setFirstKeys(settings);
  await serve(context, inputs, settings);
  systemClock.every(heartbeatMs, () => primary.call('heartbeat', {}).catch(() => {}));
  systemClock.every(figuresMs, () => metrics.hasNews && void sendFigures(primary, metrics));
}

type JobInputs = Pick<JobParts, 'primary' | 'documents'>;

function connect(context: WorkerContext): JobInputs {
  const { listeners, metrics } = context;
  const leaveWith = (isWhole: boolean) => leave(peer, context, isWhole ? workerExits.clean : workerExits.cut);
  const onFault = faultLogger(context);
  const documents: JobInspector = {
    inspectJob: (...job) => (context.features === null ? noDocuments : context.features.documents).inspectJob(...job),
  };
  const handlers: Handlers<WorkerCalls> = {
    phase: ({ phase }) => {
      context.phase = phase;
      if (phase === 'draining') listeners.hurry(context.drainUnreadMs);
    },
    keys: (keys) => context.keys.replace(keys),
    figures: async () => ({ families: await metrics.changes() }),
    ...featureHandlers(context),
    stop: ({ limitMs }) => void listeners.closeServers('stop', limitMs).then(leaveWith),
    retire: ({ limitMs }) => void listeners.closeServers('retire', limitMs).then(leaveWith),
  };
  const calls = [primaryCallsWith(features), workerCallsWith(features)] as const;
  const peer: Primary = new Peer(channelToPrimary(process), ...calls, handlers, onFault);
  return { primary: peer, documents };
}

function faultLogger(context: WorkerContext): (fault: unknown) => void {
  return (fault) => context.log.error('internal_error', { error: describeError(fault) });
}

/** Returns handlers that call those of the features, which are loaded later, but before the first of these calls. */
function featureHandlers(context: WorkerContext): Readonly<Record<string, (request: never) => unknown>> {
  const names = features.flatMap(({ workerCalls = {} }: WorkerFeature) => Object.keys(workerCalls));
  const call = (name: string, request: never) => {
    const handler = context.features === null ? undefined : context.features.handlers[name];
    if (handler === undefined) throw new Error(`no feature of this worker has the call ${name} yet`);
    return handler(request);
  };
  return Object.fromEntries(names.map((name) => [name, (request) => call(name, request)]));
}

/** Returns the users that features know. The features are loaded later, but before the first request. */
function usersOf(context: WorkerContext): UserSource {
  const users = () => {
    if (context.features === null) throw new Error('a request came before the features'); // it could be let in wrongly
    return context.features.users;
  };
  return {
    admitCaller: (req) => users().admitCaller(req),
    name: (req) => users().name(req),
    admitProxy: (req) => users().admitProxy(req),
  };
}

async function ownJobsOf(primaryPid: number, credentials: PeerCredentials): Promise<OwnJobs> {
  const instance = await instanceOfProcess(primaryPid);
  return new OwnJobs(instance, new SocketTable(), new ProcessScanner(systemClock), credentials);
}

async function serve(context: WorkerContext, inputs: JobInputs, settings: WorkerSettings): Promise<void> {
  const { primary } = inputs;
  const { listeners, metrics, log } = context;
  const phase = () => context.phase;
  const isClosing = () => context.phase === 'draining' || listeners.isClosing;
  const parts = { metrics, log, clock: systemClock };
  const heap = new HeapKeeper(systemClock, collectAll);
  const wrongKeys = new WrongKeys(primary, systemClock);
  const credentials = new PeerCredentials(systemClock);
  const users = usersOf(context);
  const limit = new ConnectionLimit(primary, credentials);
  const spill = new SpillFolder(process.env.TMPDIR || spillPath, log);
  const bodies = new BodyMemory(settings.bodyLimitBytes, systemClock);
  const { closing } = listeners;
  const ownJobs = await ownJobsOf(process.ppid, credentials);
  const openRequests = new OpenRequests(context.keys, systemClock);
  const peopleOf = () => (context.features === null ? null : context.features.people);
  const authority = { keys: context.keys, users, wrongKeys, peopleOf, openRequests, clock: systemClock };
  const owned = { bodies, spill };
  const recorderOf: RequestHooks['recorderOf'] = (req, res) =>
    context.features === null ? null : context.features.recorderOf(req, res);
  const guards = routeGuards({ primary, settings, authority, phase, ownJobs, recorderOf });
  // the peer knows the calls of all features, but its type does not
  const callsOfFeatures = primary as unknown as WorkerCore['primary'];
  const jobs = { ...inputs, bodies, spill, clock: systemClock };
  const onFault = faultLogger(context);
  const keyFields = keyFieldsOf(features).body;
  const access = { authority, guards, users, credentials, ownJobs };
  const core = { primary: callsOfFeatures, ...access, closing, jobs, keyFields, onFault, clock: systemClock };
  const hooks = await loadFeatures(core);
  context.features = hooks;
  const state = { isClosing, closing, heap, features: hooks, tracer: hooks.tracer };
  const appParts = { ...inputs, settings, authority, guards, ...state, ...owned, ...parts };
  const app = createApp(appParts);
  const apps = new Map(Object.entries(settings.portFds).map(([name, fd]) => [fd, createDoorApp(appParts, name)]));
  try {
    await listeners.open(settings.fds, (fd) => {
      return new HttpServer(apps.get(fd) || app, { ...parts, limit, pace: bodies.pace });
    });
  } catch (error) {
    log.error('listen_failed', { error: (error as Error).message });
    return exit(log, workerExits.cannotListen);
  }
  await sendFigures(primary, metrics); // makes every metric visible from the first scrape
  await primary.call('listening', {});
  heap.touch();
}

/** Loads the features, and creates their parts for this worker. */
async function loadFeatures(core: Parameters<typeof createRequestHooks>[1]): Promise<RequestHooks> {
  const modules = await Promise.all(features.map((feature) => feature.loadWorker()));
  const fields = { ...refusedFieldsOf(features), ...requestFieldsOf(features) };
  return createRequestHooks(modules, core, fields);
}

async function sendFigures(primary: Primary, metrics: HttpMetrics): Promise<void> {
  await primary.call('figures', { families: await metrics.changes() }).catch(() => {});
}

/** Stops the features, sends the last counts, then exits. A primary that has died or is busy delays this only briefly. */
async function leave(primary: Primary, { features: hooks, metrics, log }: WorkerContext, code: number): Promise<void> {
  if (hooks !== null) hooks.stopParts();
  const sent = Promise.all([sendFigures(primary, metrics), primary.call('leaving', { code }).catch(() => {})]);
  await withLimit(sent, lastFiguresLimitMs, systemClock);
  return exit(log, code);
}

/** Ends the processes of a primary that has died. Every worker does this, which is harmless. */
async function outlive(primaryPid: number, { runtimePlaces, listeners }: WorkerContext): Promise<never> {
  void listeners.closeServers('retire', outliveMs); // a front retries a refused connection elsewhere, but not a lost one
  // The channel closes shortly before the primary exits. Until then, its processes must not be ended.
  for (let tries = 0; process.ppid === primaryPid && tries < 40; tries++) await delay(systemClock, 10);
  if (runtimePlaces !== null) await endLeftovers(systemClock, runtimePlaces);
  process.exit(workerExits.clean);
}

/**
 * Logs an uncaught exception and reports it to the primary, which replaces this worker. Open requests are finished
 * first.
 */
function serveOn(context: WorkerContext, primary: Primary, thrown: unknown): void {
  if (++context.defects <= maxLoggedDefects) context.log.error('internal_error', { error: describeError(thrown) });
  primary.call('broke', {}).catch(() => {});
}

/** Exits after an uncaught exception during the start. */
function die(log: Logger, reason: unknown): Promise<void> {
  log.error('internal_error', { error: describeError(reason) });
  return exit(log, workerExits.broken);
}

async function exit(log: Logger, code: number): Promise<void> {
  if (await log.flush()) process.exit(code);
  process.kill(process.pid, 'SIGKILL'); // process.exit() would wait for a blocked write
}

main().catch((error: unknown) => {
  process.stderr.write(`a worker cannot start: ${describeError(error)}\n`);
  process.exit(workerExits.broken);
});
