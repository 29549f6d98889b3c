import { doors } from '../../../src/features/doors/feature.js';
import {
  type Adapter,
  type Capabilities,
  type TurnEnd,
  unknownUsage,
} from '../../../src/primary/cli/contract/adapter.js';
import { closeClis, createModelClis } from '../../../src/primary/cli/model-cli.js';
import type { AtLeastOne, NamedAdapter } from '../../../src/primary/cli/models.js';
import { ModelNames, ModelRouter, type RouteOptions } from '../../../src/primary/cli/route.js';
import { GroupContainments } from '../../../src/primary/cli/terminate/group-containment.js';
import { SeenClients } from '../../../src/primary/health/evidence.js';
import { loadConfig } from '../../../src/shared/config/config.js';
import type { ReadinessEntry } from '../../../src/shared/health.js';
import type { Instance } from '../../../src/shared/process/proc.js';
import { temporaryFolder } from '../basics/folder.js';
import { LogBook } from '../basics/log-book.js';
import { clock, temporaryInstance } from '../processes/trees.js';
import { lineVersion, noSecrets, silentObserver } from './scripted-cli.js';

const echo: Adapter['command'] = ['sh', '-c', 'while read -r line; do echo "$0"; done'];

/** Returns a CLI whose answer to each line is an end that names the process's model. */
export function echoCli(name: string, extras: Capabilities = {}, command: Adapter['command'] = echo): NamedAdapter {
  const end = (model: string): TurnEnd => ({ type: 'turn-end', text: null, model, usage: unknownUsage });
  const adapter: Adapter = {
    name,
    command,
    credentialVariable: null,
    env: {},
    models: null,
    learn: async () => ({
      ...lineVersion(),
      extras,
      plan: ({ model }) => ({ args: [model ?? 'default'], files: [] }),
      protocol: () => ({
        writer: { write: ({ text }) => ({ text: `${text}\n`, stdin: 'keep-open' }) },
        decoder: { hasBegun: true, read: (chunk) => [end(`${name}-${chunk.trim()}`)], exit: () => [] },
      }),
      listModels: async () => [
        { id: 'big', name: 'Big', default: true },
        { id: 'small', name: 'Small', default: false, capabilities: { images: false, effort: true } },
      ],
    }),
  };
  return { name, adapter };
}

/**
 * The model CLIs of all tests of a file start their processes as one service, because a new one would first read all processes of the
 * machine.
 */
let house: Promise<{ readonly instance: Instance & AsyncDisposable; readonly containments: GroupContainments }> | null =
  null;
const serials = { last: 0 };
afterAll(async () => {
  if (house !== null) await (await house).instance[Symbol.asyncDispose]();
});

async function openHouse() {
  const instance = await temporaryInstance();
  return { instance, containments: new GroupContainments(instance, null, clock) };
}

/** Builds model CLIs as in the service, with real processes. */
export async function modelClisOf(
  named: AtLeastOne<NamedAdapter>,
  env: Readonly<Record<string, string>> = {},
  optionsOf?: (client: string) => RouteOptions,
) {
  const folder = await temporaryFolder();
  house ??= openHouse();
  const { instance, containments } = await house;
  const config = await loadConfig(env, async () => '', undefined, [doors]);
  const termination = { containments, killTree: async () => {}, warnings: [], fault: null };
  const folders = { runtimeDirectory: folder.path, workDirectory: folder.path, searchPath: '/usr/bin:/bin' };
  const host = {
    env,
    instance,
    termination,
    ...folders,
    clock,
    log: new LogBook(),
    random: () => 0,
    freeMemory: () => 0,
  };
  const checks: ReadinessEntry[] = [];
  const onChecked = (entry: ReadinessEntry) => void checks.push(entry);
  const listeners = {
    observerOf: () => silentObserver,
    onChecked,
    onCircuit: () => {},
    waitingJobs: () => [],
    awaited: () => new Set<string>(),
    isReady: () => false,
  };
  const context = { ...listeners, redactor: noSecrets, clients: new SeenClients() };
  const names = new ModelNames(config, named);
  const clis = createModelClis(config, host, names, context, serials);
  const accountParts = { config, host, names, serials, context };
  const router = new ModelRouter(names, clis, optionsOf);
  const dispose = async () => {
    for (const { health } of clis) health.stopChecks();
    await closeClis(clis, host);
    await folder[Symbol.asyncDispose]();
  };
  return { clis, names, accountParts, router, config, checks, folder, [Symbol.asyncDispose]: dispose };
}
