import { loadOauthToken } from '../../../../src/shared/config/secrets.js';

const files: Readonly<Record<string, string>> = {
  '/token': 't0ken\n',
  '/two': 't0ken\nanother\n',
  '/empty': '\n',
  '/quoted': '"t0ken"\n',
  '/run/credentials/oauth_token': 'credential\n',
};

async function load(token: string | null, file: string | null, env = {}) {
  const faults: string[] = [];
  const read = async (path: string) => {
    const text = files[path];
    if (text === undefined) throw Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT' });
    return text;
  };
  const settings = { MODEL_CODE_OAUTH_TOKEN: token, MODEL_CODE_OAUTH_TOKEN_FILE: file };
  return { token: await loadOauthToken(env, settings, read, faults), faults };
}

describe('The token of the model CLI', () => {
  const systemd = { CREDENTIALS_DIRECTORY: '/run/credentials' };

  it.each([
    ['its variable first', 'own', '/token', systemd, 'own'],
    ['the file that is named', null, '/token', systemd, 't0ken'],
    ['the credential of systemd', null, null, systemd, 'credential'],
    ['nothing where there is none', null, null, {}, null],
    ['nothing where other credentials were loaded', null, null, { CREDENTIALS_DIRECTORY: '/elsewhere' }, null],
  ])('is read from %s', async (_, variable, file, env, token) => {
    expect(await load(variable, file, env)).toEqual({ token, faults: [] });
  });

  it.each(['"t0ken"', "'t0ken'", 't0ken\n', 't0k\nen', 't0k en', '`t0ken', 't0k\u00e9n'])(
    'is a fault if the variable contains more than a token: %j',
    async (variable) => {
      const { faults } = await load(variable, null);
      expect(faults).toEqual([expect.stringMatching(/^MODEL_CODE_OAUTH_TOKEN: must contain only one token/)]);
      expect(faults.join()).not.toContain('t0k');
    },
  );

  it.each(['/two', '/quoted', '/empty', '/missing'])(
    'is a fault if the file does not contain exactly one: %s',
    async (file) => {
      const { token, faults } = await load(null, file);
      expect([token, faults]).toEqual([null, [expect.stringMatching(/^MODEL_CODE_OAUTH_TOKEN_FILE: /)]]);
      expect(faults.join()).not.toContain('t0ken');
    },
  );
});
