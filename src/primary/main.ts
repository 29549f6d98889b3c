import './lifecycle/small-heap.js';

import { readFile, stat } from 'node:fs/promises';
import { freemem, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { SetupReport } from '../shared/api/setup.js';
import { delay, systemClock } from '../shared/clock.js';
import { type Config, ConfigFault, type Environment, loadConfig } from '../shared/config/config.js';
import { type ServiceExit, serviceExits } from '../shared/exit-codes.js';
import { fullCollection, HeapKeeper } from '../shared/heap.js';
import { type LogDestination, LogOutput, openForLog, stdoutFd } from '../shared/log-output.js';
import { createLogger, describeError, type Logger } from '../shared/logger.js';
import { eraseFromEnviron } from '../shared/process/environ.js';
import { endLeftovers, removeDirectoryOf, type TracePlaces } from '../shared/process/leftovers.js';
import { instanceOfProcess } from '../shared/process/proc.js';
import { makeWorkDirectory } from '../shared/process/work-directory.js';
import { readProduct } from '../shared/product.js';
import { reportSetup } from './api/setup-report.js';
import { searchPathOf } from './cli/environment.js';
import { chooseAdapter } from './cli/registry.js';
import { cgroupParent } from './cli/terminate/cgroup-home.js';
import { chooseTermination } from './cli/terminate/termination.js';
import { openAddresses } from './fleet/addresses.js';
import type { Host } from './lifecycle/host.js';
import { findHostTools, findNotifier } from './lifecycle/host-tools.js';
import { closeInherited } from './lifecycle/inherited-fds.js';
import { makeRuntimeDirectory, removeDirectories, runtimeParent } from './lifecycle/runtime-directory.js';
import { checkSocketPath, clearStaleSocket } from './lifecycle/socket-path.js';
import { type Handover, Systemd, takeHandover } from './lifecycle/systemd.js';
import { Service } from './service.js';

/** After a defect the service ends, even if the disk does not answer. */
const removeLimitMs = 1000;

const noOutput: LogDestination = { write: () => {}, flush: async () => true };

/** Runs the service in this process, until it ends the process. */
export function start(): void {
  main().catch(failToStart);
}

/** What a service that is started here and now would use. Throws a ConfigFault. The caller ends the process. */
export async function inspectSetup(): Promise<SetupReport> {
  const given = await takeGiven();
  const config = await readConfig(given.env);
  if (config.socketPath !== null) await checkSocketPath(config.socketPath);
  try {
    const log = createLogger('silent', 'primary', noOutput);
    return await reportSetup(config, await createHost(config, given, log, 'visitor'));
  } finally {
    await removeOwnDirectory(given.env);
  }
}

/** What this process was started with. What its children must not inherit has been removed from its environment. */
interface Given {
  readonly handover: Handover;
  readonly env: Environment;
  readonly warnings: readonly string[];
}

async function takeGiven(): Promise<Given> {
  const handover = takeHandover(process.env, process.pid);
  const env = takeSettings(process.env);
  const isHidden = await eraseFromEnviron(Object.keys(env).filter(isSetting));
  const holdsSecret = env.MODEL_API_KEY !== undefined || env.MODEL_CODE_OAUTH_TOKEN !== undefined;
  return { handover, env, warnings: isHidden || !holdsSecret ? [] : [visibleSecrets] };
}

const visibleSecrets =
  'the environment of this process holds a key or a token and can be read in /proc by every program of its user: ' +
  'use MODEL_API_KEY_FILE and MODEL_CODE_OAUTH_TOKEN_FILE';

/** There are credentials among our variables, perhaps under a mistyped name. Returns the environment as it was. */
export function takeSettings(env: Record<string, string | undefined>): Environment {
  const whole = Object.freeze({ ...env });
  for (const name of Object.keys(env).filter(isSetting)) delete env[name];
  return whole;
}

function isSetting(name: string): boolean {
  return /^MODEL_(API|CODE)_/.test(name);
}

function readConfig(env: Environment): Promise<Config> {
  return loadConfig(
    env,
    (path) => readFile(path, 'utf8'),
    async (path) => (await stat(path)).mode,
  );
}

/** A signal that came before the service was there, and the service once it is. */
interface PendingSignal {
  signal: NodeJS.Signals | null;
  service: Service | null;
}

/** A start goes on to where it can end in order. A second signal ends one that hangs. */
function listenForSignals(): PendingSignal {
  const pending: PendingSignal = { signal: null, service: null };
  const terminate = (signal: NodeJS.Signals) => {
    if (pending.service !== null) void pending.service.terminate(signal);
    else if (pending.signal !== null) endAtOnce(signal, terminate);
    else pending.signal = signal;
  };
  process.on('SIGTERM', terminate);
  process.on('SIGINT', terminate);
  process.on('SIGHUP', () => void pending.service?.reload());
  process.on('SIGUSR1', () => {}); // else Node opens its debugger, to every program of this machine
  return pending;
}

/** As the system would without us: process.exit would wait for a disk that does not answer. */
function endAtOnce(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): void {
  process.off(signal, listener);
  process.kill(process.pid, signal);
}

async function main(): Promise<void> {
  const pending = listenForSignals();
  const given = await takeGiven();
  await closeInherited(given.handover.passedFds);
  const config = await readConfig(given.env);
  const lost = { count: 0 };
  const output = openOutput(() => lost.count++);
  const log = createLogger(config.logLevel, 'primary', output);
  process.on('uncaughtException', (error) => die(log, error));
  process.on('unhandledRejection', (reason) => die(log, reason));
  await endPredecessors(config, given, log);
  const host = await createHost(config, given, log, 'service', () => lost.count);
  const { adapter, warnings } = await chooseAdapter(config, host.env);
  const addresses = await openAddresses(config, host.systemd.passedFds, withUmask).catch((error: Error) => {
    log.error('listen_failed', { error: error.message });
    log.error('workers_unavailable', { reason: 'the address cannot be used' });
    host.exit(serviceExits.unavailable);
  });
  if (!addresses) return;
  pending.service = new Service({ config, host, adapter, addresses });
  const allWarnings = [...config.warnings, ...given.warnings, ...warnings, ...host.termination.warnings];
  if (pending.signal === null) pending.service.start(join(__dirname, '..', 'worker', 'main.js'), allWarnings);
  else await pending.service.terminate(pending.signal);
}

async function endPredecessors(config: Config, { env }: Given, log: Logger): Promise<void> {
  const reaped = await endLeftovers(systemClock, await tracesOf(config, env));
  if (reaped > 0) log.warn('orphans_reaped', { processes: reaped });
  if (config.socketPath !== null) await clearStaleSocket(config.socketPath);
}

async function tracesOf(config: Config, env: Environment): Promise<TracePlaces> {
  const parent = await cgroupParent(config.cgroup);
  return { runtimeParent: runtimeParent(env).path, cgroupParent: parent?.path ?? null };
}

/** A visitor looks at the host and goes; the service moves into a cgroup of its own. */
async function createHost(
  config: Config,
  { handover, env }: Given,
  log: Logger,
  role: 'visitor' | 'service',
  logWriteErrors: () => number = () => 0,
): Promise<Host> {
  const searchPath = searchPathOf(env);
  const instance = await instanceOfProcess(process.pid);
  const traces = await tracesOf(config, env);
  const runtimeDirectory = await makeRuntimeDirectory(runtimeParent(env), instance);
  const workDirectory = await makeWorkDirectory(runtimeDirectory, resolve(tmpdir()));
  const tools = await findHostTools(searchPath);
  const settings = { cgroup: config.cgroup, maxMemoryBytes: config.cliMemoryBytes, maxProcesses: config.cliProcesses };
  return {
    env,
    product: readProduct(),
    instance,
    termination: await chooseTermination(settings, tools, instance, role === 'service', systemClock),
    systemd: new Systemd(handover, await findNotifier(searchPath), process.pid, systemClock),
    traces,
    runtimeDirectory,
    workDirectory,
    searchPath,
    clock: systemClock,
    heap: new HeapKeeper(systemClock, fullCollection()),
    log,
    logWriteErrors,
    freeMemory: freemem,
    random: Math.random,
    exit: (code) => void removeDirectories([workDirectory, runtimeDirectory]).finally(() => void exit(log, code)),
  };
}

/** For what is made at once: everything else that the process makes meanwhile would be masked too. */
function withUmask<T>(mask: number, make: () => T): T {
  const before = process.umask(mask);
  try {
    return make();
  } finally {
    process.umask(before);
  }
}

/** The workers notice that the primary has gone, end what is left of its processes, and exit too. */
function die(log: Logger, reason: unknown): void {
  log.error('internal_error', { error: describeError(reason) });
  void leave(log, serviceExits.internal);
}

/** An end that was not foreseen: it may not be known yet where the runtime directory is. */
async function leave(log: Logger, code: ServiceExit): Promise<void> {
  await Promise.race([removeOwnDirectory(process.env), delay(systemClock, removeLimitMs)]);
  return exit(log, code);
}

async function removeOwnDirectory(env: Environment): Promise<void> {
  await removeDirectoryOf(await instanceOfProcess(process.pid), runtimeParent(env).path);
}

async function exit(log: Logger, code: ServiceExit): Promise<void> {
  if (await log.flush()) process.exit(code);
  process.kill(process.pid, 'SIGKILL'); // process.exit() would wait for a write that blocks
}

function openOutput(onLost: () => void): LogDestination {
  return new LogOutput(openForLog(stdoutFd), systemClock, onLost);
}

/** On stderr for people, in the log for machines. The log level may not be known yet, or be the fault itself. */
function failToStart(error: unknown): Promise<void> {
  const isConfigFault = error instanceof ConfigFault;
  const faults = isConfigFault ? error.faults : [describeError(error)];
  process.stderr.write(`prompt-relay can't start:\n${faults.map((fault) => `  ${fault}\n`).join('')}`);
  const output = openOutput(() => {});
  const log = createLogger('info', 'primary', output);
  for (const fault of faults) log.error(isConfigFault ? 'config_invalid' : 'internal_error', { error: fault });
  return leave(log, isConfigFault ? serviceExits.config : serviceExits.internal);
}

if (require.main === module) start();
