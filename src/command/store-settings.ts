import type { Environment } from '../shared/config/config.js';
import { variables } from '../shared/config/variables.js';
import { CommandError, exitCodes } from './errors.js';

/** What the environment of the service says of its store. */
export interface NamedStore {
  /** null where nothing is said: then it is that of the service that runs. */
  readonly path: string | null;
  readonly isRedis: boolean;
  readonly conversationTtlMs: number;
  readonly jobTtlMs: number;
}

/** `flag` wins. Throws a CommandError, also for a store that has no file. */
export function storeSettings(flag: string | undefined, env: Environment): NamedStore {
  const text = flag ?? env.MODEL_API_STORE;
  const source = flag === undefined ? 'MODEL_API_STORE' : '--store';
  return {
    path: text === undefined ? null : pathOf(text, source, flag === undefined ? exitCodes.config : exitCodes.usage),
    isRedis: isRedis(text),
    conversationTtlMs: secondsOf('MODEL_API_CONVERSATION_TTL_SECONDS', env),
    jobTtlMs: secondsOf('MODEL_API_JOB_TTL_SECONDS', env),
  };
}

/** null for memory and Redis: the service alone knows them. */
function pathOf(text: string, source: string, exitCode: number): string | null {
  if (isRedis(text)) return null;
  const parsed = variables.MODEL_API_STORE[1].safeParse(text);
  if (!parsed.success) throw new CommandError(exitCode, `${source}: ${parsed.error.issues[0]?.message}`);
  return parsed.data.kind === 'sqlite' ? parsed.data.path : null;
}

function isRedis(text: string | undefined): boolean {
  return /^rediss?:/.test(text ?? '');
}

function secondsOf(name: 'MODEL_API_CONVERSATION_TTL_SECONDS' | 'MODEL_API_JOB_TTL_SECONDS', env: Environment): number {
  const [, schema, fallback] = variables[name];
  const parsed = schema.safeParse(env[name] ?? fallback);
  if (parsed.success) return parsed.data;
  throw new CommandError(exitCodes.config, `${name}: ${parsed.error.issues[0]?.message}`);
}
