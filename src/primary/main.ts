import { chmod, readFile } from 'node:fs/promises';
import { freemem } from 'node:os';
import { join } from 'node:path';
import { delay, systemClock } from '../shared/clock.js';
import { type Config, ConfigFault, type Environment, loadConfig } from '../shared/config/config.js';
import { type ServiceExit, serviceExits } from '../shared/exit-codes.js';
import type { Inspection } from '../shared/inspection.js';
import { blockingOutput, LogOutput, openForLog } from '../shared/log-output.js';
import { createLogger, describeError, type Logger } from '../shared/logger.js';
import { instanceOfProcess } from '../shared/proc/proc-fs.js';
import { removeDirectoryOf, runtimeParent } from '../shared/proc/runtime-directory.js';
import { sweepOrphans } from '../shared/proc/sweep-orphans.js';
import { readProduct } from '../shared/product.js';
import { searchPathOf } from './cli/launch-env.js';
import {
  findFreePort,
  findHostTools,
  findNotifier,
  makeRuntimeDirectory,
  removeRuntimeDirectory,
} from './host/host.js';
import { checkSocketPath, clearStaleSocket } from './host/socket-path.js';
import { type Handover, Systemd, takeHandover } from './host/systemd.js';
import { takeSettings } from './host/take-settings.js';
import type { World } from './host/world.js';
import { inspectSetup } from './inspection.js';
import { chooseAdapter } from './model-cli.js';
import { Service } from './service.js';

/** A defect ends the service, whatever the disk does. */
const removeLimitMs = 1000;

/** Runs the service in this process, until it ends the process. */
export function start(): void {
  main().catch(failToStart);
}

/** What a service started here and now would use. Throws a ConfigFault. The caller ends the process. */
export async function inspect(): Promise<Inspection> {
  const given = takeGiven();
  const config = await readConfig(given.env);
  if (config.socketPath !== null) await checkSocketPath(config.socketPath);
  const world = await createWorld(given, createLogger('silent', 'primary', blockingOutput()), () => 0);
  try {
    return await inspectSetup(config, world);
  } finally {
    await removeRuntimeDirectory(world.runtimeDirectory);
  }
}

/** What this process was started with; what children are not to inherit is taken out of its environment. */
interface Given {
  readonly handover: Handover;
  readonly env: Environment;
}

function takeGiven(): Given {
  const handover = takeHandover(process.env, process.pid);
  return { handover, env: takeSettings(process.env) };
}

function readConfig(env: Environment): Promise<Config> {
  return loadConfig(env, (path) => readFile(path, 'utf8'));
}

/** What signals have asked for, and who answers them once it is there. */
interface Heard {
  end: NodeJS.Signals | null;
  service: Service | null;
}

/** From the first moment on: a start goes on to where it can end in order. A second word ends one that hangs. */
function hearSignals(): Heard {
  const heard: Heard = { end: null, service: null };
  const end = (signal: NodeJS.Signals) => {
    if (heard.service !== null) void heard.service.terminate(signal);
    else if (heard.end !== null) endAtOnce(signal, end);
    else heard.end = signal;
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  process.on('SIGHUP', () => void heard.service?.reload());
  return heard;
}

/** As the system does it without us: an exit would wait for a disk that does not answer. */
function endAtOnce(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): void {
  process.off(signal, listener);
  process.kill(process.pid, signal);
}

async function main(): Promise<void> {
  const heard = hearSignals();
  const given = takeGiven();
  const lostRecords = { count: 0 };
  const config = await readConfig(given.env);
  const log = createLogger(
    config.logLevel,
    'primary',
    new LogOutput(openForLog(process.stdout.fd), systemClock, () => lostRecords.count++),
  );
  process.on('uncaughtException', (error) => die(log, error));
  process.on('unhandledRejection', (reason) => die(log, reason));
  const service = await createService(config, given, log, () => lostRecords.count);
  heard.service = service;
  if (heard.end === null) service.start(join(__dirname, '..', 'worker', 'main.js'));
  else await service.terminate(heard.end);
}

/** Clears up after the dead, and starts nothing. */
async function createService(
  config: Config,
  given: Given,
  log: Logger,
  logWriteErrors: () => number,
): Promise<Service> {
  const reaped = await sweepOrphans(systemClock, runtimeParent(given.env));
  if (reaped > 0) log.warn('orphans_reaped', { processes: reaped });
  if (config.socketPath !== null) await clearStaleSocket(config.socketPath);
  const world = await createWorld(given, log, logWriteErrors);
  const port = config.port === 0 ? await findFreePort(config.host) : config.port;
  return new Service(config, world, await chooseAdapter(config, world), port);
}

async function createWorld({ handover, env }: Given, log: Logger, logWriteErrors: () => number): Promise<World> {
  const searchPath = searchPathOf(env);
  const instance = await instanceOfProcess(process.pid);
  const runtimeDirectory = await makeRuntimeDirectory(runtimeParent(env), instance);
  return {
    env,
    product: readProduct(),
    instance,
    tools: await findHostTools(searchPath),
    systemd: new Systemd(handover, await findNotifier(searchPath), process.pid, systemClock),
    runtimeDirectory,
    searchPath,
    clock: systemClock,
    log,
    logWriteErrors,
    freeMemory: freemem,
    random: Math.random,
    openSocket: (path) => chmod(path, 0o660),
    exit: (code) => void removeRuntimeDirectory(runtimeDirectory).finally(() => exit(log, code)),
  };
}

/** Workers notice that the primary has gone, end what is left of its process trees, and go too. */
function die(log: Logger, reason: unknown): void {
  log.error('internal_error', { error: describeError(reason) });
  void leave(log, serviceExits.internal);
}

/** The end that was not foreseen: nobody may have been told yet where the runtime directory is. */
async function leave(log: Logger, code: ServiceExit): Promise<never> {
  const removed = removeDirectoryOf(await instanceOfProcess(process.pid), runtimeParent(process.env));
  await Promise.race([removed, delay(systemClock, removeLimitMs)]);
  return exit(log, code);
}

function exit(log: Logger, code: ServiceExit): never {
  log.flush();
  process.exit(code);
}

/** For people on stderr, for machines in the log: its level is not known yet, or is a fault itself. */
function failToStart(error: unknown): Promise<never> {
  const isConfigFault = error instanceof ConfigFault;
  const faults = isConfigFault ? error.faults : [describeError(error)];
  process.stderr.write(`prompt-relay can't start:\n${faults.map((fault) => `  ${fault}\n`).join('')}`);
  const log = createLogger('info', 'primary', blockingOutput());
  for (const fault of faults) log.error(isConfigFault ? 'config_invalid' : 'internal_error', { error: fault });
  return leave(log, isConfigFault ? serviceExits.config : serviceExits.internal);
}

if (require.main === module) start();
