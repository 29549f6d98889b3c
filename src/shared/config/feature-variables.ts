import type { z } from 'zod';
import type { GroupLine, PersonLine } from './api-keys.js';
import type { CliFamily } from './clis.js';
import type { FeatureKeyOption } from './key-option-table.js';
import type { OptionTable } from './key-options.js';
import type { ReadFile } from './secrets.js';
import { memoryPlace, type StoreFamily, type StorePlace } from './stores.js';
import type { Values } from './variables.js';

/**
 * Environment variable of a feature. `meaning` and `shownDefault` are for the documents; without `shownDefault`, they
 * show the fallback.
 */
interface FeatureVariable {
  readonly schema: z.ZodType;
  /** Text that applies if the variable is unset; null for no value. */
  readonly fallback: string | null;
  /**
   * `part`: the value may contain a credential. `whole`: the value is one, and is removed from the output of programs.
   * `file`: the variable names a file; the value is the credential in it, which is removed, too.
   */
  readonly secrecy: 'none' | 'part' | 'whole' | 'file';
  readonly meaning: string;
  readonly shownDefault?: string;
  /** Name in the configuration, if the core or other features read the value. */
  readonly setting?: keyof FeatureSettings;
}

/** Values of variables of features that the core or other features read. */
export interface FeatureSettings {
  readonly store: StorePlace;
  /** Folder for files of the service; null for the folder of systemd or of the user. */
  readonly namedStateFolder: string | null;
  /** Background jobs that may wait. */
  readonly maxJobs: number;
  /** Time for which an ended background job is stored. */
  readonly jobTtlMs: number;
  /** Whether clients may offer tools. */
  readonly tools: 'on' | 'off';
  /** Whether clients may set sampling parameters. */
  readonly sampling: 'on' | 'off';
  /** Parent of the cgroups of programs. `auto`: the cgroup of the service, if possible. Any other value is a path. */
  readonly cgroup: 'auto' | 'off' | string;
  /** Whether users of this machine are clients by user if they send no key, and whether other callers are refused. */
  readonly localUsers: 'off' | 'identify' | 'require';
  /** Names and ids of users who may call without a key; if empty, all may. */
  readonly allowedUsers: readonly string[];
  /** Whether clients may read their conversations. */
  readonly readBack: boolean;
}

/** Values of these settings if the features that have their variables are absent. */
export const absentSettings: FeatureSettings = {
  ...{ store: memoryPlace, namedStateFolder: null, tools: 'off', sampling: 'off', cgroup: 'off', readBack: false },
  ...{ localUsers: 'off', allowedUsers: [] },
  ...{ maxJobs: 0, jobTtlMs: 86_400_000 },
};

/** Returns the settings that variables of features give to other parts of the service. */
export function featureSettingsOf(
  features: readonly Pick<ConfiguredFeature, 'variables'>[],
  values: Readonly<Record<string, unknown>>,
): FeatureSettings {
  const named = Object.entries(variablesOf(features));
  const set = named.flatMap(([name, { setting }]) => (setting === undefined ? [] : [[setting, values[name]]]));
  return { ...absentSettings, ...Object.fromEntries(set) };
}

export type FeatureVariables = Readonly<Record<string, FeatureVariable>>;

/** Additional port of a feature, for programs that only know the port of the service whose API it offers. */
export interface FeaturePort {
  /** Start of the names of fields about it, such as `name` for `name_port`. */
  readonly name: string;
  /** Variable with the number of the port; without a value, the port is closed. */
  readonly variable: string;
  /** Programs that use it, as screens name them. */
  readonly clients: string;
  /** Description of the URL in the set-up report. */
  readonly urlText: string;
}

/** `number` is null if the port is closed, and 0 for any free port. */
export interface PortNumber {
  readonly variable: string;
  readonly number: number | null;
}

export type ConfiguredPort = FeaturePort & PortNumber;

/** Parsed values of variables. */
export type ValuesOf<V extends FeatureVariables> = {
  readonly [N in keyof V]: z.output<V[N]['schema']> | Extract<V[N]['fallback'], null>;
};

/** What the checks of a feature may know of the core and of other features. */
export interface CoreFacts {
  /** Values of the variables of the core. A variable that cannot be parsed has no value. */
  readonly values: Partial<Values>;
  /** Settings that features give. A setting whose variable cannot be parsed has no value. */
  readonly settings: Partial<FeatureSettings>;
  /** Names of the headers that clients send to features. */
  readonly requestHeaders: readonly string[];
  /** Lines of the keys file for people. */
  readonly personLines: readonly PersonLine[];
  /** All lines of the keys file: of keys, people and groups. */
  readonly optionLines: readonly Pick<GroupLine, 'name' | 'featureOptions'>[];
}

/** Settings that decide which files a feature reads. */
export interface SettingsOfFiles {
  readonly store: StorePlace;
  /** Folder for files of the service; null if there is none. */
  readonly stateFolder: string | null;
  /** Whether requests need a key. */
  readonly needsKey: boolean;
  readonly keyOptions: OptionTable;
}

/** What a feature finds in the files that it reads when it starts. */
export interface FileFindings {
  readonly warnings: readonly string[];
  /** Digests of the keys in these files. */
  readonly keyDigests: readonly string[];
}

/** Everything about a feature that the configuration reads: its variables with their checks, its headers, its options of keys, its model CLIs and its kind of stores. */
export interface ConfiguredFeature<V extends FeatureVariables = FeatureVariables> {
  readonly variables: V;
  /** Headers of requests that may run a background job. No proxy may use their names for people. */
  readonly requestHeaders: Readonly<Record<string, z.ZodType>>;
  readonly keyOptions: Readonly<Record<string, FeatureKeyOption>>;
  readonly port?: FeaturePort;
  /** Variable with the number of a port that the feature opens itself. */
  readonly ownPort?: string;
  readonly clis?: CliFamily;
  readonly store?: StoreFamily;
  /** Returns contradictions between the variables. A variable that cannot be parsed has no value. */
  findFaults(values: Partial<ValuesOf<V>>, core: CoreFacts): readonly string[];
  /** Whether requests without a key can come from people whom the feature identifies. Then no other request without one is accepted. */
  identifiesPeople?(values: Partial<ValuesOf<V>>): boolean;
  /** Returns the models that the values name. */
  namedModels?(values: ValuesOf<V>): readonly string[];
  /** Returns warnings about the values, which do not prevent the start. */
  findWarnings(values: ValuesOf<V>, core: CoreFacts): readonly string[];
  /** Reads the files that the feature reads when it starts. */
  inspectFiles?(settings: SettingsOfFiles, read: ReadFile): Promise<FileFindings>;
}

/** Returns the additional ports of all features. A variable with a fault has no value. */
export function portsOf(
  features: readonly Pick<ConfiguredFeature, 'port'>[],
  values: Readonly<Record<string, unknown>>,
): ConfiguredPort[] {
  return features.flatMap(({ port = null }) => {
    const number = port && values[port.variable];
    return port === null ? [] : [{ ...port, number: typeof number === 'number' ? number : null }];
  });
}

/** Returns the ports that features open themselves. A variable with a fault has no value. */
export function ownPortsOf(
  features: readonly Pick<ConfiguredFeature, 'ownPort'>[],
  values: Readonly<Record<string, unknown>>,
): PortNumber[] {
  return features.flatMap(({ ownPort: variable }) => {
    const number = variable === undefined ? null : values[variable];
    return variable === undefined || typeof number !== 'number' ? [] : [{ variable, number }];
  });
}

/** Returns the variables of all features. */
export function variablesOf(features: readonly Pick<ConfiguredFeature, 'variables'>[]): FeatureVariables {
  return Object.assign({}, ...features.map(({ variables }) => variables)) as FeatureVariables;
}

/** Returns the names of the variables with one of these secrecies. */
export function secretNames(
  features: readonly Pick<ConfiguredFeature, 'variables'>[],
  secrecies: readonly FeatureVariable['secrecy'][],
): string[] {
  const named = Object.entries(variablesOf(features)).filter(([, { secrecy }]) => secrecies.includes(secrecy));
  return named.map(([name]) => name);
}
