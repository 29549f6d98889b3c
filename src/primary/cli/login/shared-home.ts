import { readFile } from 'node:fs/promises';
import type { Environment } from '../../../shared/config/config.js';
import { isThere } from '../../../shared/process/proc.js';
import type { Adapter } from '../contract/adapter.js';

interface Cli {
  readonly name: string;
  readonly adapter: Pick<Adapter, 'login'>;
}

/** Shells of accounts that no person uses. */
const noShell = /\/(?:nologin|false|sync|shutdown|halt)$/;
/** Debian gives smaller numbers to services; 0 is root. */
const firstPerson = 1000;

/** A warning for each login that a person with a shell has in its HOME: both would renew it. `passwd` is the text of /etc/passwd. */
export async function sharedLoginWarnings(
  clis: readonly Cli[],
  env: Environment,
  passwd: Promise<string> = accounts(env),
): Promise<string[]> {
  const person = personAt(env.HOME, await passwd);
  if (person === null) return [];
  const logins = clis.map(async ({ name, adapter }) =>
    adapter.login !== undefined && (await isThere(adapter.login.path)) ? [warningOf(name, person)] : [],
  );
  return (await Promise.all(logins)).flat();
}

function warningOf(cli: string, person: string): string {
  return (
    `the HOME of the service belongs to ${person}, who can log in to this host: if ${person} uses ${cli}, both renew ` +
    'the same login, which can end it. Give the service a user, or set MODEL_CODE_OAUTH_TOKEN (docs/clis.md).'
  );
}

function personAt(home: string | undefined, passwd: string): string | null {
  if (!home) return null;
  const rows = passwd.split('\n').map((line) => line.split(':'));
  const isPerson = ([, , uid = '', , , folder, shell = '']: readonly string[]) =>
    folder === home && (uid === '0' || Number(uid) >= firstPerson) && !noShell.test(shell);
  return rows.find(isPerson)?.[0] ?? null;
}

/** Nobody logs in to a container, whatever its accounts say. */
async function accounts(env: Environment): Promise<string> {
  const marks = await Promise.all(['/.dockerenv', '/run/.containerenv'].map(isThere));
  if (marks.includes(true) || env.KUBERNETES_SERVICE_HOST !== undefined) return '';
  return readFile('/etc/passwd', 'utf8').catch(() => '');
}
