import { close } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { type Config, ConfigFault, type Environment, loadConfig } from '../../shared/config/config.js';
import type { ConfiguredFeature } from '../../shared/config/feature-variables.js';
import { describeError, type LogEvent } from '../../shared/log/logger.js';
import type { UnitCgroups } from '../../shared/process/cgroup.js';
import { eraseFromEnviron, readVirtualFile } from '../../shared/process/proc.js';
import { escaped } from '../../shared/text/paint.js';
import { type Handover, takeHandover } from './systemd.js';

/**
 * Input of the start of this process. Secrets and other settings were removed from the environment that children
 * inherit.
 */
export interface StartEnvironment {
  readonly handover: Handover;
  readonly env: Environment;
  readonly warnings: readonly string[];
}

/** Settings of a service other than this process. `keepsOwn`: whether the environment of this process applies, too. */
export interface OtherSettings {
  readonly env: Environment;
  readonly keepsOwn: boolean;
  /** Texts of files by path, to be used instead of reading them. */
  readonly files: ReadonlyMap<string, string>;
  /** Cgroups of the systemd unit of the service whose settings are read; null if they are unknown. */
  readonly cgroups: UnitCgroups | null;
}

/**
 * Reads the environment of the process and removes settings from it. `settings` come from the command line, and take
 * precedence over the environment. `featureSecrets`: variables of features that may contain a credential.
 */
export async function takeEnvironment(
  processEnv: Record<string, string | undefined>,
  pid: number,
  settings: Environment,
  featureSecrets: readonly string[],
): Promise<StartEnvironment> {
  const handover = takeHandover(processEnv, pid);
  const env = takeSettings(processEnv);
  const isHidden = await eraseFromEnviron(Object.keys(env).filter(isSetting));
  const secrets = ['MODEL_API_KEY', ...featureSecrets, 'MODEL_CODE_OAUTH_TOKEN'];
  const holdsSecret = secrets.some((name) => env[name] !== undefined);
  const warnings = isHidden || !holdsSecret ? [] : [visibleSecrets];
  return { handover, env: Object.freeze({ ...env, ...settings }), warnings };
}

const visibleSecrets =
  'the environment of this process holds a key or a token and can be read in /proc by every program of its user: ' +
  'use MODEL_API_KEY_FILE and MODEL_CODE_OAUTH_TOKEN_FILE';

/**
 * Removes the service's variables from `env`, because they include credentials, possibly under a mistyped name. Returns
 * a copy of the original environment.
 */
export function takeSettings(env: Record<string, string | undefined>): Environment {
  const whole = Object.freeze({ ...env });
  for (const name of Object.keys(env).filter(isSetting)) delete env[name];
  return whole;
}

/**
 * Reads the configuration, including the files that the settings name. Texts in `known` replace files; their folders
 * have no other files, because this process may not be able to read the real ones. Rejects with a ConfigFault.
 */
export function readConfig(
  env: Environment,
  features: readonly ConfiguredFeature[],
  known: ReadonlyMap<string, string> = new Map(),
): Promise<Config> {
  const folders = new Set([...known.keys()].map(dirname));
  const read = async (path: string) => {
    if (!folders.has(dirname(path))) return readFile(path, 'utf8');
    const text = known.get(path);
    if (text === undefined) throw Object.assign(new Error(`${path} does not exist`), { code: 'ENOENT' });
    return text;
  };
  return loadConfig(env, read, async (path) => (await stat(path)).mode, features);
}

function isSetting(name: string): boolean {
  return /^(MODEL_(API|CODE)|OTEL)_/.test(name);
}

const firstAfterStdio = 3;
const closeOnExec = 0o2000000;

/**
 * Closes descriptors that this process inherited by accident. Node closes only low descriptors in the programs that it
 * starts, so every model CLI would inherit the others. `kept` are intended for this process.
 */
export async function closeInherited(passedFds: readonly number[]): Promise<void> {
  const names = await readdir('/proc/self/fd').catch(() => []);
  const inherited = names.map(Number).filter((fd) => fd >= firstAfterStdio && !passedFds.includes(fd));
  await Promise.all(inherited.map(async (fd) => (await isInherited(fd)) && promisify(close)(fd).catch(() => {})));
}

/** Whether a descriptor was inherited: Node sets close-on-exec on all descriptors that it opens. */
async function isInherited(fd: number): Promise<boolean> {
  const text = await readVirtualFile(`/proc/self/fdinfo/${fd}`).then(String, () => '');
  const flags = /^flags:\s*([0-7]+)$/m.exec(text)?.[1];
  return flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0;
}

/** Reason why the service cannot start, as text for people and as log records. */
export interface StartFault {
  readonly isConfigFault: boolean;
  readonly text: string;
  readonly records: readonly (readonly [event: LogEvent, fields: Readonly<Record<string, string>>])[];
}

export function startFault(error: unknown): StartFault {
  const isConfigFault = error instanceof ConfigFault;
  const faults = isConfigFault ? error.faults : [describeError(error)];
  const warnings = isConfigFault ? error.warnings : [];
  const shown = [...faults, ...warnings.map((warning) => `Warning: ${warning}`)];
  const lines = shown.flatMap((fault) => fault.split('\n')).map((line) => `  ${escaped(line)}\n`);
  return {
    isConfigFault,
    text: `prompt-relay can't start:\n${lines.join('')}`,
    records: [
      ...faults.map((fault) => [isConfigFault ? 'config_invalid' : 'internal_error', { error: fault }] as const),
      ...warnings.map((warning) => ['config_warning', { warning }] as const),
    ],
  };
}

/**
 * Returns where to write a fault. If stdout and stderr end at the same place, such as a terminal or the journal, this
 * avoids printing the fault twice.
 */
export function placesOfFault(isSamePlace: boolean, isLogForPeople: boolean): { inText: boolean; inLog: boolean } {
  if (!isSamePlace) return { inText: true, inLog: true };
  return { inText: isLogForPeople, inLog: !isLogForPeople };
}
