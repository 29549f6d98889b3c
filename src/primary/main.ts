import '../shared/node-version.js';
import '../shared/node-internals/small-heap.js';

import cluster from 'node:cluster';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { isatty } from 'node:tty';
import { features } from '../features.js';
import type { CheckReport } from '../shared/api/setup.js';

import { type Clock, delay, systemClock } from '../shared/clock.js';

import { type Config, ConfigFault, type Environment } from '../shared/config/config.js';
import { secretNames } from '../shared/config/feature-variables.js';
import { readProduct } from '../shared/config/product.js';
import { containedClock } from '../shared/contained.js';
import { doorNamesOf, primaryCallsWith, workerCallsWith } from '../shared/features/feature.js';
import {
  areSameFile,
  createLogger,
  describeError,
  type LogDestination,
  type Logger,
  LogOutput,
  openForLog,
  stdoutFd,
} from '../shared/log/logger.js';
import { type LogStyle, logIn, logStyleFor } from '../shared/log/text.js';
import { collectAll, HeapKeeper } from '../shared/node-internals/heap.js';
import { serviceExits } from '../shared/phase.js';
import { ownCgroup } from '../shared/process/cgroup.js';
import { makeWorkDirectory } from '../shared/process/leftovers.js';
import { instanceOfProcess } from '../shared/process/proc.js';
import { chooseAdapters, loginProviderOf } from './cli/adapters/registry.js';
import { searchPathOf } from './cli/process/program.js';
import { type ChooseContainments, chooseTermination } from './cli/terminate/termination.js';
import type { StartInput } from './compose.js';
import type { CheckSetup } from './features/feature.js';
import type { OpenedStore } from './hosts/hosts.js';
import { Defects } from './lifecycle/defects.js';
import { findHostTools, findNotifier, freeMemoryIn, type Host } from './lifecycle/host.js';
import { ProcessEnd } from './lifecycle/process-end.js';
import {
  checkSocketPath,
  endPredecessors,
  makeRuntimeDirectory,
  removeDirectories,
  runtimeParent,
  runtimePlacesOf,
} from './lifecycle/runtime-files.js';
import {
  closeInherited,
  type OtherSettings,
  placesOfFault,
  readConfig,
  type StartEnvironment,
  startFault,
  takeEnvironment,
} from './lifecycle/start-environment.js';
import { ancestors, hangUpHandler, hasTerminal, isStartedByNpm, watchStarter } from './lifecycle/starter.js';
import { Systemd } from './lifecycle/systemd.js';
import { Service } from './service.js';
import { asConfigFault, checkKind, openStore } from './store/open.js';
import { addressFault, mayBeAvailableSoon, openAddresses } from './workers/addresses.js';

const channelCalls = { calls: primaryCallsWith(features), workerCalls: workerCallsWith(features) };
const featureTables = { ...channelCalls, doorNames: doorNamesOf(features) };
/** Kinds of stores of the features. */
const storeProviders = features.flatMap(({ store = [] }) => store);
/** Variables of features that other programs must not see. */
const secretVariables = secretNames(features, ['part', 'whole']);
const loginProvider = loginProviderOf(features);
const stderrFd = 2;
/** Less than TimeoutStartSec of the unit, because the start has other steps, too. */
const addressLimitMs = 20_000;
const addressRetryMs = 500;

const noOutput: LogDestination = { write: () => {}, flush: async () => true };
const silent = { logStyle: 'json', show: () => {}, logWriteErrors: () => 0 } as const;

/**
 * Runs the service in this process, which it ends at the end of the service. `settings` take precedence over the
 * environment.
 */
export function start(settings: Environment = {}): void {
  const end = new ProcessEnd(systemClock);
  if (cluster.isWorker) return refuseCluster(end);
  const style = styleOfLog({ ...process.env, ...settings }); // before the settings are removed from the environment
  main(settings, style, end).catch((error: unknown) => failToStart(error, style, end));
}

/** Writes to stderr: under pm2, only this stream is shown. */
function refuseCluster(end: ProcessEnd): void {
  process.stderr.write(
    'prompt-relay cannot run as a worker of node:cluster, as with "exec_mode": "cluster" of pm2: use "fork". ' +
      'It starts workers itself (MODEL_API_WORKERS).\n',
  );
  void end.exit(serviceExits.config, noOutput);
}

function styleOfLog(env: Environment): LogStyle {
  return logStyleFor(env.MODEL_API_LOG_FORMAT, isatty(stdoutFd), env);
}

/**
 * Reports the set-up of a service started with the current or the given settings. With `asks`, its model answers a
 * question. Rejects with a ConfigFault. The caller must end the process.
 */
export async function inspectSetup(
  settings: Environment = {},
  asks = false,
  other: OtherSettings | null = null,
): Promise<CheckReport> {
  const { config, startEnvironment } = await readOtherConfig(settings, other);
  const check = await loadCheck();
  const end = new ProcessEnd(systemClock);
  try {
    const log = createLogger('silent', 'primary', noOutput);
    const cgroups = other === null ? null : other.cgroups;
    const logging = { ...silent, log, clock: systemClock, defects: new Defects(systemClock, log) };
    const host = await createHost(config, startEnvironment, logging, { cgroups }, end);
    return await check(config, host, features, asks);
  } finally {
    await end.files.removeFiles();
  }
}

/**
 * Resolves with the warnings of a service started with the current or the given settings, and runs no program. Rejects
 * with a ConfigFault if it would not start.
 */
export async function inspectSettings(
  settings: Environment = {},
  other: OtherSettings | null = null,
): Promise<readonly string[]> {
  const { config, startEnvironment } = await readOtherConfig(settings, other);
  const { warnings, lineFaults } = await chooseAdapters(config, startEnvironment.env, { clock: systemClock, features });
  return [...config.warnings, ...warnings, ...lineFaults];
}

/** Loads the code of `prompt-relay check`. Rejects with a ConfigFault without the feature that has it. */
async function loadCheck(): Promise<CheckSetup> {
  for (const { loadCheck: load } of features) if (load !== undefined) return load();
  throw new ConfigFault(['this program lacks the feature that checks the set-up']);
}

async function readOtherConfig(
  settings: Environment,
  other: OtherSettings | null,
): Promise<{ readonly config: Config; readonly startEnvironment: StartEnvironment }> {
  const started = await takeEnvironment(process.env, process.pid, settings, secretVariables);
  const env = { ...(other === null ? started.env : { ...(other.keepsOwn && process.env), ...other.env, ...settings }) };
  const config = await (other === null ? readConfig(env, features) : readConfig(env, features, other.files));
  checkKind(config.store, storeProviders);
  if (config.socketPath !== null) await checkSocketPath(config.socketPath);
  return { config, startEnvironment: { ...started, env } };
}

/** Resolves with whether each model CLI of these settings reports what a job costs. Rejects with a ConfigFault. */
export async function reportsCosts(env: Environment): Promise<boolean> {
  const { names } = await chooseAdapters(await readConfig(env, features), env, { clock: systemClock, features });
  return names.reportCosts;
}

/** Signal that came before the service was built, and the service afterwards. */
interface PendingSignal {
  signal: NodeJS.Signals | null;
  service: Service | null;
}

/**
 * Installs the signal handlers. The first signal waits until the start has reached a point where the service can shut
 * down cleanly; a second signal kills the process.
 */
function listenForSignals(end: ProcessEnd): PendingSignal {
  const pending: PendingSignal = { signal: null, service: null };
  const terminate = (signal: NodeJS.Signals) => {
    if (pending.service !== null) void pending.service.terminate(signal);
    else if (pending.signal !== null) void end.kill(signal);
    else pending.signal = signal;
  };
  process.on('SIGTERM', terminate);
  process.on('SIGINT', terminate);
  process.on('SIGUSR2', (signal) => {
    if (pending.service === null) terminate(signal);
    else void pending.service.handOver(signal);
  });
  const reload = () => {
    if (pending.service !== null) void pending.service.reload();
  };
  process.on('SIGHUP', hangUpHandler(systemClock, hasTerminal, { reload, end: () => terminate('SIGHUP') }));
  process.on('SIGUSR1', () => {}); // otherwise Node opens its debugger to every program of this machine
  return pending;
}

async function main(settings: Environment, logStyle: LogStyle, end: ProcessEnd): Promise<void> {
  const pending = listenForSignals(end);
  const startEnvironment = await takeEnvironment(process.env, process.pid, settings, secretVariables);
  await closeInherited(startEnvironment.handover.passedFds);
  const config = await readConfig(startEnvironment.env, features);
  const lost = { count: 0 };
  const output = openOutput(() => lost.count++);
  const log = createLogger(config.logLevel, 'primary', logIn(logStyle, output));
  const defects = new Defects(systemClock, log);
  const clock = containedClock(systemClock, defects.record);
  process.on('uncaughtException', (error) => {
    // biome-ignore lint/complexity/useOptionalChain: an old Node.js, which must report its version, cannot parse it
    if (pending.service !== null && pending.service.hasStarted) defects.record(error);
    else failInStart(error, log, end);
  });
  // The process continues after an unhandled rejection: no result depends on a promise that nothing awaits.
  process.on('unhandledRejection', defects.record);
  await endPredecessors(config, startEnvironment.env, log, systemClock);
  const show = (lines: readonly string[]) =>
    logStyle !== 'json' && output.write(lines.map((line) => `${line}\n`).join(''));
  const logging = { log, logStyle, show, logWriteErrors: () => lost.count, clock, defects };
  const host = await createHost(config, startEnvironment, logging, 'service', end);
  const choice = await chooseAdapters(config, host.env, { clock: host.clock, features });
  const { names, loginSource, warnings, lineFaults } = choice;
  const stored = await openStoreOf(config, clock, end);
  const ports = await portsInTime(config, host, pending);
  if (ports === null) return host.exit(pending.signal === null ? serviceExits.unavailable : 0);
  const allWarnings = [
    ...config.warnings,
    ...startEnvironment.warnings,
    ...warnings,
    ...lineFaults.map((fault) => `${fault}: the service refuses this line`),
    ...(loginSource === null ? [] : loginSource.warnings(host, names.clis)),
    ...host.termination.warnings,
    ...host.systemd.warnings,
  ];
  const createFeatures = await loadFeatures(config);
  const loaded = { createFeatures, ...featureTables };
  const settled = { config, host, names, loginSource, ...loaded, warnings: allWarnings };
  const service = new Service({ ...settled, ...ports, ...stored });
  await service.restore().catch((error: unknown) => {
    throw asConfigFault(error);
  });
  pending.service = service;
  if (isStartedByNpm(startEnvironment.env)) void watchStarter(clock, ancestors, () => void service.endWithStarter());
  if (pending.signal === null) pending.service.start(join(__dirname, '..', 'worker', 'main.js'));
  else await pending.service.terminate(pending.signal);
}

/** Opens the store of the core or of a feature. */
function openStoreOf(config: Config, clock: Clock, end: ProcessEnd): Promise<OpenedStore> {
  const tables = features.flatMap((feature) => feature.tables);
  return openStore(config.store, storeProviders, { config, tables, clock, onHang: () => end.killOnExit() });
}

/**
 * Opens the ports. Under systemd, it retries for a while if an address may become available, because systemd gives up
 * after several failed starts.
 */
async function portsInTime(
  config: Config,
  host: Host,
  pending: PendingSignal,
): Promise<Pick<StartInput, 'addresses' | 'front'> | null> {
  const { clock, log, systemd } = host;
  const untilMs = clock.monotonicMs() + (systemd.isThere ? addressLimitMs : 0);
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await openPorts(config, host);
    } catch (error) {
      const isPassing = await mayBeAvailableSoon(error as Error, config.socketPath);
      if (isFirst || !isPassing) log.error('listen_failed', { error: await addressFault(error as Error, config) });
      if (!isPassing || pending.signal !== null || clock.monotonicMs() >= untilMs) return null;
      await delay(clock, addressRetryMs);
    }
  }
}

async function openPorts(config: Config, { systemd, clock }: Host): Promise<Pick<StartInput, 'addresses' | 'front'>> {
  const addresses = await openAddresses(config, systemd.passedFds, withUmask);
  const { host } = addresses.main;
  try {
    for (const { openFront } of features)
      if (openFront !== undefined) return { addresses, front: await openFront(config.featureValues, host, clock) };
    return { addresses, front: null };
  } catch (error) {
    addresses.close();
    throw error;
  }
}

/** Loads the code of the feature that contains programs; null if there is none. */
async function loadContainments({ featureValues }: Config): Promise<ChooseContainments | null> {
  for (const { loadContainments: load } of features) if (load !== undefined) return load(featureValues);
  return null;
}

/** Loads the code of the features that the configuration needs. */
function loadFeatures({ featureValues }: Config): Promise<StartInput['createFeatures']> {
  return Promise.all(features.map((feature) => feature.loadPrimary(featureValues)));
}

type Logging = Pick<Host, 'log' | 'logStyle' | 'show' | 'logWriteErrors' | 'clock' | 'defects'>;
/**
 * Purpose of this process: run the service, or only inspect the host, for a unit with these cgroups if they are set.
 */
type Role = 'service' | { readonly cgroups: OtherSettings['cgroups'] };

async function createHost(
  config: Config,
  startEnvironment: StartEnvironment,
  logging: Logging,
  role: Role,
  end: ProcessEnd,
): Promise<Host> {
  const runtimePlaces = await runtimePlacesOf(config, startEnvironment.env);
  return end.files.make(runtimePlaces, () =>
    makeHost(config, startEnvironment, { ...logging, runtimePlaces }, role, end),
  );
}

/** Creates the host. A service moves into its cgroup. */
async function makeHost(
  config: Config,
  { handover, env }: StartEnvironment,
  known: Logging & Pick<Host, 'runtimePlaces'>,
  role: Role,
  end: ProcessEnd,
): Promise<Host> {
  const searchPath = searchPathOf(env);
  const instance = await instanceOfProcess(process.pid);
  const { clock } = known;
  if (role === 'service' && loginProvider !== null) await loginProvider.checkHost(config.featureValues);
  const runtimeDirectory = await makeRuntimeDirectory(runtimeParent(env), instance);
  const workDirectory = await makeWorkDirectory(runtimeDirectory, resolve(tmpdir()));
  const tools = await findHostTools(searchPath);
  const isService = role === 'service';
  const containmentHost = { instance, unitCgroups: isService ? null : role.cgroups, isService, clock, log: known.log };
  const termination = await chooseTermination(tools, containmentHost, await loadContainments(config));
  const fence = loginProvider === null ? null : await loginProvider.createFence(config.featureValues, searchPath, env);
  const cgroup = await ownCgroup(); // after the service has moved into its cgroup
  return {
    env,
    product: readProduct(),
    instance,
    termination,
    ...(fence !== null && { fence }),
    systemd: new Systemd(handover, await findNotifier(searchPath), process.pid, clock),
    runtimeDirectory,
    workDirectory,
    searchPath,
    heap: new HeapKeeper(clock, collectAll),
    ...known,
    freeMemory: () => freeMemoryIn(cgroup),
    random: Math.random,
    exit: (code) =>
      void removeDirectories([workDirectory, runtimeDirectory]).finally(() => void end.exit(code, known.log)),
  };
}

/**
 * Calls a synchronous `make` under this umask. The umask applies to the whole process, so nothing asynchronous may run
 * under it.
 */
function withUmask<T>(mask: number, make: () => T): T {
  const before = process.umask(mask);
  try {
    return make();
  } finally {
    process.umask(before);
  }
}

/**
 * Ends the process after a defect during the start. The workers notice that the primary has exited, end its remaining
 * processes, and exit, too.
 */
function failInStart(reason: unknown, log: Logger, end: ProcessEnd): void {
  log.error('internal_error', { error: describeError(reason) });
  void end.exit(serviceExits.internal, log);
}

function openOutput(onLost: () => void): LogDestination {
  return new LogOutput(openForLog(stdoutFd), systemClock, onLost);
}

/** Reports a failed start. The configured log level is not used, because it may be unknown or be the fault itself. */
function failToStart(error: unknown, style: LogStyle, end: ProcessEnd): Promise<void> {
  const { isConfigFault, text, records } = startFault(error);
  const { inText, inLog } = placesOfFault(areSameFile(stdoutFd, stderrFd), style !== 'json');
  if (inText) process.stderr.write(text);
  const log = createLogger(
    inLog ? 'info' : 'silent',
    'primary',
    logIn(
      style,
      openOutput(() => {}),
    ),
  );
  for (const [event, fields] of records) log[event === 'config_warning' ? 'warn' : 'error'](event, fields);
  return end.exit(isConfigFault ? serviceExits.config : serviceExits.internal, log);
}

if (require.main === module) start();
