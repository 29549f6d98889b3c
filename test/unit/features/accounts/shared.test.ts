import { accounts } from '../../../../src/features/accounts/feature.js';
import { ConfigFault, type Environment, loadConfig } from '../../../../src/shared/config/config.js';

function load(env: Environment) {
  return loadConfig(env, () => Promise.reject(new Error('there is no file')), undefined, [accounts]);
}

describe('The variables of accounts', () => {
  it.each([
    [{}, { MODEL_API_ACCOUNTS_FILE: null, MODEL_API_ACCOUNTS_AS_ROOT: false, MODEL_API_ACCOUNTS_SHARE: false }],
    [
      {
        MODEL_API_ACCOUNTS_FILE: '/etc/prompt-relay/accounts',
        MODEL_API_ACCOUNTS_AS_ROOT: 'true',
        MODEL_API_ACCOUNTS_SHARE: '1',
      },
      {
        MODEL_API_ACCOUNTS_FILE: '/etc/prompt-relay/accounts',
        MODEL_API_ACCOUNTS_AS_ROOT: true,
        MODEL_API_ACCOUNTS_SHARE: true,
      },
    ],
  ])('may be %j', async (env, values) => {
    expect((await load(env)).featureValues).toEqual(values);
  });

  it.each([{ MODEL_API_ACCOUNTS_FILE: '' }, { MODEL_API_ACCOUNTS_AS_ROOT: '' }, { MODEL_API_ACCOUNTS_AS_ROOT: 'yes' }])(
    'must not be %j',
    async (env) => {
      await expect(load(env as Environment)).rejects.toThrow(ConfigFault);
    },
  );
});
