import { ConfigFault, type Environment } from '../../shared/config/config.js';
import type { UnitCgroups } from '../../shared/process/cgroup.js';
import { CommandError, exitCodes } from './errors.js';

/** Settings of a service other than this process. */
export interface ForeignSettings {
  readonly env: Environment;
  /** Whether the settings are added to the environment of this process. Otherwise they replace it. */
  readonly keepsOwn: boolean;
  /** Texts of files by their paths. The user of the service may be unable to read these files. */
  readonly files: ReadonlyMap<string, string>;
  /** Ignored settings, a sentence each. */
  readonly notes: readonly string[];
  /** Cgroups of a unit; null if unknown. */
  readonly cgroups: UnitCgroups | null;
  /** Whether the service gets a credential that this command could not read. */
  readonly lacksCredential: boolean;
}

/**
 * Returns the warnings of a failed check whose faults may all come from a credential that the command could not read.
 * Throws the faults otherwise.
 */
export function faultsAsWarnings(error: unknown, settings: ForeignSettings | null): readonly string[] {
  if (!(error instanceof ConfigFault) || settings?.lacksCredential !== true) throw error;
  const isAboutCredential = (fault: string) => /key|token|credential/i.test(fault);
  const faults = error.faults.filter((fault) => !isAboutCredential(fault));
  const warnings = [...error.faults.filter(isAboutCredential), ...error.warnings];
  if (faults.length > 0) throw new ConfigFault(faults, warnings);
  return warnings;
}

/**
 * Parses an EnvironmentFile by the rules of systemd since version 254. Comments begin with # or ;. Quotes delimit a
 * part only before the first unquoted part. A backslash before a line break continues the line; in double quotes it is
 * literal except before " \ ` and $.
 */
export function readEnvFile(text: string): Pick<ForeignSettings, 'env' | 'notes'> {
  const env: Record<string, string> = {};
  const notes: string[] = [];
  const pattern = /[ \t\r\n]*(?:[#;]([^\n\r]*)|([^\n\r][^=\n\r]*)(=?))/y;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const [whole, comment, key = '', sign] = match;
    const line = text.slice(0, match.index + whole.length).split('\n').length;
    if (comment !== undefined) {
      if (comment.endsWith('\\')) notes.push(`line ${line}: before version 254, systemd also ignores the next line`);
      continue;
    }
    const { value, end } = sign === '=' ? readValue(text, pattern.lastIndex) : { value: null, end: pattern.lastIndex };
    pattern.lastIndex = end;
    const name = key.trim();
    if (value !== null && /^[A-Za-z_]\w*$/.test(name)) env[name] = value;
    else notes.push(`line ${line}: systemd ignores it, because it is not NAME=value`);
  }
  return { env, notes };
}

const quoted = /[ \t]*(?:'([^']*)(?:'|$)|"((?:[^"\\]|\\[\s\S])*)(?:"|\\?$))/y;
const unquoted = /[ \t]*((?:\\[\s\S]|[^\\\n\r])*)\\?/y;

function readValue(text: string, start: number): { readonly value: string; readonly end: number } {
  let [value, end] = ['', start];
  for (;;) {
    quoted.lastIndex = end;
    const match = quoted.exec(text);
    if (match === null) break;
    end = quoted.lastIndex;
    value += match[1] ?? (match[2] ?? '').replace(/\\([\s\S])/g, inDoubleQuotes);
  }
  unquoted.lastIndex = end;
  const characters = unquoted.exec(text)?.[1]?.match(/\\[\s\S]|[\s\S]/g) ?? [];
  const length = characters.findLastIndex((each) => each !== ' ' && each !== '\t') + 1;
  const remainder = characters.slice(0, length).map((each) => (/^\\[\n\r]/.test(each) ? '' : (each[1] ?? each)));
  return { value: value + remainder.join(''), end: unquoted.lastIndex };
}

function inDoubleQuotes(whole: string, character: string): string {
  if (character === '\n') return '';
  return /["\\`$]/.test(character) ? character : whole;
}

/** Access to systemd, files and users of this machine. */
export interface UnitHost {
  systemctl(...words: readonly string[]): Promise<string>;
  read(path: string): Promise<string>;
  /**
   * Switches this process to a user for good. Returns the variables that systemd sets for the user. Throws a
   * CommandError.
   */
  become(user: string, group: string, otherGroups: readonly string[]): Promise<Environment>;
}

const properties =
  'LoadState,User,Group,SupplementaryGroups,Environment,EnvironmentFiles,PassEnvironment,UnsetEnvironment,' +
  'Delegate,DelegateControllers,ProtectControlGroups';
/** PATH that systemd sets by default. */
const usualPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * Determines the settings that systemd starts a unit with. Throws a ConfigFault, or a CommandError if something is
 * unreadable.
 */
export async function settingsOfUnit(name: string, host: UnitHost): Promise<ForeignSettings> {
  const unit = /\.\w+$/.test(name) ? name : `${name}.service`;
  const shown = await host.systemctl('show', `--property=${properties}`, '--', unit);
  const valuesOf = (property: string) =>
    shown.split('\n').flatMap((line) => (line.startsWith(`${property}=`) ? [line.slice(property.length + 1)] : []));
  const wordsOf = (property: string) => valuesOf(property).flatMap(wordsIn);
  if (valuesOf('LoadState')[0] !== 'loaded')
    throw new CommandError(exitCodes.usage, `check: systemd has no unit ${unit}`);
  const credentialsFolder = `/run/credentials/${unit}`; // also the value of %d in the properties of the unit
  const reading = new UnitFiles(host);
  const fromFiles: Environment[] = [];
  for (const value of valuesOf('EnvironmentFiles')) fromFiles.push(await reading.envFile(value));
  const credentials = credentialsIn(await host.systemctl('cat', '--', unit));
  for (const [id, path] of credentials.paths) await reading.credential(id, path, `${credentialsFolder}/${id}`);
  reading.notes.push(...credentials.notes);
  const passed = wordsOf('PassEnvironment');
  if (passed.length > 0)
    reading.notes.push(`PassEnvironment=${passed.join(' ')}: this command does not know the values`);
  reading.checkFiles(unit);
  const [[user = ''], [group = '']] = [valuesOf('User'), valuesOf('Group')];
  const userVariables = user === '' ? {} : await host.become(user, group, wordsOf('SupplementaryGroups'));
  const { files, notes } = reading;
  const credentialVariables = files.size === 0 ? {} : { CREDENTIALS_DIRECTORY: credentialsFolder };
  const assigned = Object.fromEntries(wordsOf('Environment').map((word) => word.split(/=([\s\S]*)/, 2)));
  const env = Object.assign({ PATH: usualPath }, userVariables, credentialVariables, assigned, ...fromFiles) as Record<
    string,
    string
  >;
  for (const word of wordsOf('UnsetEnvironment')) {
    const [unset = '', value] = word.split(/=([\s\S]*)/, 2);
    if (value === undefined || value === env[unset]) delete env[unset];
  }
  const cgroups = cgroupsOf((property) => valuesOf(property)[0] ?? '');
  return { env, keepsOwn: false, files, notes, cgroups, lacksCredential: credentials.notes.length > 0 };
}

/** Returns the cgroups that the service will have; null if systemd does not report them. */
function cgroupsOf(read: (property: string) => string): UnitCgroups | null {
  if (read('Delegate') === '') return null;
  if (read('Delegate') !== 'yes') return { fault: 'the unit has no Delegate=', controllers: new Set() };
  if (!['', 'no'].includes(read('ProtectControlGroups')))
    return { fault: 'the unit has ProtectControlGroups=', controllers: new Set() };
  return { fault: null, controllers: new Set(read('DelegateControllers').split(' ')) };
}

/** Reads the files of a unit, before this process becomes the user of the unit. */
class UnitFiles {
  readonly files = new Map<string, string>();
  readonly notes: string[] = [];
  readonly #faults: string[] = [];
  readonly #unreadable: string[] = [];
  readonly #host: UnitHost;

  constructor(host: UnitHost) {
    this.#host = host;
  }

  /** Reads an EnvironmentFile. `shown` has the format of `systemctl show`. */
  async envFile(shown: string): Promise<Environment> {
    const [, path = '', mayMiss] = /^(.*) \(ignore_errors=(yes|no)\)$/.exec(shown) ?? [];
    const text = await this.#read(path, mayMiss === 'yes', 'EnvironmentFile');
    const { env, notes } = readEnvFile(text ?? '');
    this.notes.push(...notes.map((note) => `${path}: ${note}`));
    return env;
  }

  /** Reads a credential. The service finds it at `target`. */
  async credential(id: string, path: string, target: string): Promise<void> {
    const text = await this.#read(path, false, `LoadCredential=${id}`);
    if (text !== null) this.files.set(target, text);
  }

  async #read(path: string, mayMiss: boolean, what: string): Promise<string | null> {
    try {
      return await this.#host.read(path);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === 'EACCES' || code === 'EPERM') this.#unreadable.push(path);
      else if (!mayMiss) this.#faults.push(`${what}: systemd does not start the unit: ${message}`);
      return null;
    }
  }

  /** Throws if a file was unreadable or missing. */
  checkFiles(unit: string): void {
    const paths = this.#unreadable.join(' and ');
    const message = `check: only root can read ${paths}: run "sudo prompt-relay check --unit ${unit}"`;
    if (paths !== '') throw new CommandError(exitCodes.notAllowed, message);
    if (this.#faults.length > 0) throw new ConfigFault(this.#faults, this.notes);
  }
}

/**
 * Parses credentials in the output of `systemctl cat`: the paths of those that this command can read, and a note about
 * each other one. In the output of `systemctl show`, they are unprintable.
 */
function credentialsIn(text: string) {
  const paths = new Map<string, string>();
  const notes: string[] = [];
  for (const [, kind = '', value = ''] of text.matchAll(/^((?:Load|Set)Credential(?:Encrypted)?)=(.*)$/gm)) {
    const [id = '', path = ''] = value.split(/:(.*)/, 2);
    if (value === '') paths.clear();
    else if (kind === 'LoadCredential' && /^\/[^%]*$/.test(path)) paths.set(id, path);
    else notes.push(`${kind}=${id}: not read, because only systemd can do so`);
  }
  return { paths, notes };
}

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', a: '\x07', b: '\b', f: '\f', v: '\v' };

/** Splits a property into words, some of which `systemctl show` quotes. */
function wordsIn(text: string): string[] {
  return [...text.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(([, inQuotes, bare = '']) => {
    const unescaped = (_: string, octal: string | undefined, one: string) =>
      octal === undefined ? (escapes[one] ?? one) : String.fromCharCode(Number.parseInt(octal, 8));
    return inQuotes?.replace(/\\(?:([0-7]{3})|(.))/g, unescaped) ?? bare;
  });
}
