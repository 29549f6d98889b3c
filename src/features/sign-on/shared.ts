import { z } from 'zod';
import { clientText } from '../../shared/client.js';
import { isLoopback } from '../../shared/config/addresses.js';
import type { CoreFacts, FeatureVariables, ValuesOf } from '../../shared/config/feature-variables.js';

/** Tables of the sign-on by a proxy, which both processes and the documents read. */

/** Headers that clients, browsers or the core use for something else. */
const usedHeaders =
  /^(?:accept|authorization|connection|content|cookie|expect|host|keep-alive|last-event-id|origin|prefer|proxy|referer|sec|te|trailer|transfer-encoding|upgrade|user-agent|via|x-api-key|x-forwarded-(?:for|host|proto)|x-openwebui-user-id|x-request-id)(?:$|-)/;

const mustBeOfProxy = 'must be a header that only the proxy adds, such as X-Forwarded-User';

/** Schema of the name of a header that only a proxy adds, in lower case. */
const headerName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/, 'must be the name of a header, of letters, digits and -')
  .transform((value) => value.toLowerCase())
  .refine((value) => !usedHeaders.test(value), mustBeOfProxy);

const header = { schema: headerName, fallback: null, secrecy: 'none', shownDefault: 'none' } as const;

export const variables = {
  MODEL_API_USER_HEADER: {
    ...header,
    meaning:
      'header in which a trusted proxy names the person whom it has [signed on](clients.md#sign-on-by-the-proxy), such as `X-Forwarded-User`',
  },
  MODEL_API_GROUPS_HEADER: {
    ...header,
    meaning: 'header in which the proxy names the groups of this person, separated by commas',
  },
} as const satisfies FeatureVariables;

export type SignOnValues = ValuesOf<typeof variables>;

export const calls = {
  /** Returns the headers with the name and the groups of a person; null if people do not sign on. */
  signOnHeaders: {
    request: z.object({}),
    answer: z.object({ userHeader: z.string().nullable(), groupsHeader: z.string().nullable() }),
  },
  /** Reports the groups of a person whom a trusted proxy has signed on. */
  signedOn: {
    request: z.object({ client: clientText, groups: z.array(z.string()).readonly() }),
    answer: z.object({}),
  },
};

/** Whether people can use the service without a key. */
export function identifiesPeople({ MODEL_API_USER_HEADER: user }: Partial<SignOnValues>): boolean {
  return user !== null;
}

export function findFaults(
  values: Partial<SignOnValues>,
  { values: coreValues, requestHeaders }: Pick<CoreFacts, 'values' | 'requestHeaders'>,
): string[] {
  const { MODEL_API_USER_HEADER: user, MODEL_API_GROUPS_HEADER: groups } = values;
  const faults: string[] = [];
  if (user && coreValues.MODEL_API_TRUST_PROXY?.length === 0)
    faults.push('MODEL_API_USER_HEADER: needs MODEL_API_TRUST_PROXY');
  if (groups && user === null) faults.push('MODEL_API_GROUPS_HEADER: needs MODEL_API_USER_HEADER');
  if (groups && groups === user)
    faults.push('MODEL_API_GROUPS_HEADER: must not be the header of MODEL_API_USER_HEADER');
  const used = requestHeaders.map((name) => name.toLowerCase());
  const isUsed = (name: string) => used.some((each) => name === each || name.startsWith(`${each}-`));
  const names = ['MODEL_API_USER_HEADER', 'MODEL_API_GROUPS_HEADER'] as const;
  const taken = names.filter((name) => isUsed(values[name] ?? ''));
  return [...faults, ...taken.map((name) => `${name}: ${mustBeOfProxy}`)];
}

export function findWarnings(
  { MODEL_API_USER_HEADER: user, MODEL_API_GROUPS_HEADER: groups }: SignOnValues,
  { values, settings, personLines }: Pick<CoreFacts, 'values' | 'settings' | 'personLines'>,
): string[] {
  const { MODEL_API_TRUST_PROXY: proxies = [] } = values;
  const { allowedUsers: allowed = [] } = settings;
  const warnings: string[] = [];
  if (user === null && personLines.length > 0)
    warnings.push('MODEL_API_KEYS_FILE: without MODEL_API_USER_HEADER, the lines with sso: have no effect');
  if (user !== null && groups === null && personLines.some(({ name }) => name.startsWith('group:')))
    warnings.push('MODEL_API_KEYS_FILE: without MODEL_API_GROUPS_HEADER, the lines with sso:group: have no effect');
  const isOnThisMachine = proxies.some((proxy) => isLoopback(proxy.replace(/\/.*/, '')));
  if (user !== null && isOnThisMachine && allowed.length === 0)
    warnings.push(
      'MODEL_API_USER_HEADER: each user of this machine can pose as the proxy: name the user of the proxy in MODEL_API_ALLOWED_USERS',
    );
  return warnings;
}
