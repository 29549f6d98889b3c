import { signOn } from '../../../../src/features/sign-on/feature.js';
import { ConfigFault, type Environment, loadConfig } from '../../../../src/shared/config/config.js';

const load = (env: Environment) => loadConfig(env, async () => '', undefined, [signOn]);

async function faultsOf(env: Environment): Promise<readonly string[]> {
  const thrown = await load(env).catch((error: unknown) => error);
  if (!(thrown instanceof ConfigFault)) throw new Error(`no fault was found in ${JSON.stringify(env)}`);
  return thrown.faults;
}

const proxy = { MODEL_API_TRUST_PROXY: '192.0.2.1', MODEL_API_USER_HEADER: 'X-Forwarded-User' };

describe('The header with the name of a person', () => {
  it('is compared without capital letters, and makes requests without a key or a person fail', async () => {
    const { featureValues, needsKey } = await load({ ...proxy, MODEL_API_GROUPS_HEADER: 'Remote-Groups' });
    expect([featureValues, needsKey]).toEqual([
      { MODEL_API_USER_HEADER: 'x-forwarded-user', MODEL_API_GROUPS_HEADER: 'remote-groups' },
      true,
    ]);
    expect((await load({})).needsKey).toBe(false);
  });

  it.each([
    '',
    'X Forwarded',
    'X_Forwarded_User',
    'X-User:',
    'é',
    'Authorization',
    'x-api-key',
    'Host',
    'X-Forwarded-For',
  ])('is not %j', async (header) => {
    expect(await faultsOf({ ...proxy, MODEL_API_USER_HEADER: header })).toEqual([
      expect.stringMatching(/^MODEL_API_USER_HEADER: must be /),
    ]);
  });
});

it.each(['', 'a,b', 'Cookie', 'x-forwarded-user'])('The header with the groups is not %j', async (header) => {
  expect(await faultsOf({ ...proxy, MODEL_API_GROUPS_HEADER: header })).toEqual([
    expect.stringMatching(/^MODEL_API_GROUPS_HEADER: must /),
  ]);
});
