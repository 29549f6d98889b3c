import { z } from 'zod';
import { accountList } from '../../shared/api/accounts.js';
import { clientText } from '../../shared/client.js';
import type { FeatureVariables, ValuesOf } from '../../shared/config/feature-variables.js';
import type { FeatureKeyOption } from '../../shared/config/key-option-table.js';
import { accountNamePattern, flag, text } from '../../shared/config/values.js';
import type { FeatureEndpoint } from '../../shared/features/feature.js';
import type { LogEvent, Logger } from '../../shared/log/logger.js';
import type { MetricTable } from '../../shared/tables/metrics.js';

/** Tables of the accounts, which both processes and the documents read. */

export const variables = {
  MODEL_API_ACCOUNTS_FILE: {
    ...{ schema: text, fallback: null, secrecy: 'none' },
    meaning: 'file with [accounts](accounts.md) of model CLIs, `name cli home=<folder> [options]` a line',
  },
  MODEL_API_ACCOUNTS_AS_ROOT: {
    ...{ schema: flag, fallback: 'false', secrecy: 'none' },
    meaning:
      '`true`: accounts may run as root with capabilities that weaken their [isolation](accounts.md#isolation); otherwise the service then exits with 78',
  },
  MODEL_API_ACCOUNTS_SHARE: {
    ...{ schema: flag, fallback: 'false', secrecy: 'none' },
    meaning:
      '`true`: the accounts that may serve a client [share](accounts.md#which-account-serves-a-job) its jobs; otherwise the first one in the order of the key or the file is preferred',
  },
} as const satisfies FeatureVariables;

export type AccountValues = ValuesOf<typeof variables>;

/** Name of the option of keys with names of accounts. */
const optionName = 'accounts';

export const keyOptions = {
  [optionName]: {
    read: (value) => {
      const names = (value ?? '').split('+');
      if (names.every((name) => accountNamePattern.test(name))) return names.join('+');
      throw new Error('must be names of accounts, joined by +');
    },
    flag: { type: 'string', placeholder: '<a+b>', description: 'accounts of model CLIs, the preferred one first' },
    http: { description: 'The accounts that serve the key.', isList: true, isWithin: areAccountsWithin },
    document: [
      'accounts=team+spare',
      'the [accounts](accounts.md) of model CLIs that serve the client, the preferred one first unless they [share](accounts.md#which-account-serves-a-job) jobs',
    ],
  },
} as const satisfies Readonly<Record<string, FeatureKeyOption>>;

/** Without the option, a key has the accounts that nobody owns, which may not be among those of the maker. */
function areAccountsWithin(text: string | null, maker: string | null): boolean {
  if (text === null || maker === null) return text === maker;
  return text.split('+').every((name) => maker.split('+').includes(name));
}

/** Returns the names of accounts in the options of a key; null if it has none. */
export function accountsIn(options: Readonly<Record<string, string>>): readonly string[] | null {
  return options[optionName]?.split('+') ?? null;
}

export const calls = {
  /** Returns all accounts, or those of the client `owner`. `withOpen`: also those without owners. */
  listAccounts: { request: z.object({ owner: clientText.nullable(), withOpen: z.boolean() }), answer: accountList },
};

export const endpoints = [
  {
    method: 'GET',
    route: '/accounts',
    errors: ['unauthorized', 'forbidden', 'rate_limited'],
    id: 'listAccounts',
    summary: 'Accounts of the model CLIs, with their state and quota',
    description:
      'All accounts for an API key with the scope `admin`, or if no key is configured; otherwise the accounts that the caller owns.',
    answer: accountList,
    answerText: 'The accounts, in the order of the CLIs and of the accounts file.',
  },
] as const satisfies readonly FeatureEndpoint[];

export const metrics = {
  account_weight: {
    type: 'gauge',
    labels: ['cli', 'account'],
    help: 'How many jobs an account gets in relation to others, if they share jobs: the part of its quota that is left divided by the part of the time until the reset; 1 if it has reported no quota.',
  },
} as const satisfies MetricTable;

export const logEvents = {
  accounts_loaded: 'a changed accounts file is in force: number of accounts',
  accounts_rejected:
    'the accounts file has faults, and lines with faults are refused; or it cannot be read, and the old accounts stay',
} as const;

export type AccountLogger = Pick<Logger<LogEvent | keyof typeof logEvents>, 'error' | 'info'>;
