import { z } from 'zod';
import type { FeatureVariables, ValuesOf } from '../../shared/config/feature-variables.js';
import { oneOf, userNames } from '../../shared/config/values.js';

/** What both processes know of the users of this machine. */

const modes = ['off', 'identify', 'require'] as const;

export const variables = {
  MODEL_API_LOCAL_USERS: {
    schema: oneOf(modes),
    ...{ fallback: process.platform === 'linux' ? 'identify' : 'off', secrecy: 'none', setting: 'localUsers' },
    meaning: '`identify`: local callers without a key are clients by user; `require`: others get 403; `off`',
    shownDefault: '`identify` on Linux, else `off`',
  },
  MODEL_API_ALLOWED_USERS: {
    ...{ schema: userNames, fallback: '', secrecy: 'none', setting: 'allowedUsers' },
    meaning: 'local users who may call without a key; others get 403',
    shownDefault: 'any',
  },
} as const satisfies FeatureVariables;

export function findFaults(values: Partial<ValuesOf<typeof variables>>): string[] {
  const { MODEL_API_LOCAL_USERS: mode, MODEL_API_ALLOWED_USERS: allowed = [] } = values;
  if (mode !== 'off' || allowed.length === 0) return [];
  return ['MODEL_API_ALLOWED_USERS: needs MODEL_API_LOCAL_USERS to be identify or require'];
}

const userSettings = z.object({
  localUsers: z.enum(modes),
  /** Names and ids of users; if empty, all users may call. */
  allowedUsers: z.array(z.string()).readonly(),
});
export type UserSettings = z.infer<typeof userSettings>;

export const calls = {
  /** Returns which users may call. */
  userSettings: { request: z.object({}), answer: userSettings },
};
