import { z } from 'zod';
import type { FileLogin, StoredLogin } from '../../contract/adapter.js';
import { jsonOf } from '../common/lines.js';

/** Variables that make the CLI use another credential than its login in files. */
const otherCredentials = [
  'ANTHROPIC_API_KEY',
  'ANTHROPIC_AUTH_TOKEN',
  'CLAUDE_CODE_OAUTH_TOKEN',
  'CLAUDE_CODE_USE_BEDROCK',
  'CLAUDE_CODE_USE_FOUNDRY',
  'CLAUDE_CODE_USE_VERTEX',
] as const;

/** Latest time that a Date can represent. */
const maxTime = 8.64e15;

const credentials = z.object({
  claudeAiOauth: z.object({
    accessToken: z.string(),
    refreshToken: z.string().min(1),
    expiresAt: z.number().positive().max(maxTime),
  }),
});
/** Content after the API has refused a renewal: the CLI empties the tokens. */
const ended = z.object({ claudeAiOauth: z.object({ accessToken: z.literal(''), refreshToken: z.literal('') }) });
const owner = z.object({ pid: z.number().int().positive(), lockBirthtimeMs: z.number() });

/**
 * Returns the login that `/login` stores; undefined if the CLI gets a credential from its environment. Measured on
 * 2.1.197 to 2.1.330.
 */
export function loginOf(variables: Readonly<Record<string, string>>, hasToken: boolean): FileLogin | undefined {
  const { HOME: home, CLAUDE_CONFIG_DIR: named } = variables;
  const folder = named || (home && `${home}/.claude`);
  if (!folder || hasToken || otherCredentials.some((name) => variables[name])) return undefined;
  return {
    path: `${folder}/.credentials.json`,
    read: readLogin,
    renewedBeforeMs: 5 * 60_000,
    lock: `${folder}/.oauth_refresh.lock`,
    lockStaleMs: 20_000, // the CLI updates the lock every 5 s
    lockOwner: `${folder}/.oauth_refresh.lock.owner`,
    readOwner: (text) => {
      const { data } = owner.safeParse(jsonOf(text));
      return data === undefined ? null : { pid: data.pid, lockBornAt: data.lockBirthtimeMs };
    },
  };
}

function readLogin(text: string): StoredLogin | null {
  const stored = jsonOf(text);
  const { data } = credentials.safeParse(stored);
  if (data !== undefined) return { expiresAt: data.claudeAiOauth.expiresAt };
  return ended.safeParse(stored).success ? 'ended' : null;
}
