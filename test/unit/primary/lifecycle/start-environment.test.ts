import { features } from '../../../../src/features.js';
import { readConfig, takeSettings } from '../../../../src/primary/lifecycle/start-environment.js';
import { variables } from '../../../../src/shared/config/variables.js';

it('The variables of prompt-relay are all removed from the environment, including mistyped ones, and nothing else is', () => {
  const others = { PATH: '/bin', MODEL: 'a', MY_MODEL_API_KEY: 'b' };
  const own = Object.fromEntries([...Object.keys(variables), 'MODEL_API_KEYS'].map((name) => [name, 'x']));
  const env = { ...others, ...own };
  expect(takeSettings(env)).toEqual({ ...others, ...own });
  expect(env).toEqual(others);
});

it('The folder of credentials of another unit has only the known ones, because this process may not read it', async () => {
  const env = { MODEL_API_CLI: 'demo', CREDENTIALS_DIRECTORY: '/proc/1/root/credentials' };
  const known = new Map([['/proc/1/root/credentials/api_key', 'a-key-of-many-letters-0123']]);
  const { apiKeys, oauthToken } = await readConfig(env, features, known);
  expect([apiKeys.length, oauthToken]).toEqual([1, null]);
});
