import type { CommandError } from '../../src/command/errors.js';
import { storeSettings } from '../../src/command/store-settings.js';

const ttls = { conversationTtlMs: 86_400_000, jobTtlMs: 86_400_000 };

describe('The store that a command works on', () => {
  it.each<[string | undefined, string | undefined, string | null, boolean]>([
    [undefined, undefined, null, false],
    [undefined, 'sqlite:/var/store.db', '/var/store.db', false],
    ['sqlite:/other.db', 'sqlite:/var/store.db', '/other.db', false],
    ['memory', 'sqlite:/var/store.db', null, false],
    [undefined, 'redis://localhost', null, true],
    ['rediss://localhost', undefined, null, true],
  ])('is that of the flag, else of the environment: %j, %j', (flag, variable, path, isRedis) => {
    expect(storeSettings(flag, { MODEL_API_STORE: variable })).toEqual({ path, isRedis, ...ttls });
  });

  it('has the ages of the environment', () => {
    const env = { MODEL_API_CONVERSATION_TTL_SECONDS: '60', MODEL_API_JOB_TTL_SECONDS: '30' };
    expect(storeSettings(undefined, env)).toMatchObject({ conversationTtlMs: 60_000, jobTtlMs: 30_000 });
  });

  it('is a place, and nothing else', () => {
    const codeOf = (flag: string | undefined, env: Record<string, string>) => {
      try {
        return storeSettings(flag, env);
      } catch (error) {
        return (error as CommandError).exitCode;
      }
    };
    expect(codeOf('store.db', {})).toBe(64);
    expect(codeOf(undefined, { MODEL_API_STORE: 'store.db' })).toBe(78);
    expect(codeOf(undefined, { MODEL_API_JOB_TTL_SECONDS: 'soon' })).toBe(78);
  });
});
