#!/usr/bin/env node
import { chmod, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../shared/clock.js';
import { type Config, ConfigFault, loadConfig } from '../shared/config/config.js';
import { createLogger, describeError, type Logger } from '../shared/logger.js';
import { instanceOfProcess } from '../shared/proc/proc-fs.js';
import { sweepOrphans } from '../shared/proc/sweep-orphans.js';
import { readProduct } from '../shared/product.js';
import { clearStaleSocket, findFreePort, findHostTools, makeRuntimeDirectory, removeRuntimeDirectory } from './host.js';
import { compose } from './service.js';

/** Exit codes: 0 clean, 1 work was cut, 69 address in use or workers can't start, 70 internal, 78 configuration. */
const exitInternal = 70;
const exitConfig = 78;

async function main(): Promise<void> {
  const config = await loadConfig(process.env, (path) => readFile(path, 'utf8'));
  const log = createLogger(config.logLevel, 'primary');
  process.on('uncaughtException', (error) => die(log, error));
  process.on('unhandledRejection', (reason) => die(log, reason));
  await serve(config, log);
}

async function serve(config: Config, log: Logger): Promise<void> {
  const searchPath = process.env.PATH ?? '';
  const reaped = await sweepOrphans(systemClock);
  if (reaped > 0) log.warn('orphans_reaped', { processes: reaped });
  if (config.socketPath !== null) await clearStaleSocket(config.socketPath);
  const runtimeDirectory = await makeRuntimeDirectory(process.env.RUNTIME_DIRECTORY);
  const { supervisor, start } = await compose(config, {
    env: process.env,
    product: readProduct(),
    instance: await instanceOfProcess(process.pid),
    tools: await findHostTools(searchPath),
    runtimeDirectory,
    searchPath,
    clock: systemClock,
    log,
    freePort: findFreePort,
    openSocket: (path) => chmod(path, 0o660),
    exit: (code) => void removeRuntimeDirectory(runtimeDirectory).finally(() => exit(log, code)),
  });
  process.on('SIGTERM', () => void supervisor.terminate('SIGTERM'));
  process.on('SIGINT', () => void supervisor.terminate('SIGINT'));
  start(join(__dirname, '..', 'worker', 'main.js'));
}

/** Workers notice that the primary has gone, end what is left of its process trees, and go too. */
function die(log: Logger, reason: unknown): never {
  log.error('internal_error', { error: describeError(reason) });
  return exit(log, exitInternal);
}

function exit(log: Logger, code: number): never {
  log.flush();
  process.exit(code);
}

main().catch((error: unknown) => {
  const faults = error instanceof ConfigFault ? error.faults : [describeError(error)];
  process.stderr.write(`prompt-relay can't start:\n${faults.map((fault) => `  ${fault}\n`).join('')}`);
  process.exit(error instanceof ConfigFault ? exitConfig : exitInternal);
});
