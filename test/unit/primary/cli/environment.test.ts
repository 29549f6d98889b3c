import { launchEnv } from '../../../../src/primary/cli/process/launcher.js';
import { searchPathOf } from '../../../../src/primary/cli/process/program.js';

const noCredential = { variable: null, value: null };

describe('where programs are looked for', () => {
  it.each([
    [{ PATH: '/opt/bin:/bin' }, '/opt/bin:/bin'],
    [{ PATH: '' }, '/usr/local/bin:/usr/bin:/bin'],
    [{}, '/usr/local/bin:/usr/bin:/bin'],
  ])('is never the folder in which the service was started: %j', (env, path) => {
    expect(searchPathOf(env)).toBe(path);
  });
});

describe('the environment of a model CLI', () => {
  const own = { PATH: '/bin', HOME: '/home/me', LANG: 'C', TZ: 'UTC', SECRET: 'x', HTTPS_PROXY: 'http://proxy' };

  it('has a few variables of the service, and no other', () => {
    expect(launchEnv(own, [], noCredential)).toEqual({ PATH: '/bin', HOME: '/home/me', LANG: 'C', TZ: 'UTC' });
  });

  it('has what the operator allows, where it is set', () => {
    expect(launchEnv(own, ['HTTPS_PROXY', 'NO_PROXY'], noCredential)).toEqual({
      PATH: '/bin',
      HOME: '/home/me',
      LANG: 'C',
      TZ: 'UTC',
      HTTPS_PROXY: 'http://proxy',
    });
    expect(launchEnv({}, ['NO_PROXY'], noCredential)).toEqual({ PATH: '/usr/local/bin:/usr/bin:/bin' });
  });

  it('has the credential in the variable that the CLI reads, and nowhere where one of them is missing', () => {
    const env = (variable: string | null, value: string | null) => launchEnv({}, [], { variable, value });
    expect(env('TOKEN', 'secret').TOKEN).toBe('secret');
    expect(Object.values(env(null, 'secret'))).not.toContain('secret');
    expect(env('TOKEN', null)).not.toHaveProperty('TOKEN');
  });

  it('can’t be changed', () => {
    expect(Object.isFrozen(launchEnv(own, [], noCredential))).toBe(true);
  });
});
