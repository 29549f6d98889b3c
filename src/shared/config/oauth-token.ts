import { join } from 'node:path';
import type { Environment } from './config.js';
import type { ReadFile } from './load-keys.js';

type TokenSettings = Readonly<Record<'MODEL_CODE_OAUTH_TOKEN' | 'MODEL_CODE_OAUTH_TOKEN_FILE', string | null>>;

/**
 * The credential of the model CLI: from its variable, else from the file that is named, else from a credential that systemd
 * has loaded; null where there is none. A fault goes to `faults` and never holds the token.
 */
export async function loadOauthToken(
  env: Environment,
  { MODEL_CODE_OAUTH_TOKEN: token, MODEL_CODE_OAUTH_TOKEN_FILE: file }: Partial<TokenSettings>,
  readFile: ReadFile,
  faults: string[],
): Promise<string | null> {
  if (token !== null || file === undefined) return token ?? null;
  const folder = env.CREDENTIALS_DIRECTORY;
  const path = file ?? (folder ? join(folder, 'oauth_token') : null);
  if (path === null) return null;
  try {
    const text = (await readFile(path)).trim();
    if (/^[\x21-\x7e]+$/.test(text)) return text;
    throw new Error('must hold one token and nothing else');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // A unit may load other credentials only; and where none can be read, that has been told.
    if (file === null && (code === 'ENOENT' || faults.some((fault) => fault.startsWith('$CREDENTIALS')))) return null;
    faults.push(`${file === null ? '$CREDENTIALS_DIRECTORY/oauth_token' : 'MODEL_CODE_OAUTH_TOKEN_FILE'}: ${message}`);
    return null;
  }
}
