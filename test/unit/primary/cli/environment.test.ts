import { launchEnv } from '../../../../src/primary/cli/process/launcher.js';
import { searchPathOf } from '../../../../src/primary/cli/process/program.js';

const noCredential = { variable: null, value: null };

it.each([
  [{ PATH: '/opt/bin:/bin' }, '/opt/bin:/bin'],
  [{ PATH: '' }, '/usr/local/bin:/usr/bin:/bin'],
  [{}, '/usr/local/bin:/usr/bin:/bin'],
])('The search path for programs never contains the working directory of the service: %j', (env, path) => {
  expect(searchPathOf(env)).toBe(path);
});

describe('The environment of a model CLI', () => {
  const own = { PATH: '/bin', HOME: '/home/me', LANG: 'C', TZ: 'UTC', SECRET: 'x', HTTPS_PROXY: 'http://proxy' };

  it('contains a few variables of the service, and no others', () => {
    expect(launchEnv(own, [], noCredential)).toEqual({ PATH: '/bin', HOME: '/home/me', LANG: 'C', TZ: 'UTC' });
  });

  it('contains the allowed variables that are set', () => {
    expect(launchEnv(own, ['HTTPS_PROXY', 'NO_PROXY'], noCredential)).toEqual({
      PATH: '/bin',
      HOME: '/home/me',
      LANG: 'C',
      TZ: 'UTC',
      HTTPS_PROXY: 'http://proxy',
    });
    expect(launchEnv({}, ['NO_PROXY'], noCredential)).toEqual({ PATH: '/usr/local/bin:/usr/bin:/bin' });
  });

  it('contains the credential in the variable that the CLI reads, and nowhere if one of them is missing', () => {
    const env = (variable: string | null, value: string | null) => launchEnv({}, [], { variable, value });
    expect(env('TOKEN', 'secret').TOKEN).toBe('secret');
    expect(Object.values(env(null, 'secret'))).not.toContain('secret');
    expect(env('TOKEN', null)).not.toHaveProperty('TOKEN');
  });

  it('is frozen', () => {
    expect(Object.isFrozen(launchEnv(own, [], noCredential))).toBe(true);
  });
});
