import { readFile } from 'node:fs/promises';
import type { Environment } from '../../../shared/config/config.js';
import { isThere } from '../../../shared/process/proc.js';
import type { Adapter } from '../contract/adapter.js';

interface Cli {
  readonly name: string;
  readonly adapter: Pick<Adapter, 'login'>;
}

/** Shells of accounts for services. */
const noShell = /\/(?:nologin|false|sync|shutdown|halt)$/;
/** First user id of persons on Debian. Smaller ids belong to services; 0 is root. */
const firstPerson = 1000;

/**
 * Returns a warning for each login in the HOME of a person with a shell, because person and service would both renew
 * it. `passwd` is the text of /etc/passwd.
 */
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

/** Returns the text of /etc/passwd; empty in a container, where no person logs in. */
async function accounts(env: Environment): Promise<string> {
  const marks = await Promise.all(['/.dockerenv', '/run/.containerenv'].map(isThere));
  if (marks.includes(true) || env.KUBERNETES_SERVICE_HOST !== undefined) return '';
  return readFile('/etc/passwd', 'utf8').catch(() => '');
}
