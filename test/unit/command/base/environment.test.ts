import { addressFrom, storeSettings } from '../../../../src/command/base/environment.js';
import { variables } from '../../../../src/features/background/shared.js';
import type { StoreFamily } from '../../../../src/shared/config/stores.js';

const noFile = () => Promise.reject(new Error('ENOENT: no such file'));

describe('The address of the service', () => {
  it.each<[Record<string, string>, string]>([
    [{}, 'http://127.0.0.1:5051'],
    [{ MODEL_API_PORT: '6000', MODEL_API_HOST: '0.0.0.0' }, 'http://127.0.0.1:6000'],
    [{ MODEL_API_HOST: '::' }, 'http://[::1]:5051'],
    [{ MODEL_API_HOST: 'Relay.Example.Org' }, 'http://relay.example.org:5051'],
  ])('with the environment %j is %s', async (env, url) => {
    expect(await addressFrom({}, env, noFile)).toEqual({ url, key: null });
  });

  it('is read from the flags first', async () => {
    const env = { MODEL_API_PORT: '0', MODEL_API_KEY: 'other' };
    const address = await addressFrom({ url: 'https://relay.example.org/v1/', key: 'mine' }, env, noFile);
    expect(address).toEqual({ url: 'https://relay.example.org/v1', key: 'mine' });
  });

  it.each([
    ['localhost', 'http://localhost:5051'],
    ['localhost:6000', 'http://localhost:6000'],
    ['relay.example.org/v1/', 'http://relay.example.org:5051/v1'],
    ['192.0.2.7:80', 'http://192.0.2.7'],
    ['[::1]:6000', 'http://[::1]:6000'],
    ['::1', 'http://[::1]:5051'],
  ])('may be given without a scheme: %s', async (given, url) => {
    expect(await addressFrom({ url: given }, {}, noFile)).toEqual({ url, key: null });
  });

  it('has the port of the environment if only a host is given', async () => {
    const { url } = await addressFrom({ url: 'localhost' }, { MODEL_API_PORT: '6001' }, noFile);
    expect(url).toBe('http://localhost:6001');
  });

  it.each(['unix:/run/relay.sock', 'unix:///run/relay.sock'])('may be a Unix socket: %s', async (given) => {
    const address = { url: 'unix:/run/relay.sock', socketPath: '/run/relay.sock', key: null };
    expect(await addressFrom({ url: given }, {}, noFile)).toEqual(address);
  });

  it.each<[string, object, Record<string, string>, string, string | null]>([
    ['alone', {}, {}, 'http://relay:5051', 'stored'],
    ['of another service', {}, { MODEL_API_URL: 'other' }, 'http://other:5051', null],
    ['of the named service', { url: 'relay' }, {}, 'http://relay:5051', 'stored'],
    ['beside a variable', {}, { MODEL_API_PORT: '6000' }, 'http://127.0.0.1:6000', null],
    ['beside a key', {}, { MODEL_API_KEY: 'mine' }, 'http://relay:5051', 'mine'],
    ['that must not be sent', { key: null }, {}, 'http://relay:5051', null],
  ])('may be the address of a stored login: %s', async (_what, flags, env, url, key) => {
    const login = { url: 'http://relay:5051', key: 'stored' };
    expect(await addressFrom(flags, env, noFile, async () => login)).toEqual({ url, key });
  });

  it('includes the first key of the key file', async () => {
    const file = async () => '# keys\nada first-key\nbo second-key\n';
    expect((await addressFrom({}, { MODEL_API_KEY_FILE: 'keys' }, file)).key).toBe('first-key');
  });

  it.each<[string, { key?: string }, Record<string, string>, number]>([
    ['MODEL_API_KEY', {}, { MODEL_API_KEY: 'my-secret\nother-secret' }, 78],
    ['MODEL_API_KEY', {}, { MODEL_API_KEY: 'my-secret ' }, 78],
    ['--key', { key: 'my-sécret' }, {}, 64],
    ['--key', { key: '' }, {}, 64],
  ])('rejects a key that does not fit into a header, without showing it (%s)', async (source, flags, env, exitCode) => {
    const message = `${source}: the key must consist of printable ASCII characters without spaces`;
    await expect(addressFrom(flags, env, noFile)).rejects.toMatchObject({ exitCode, message });
  });

  it.each<[{ url?: string }, Record<string, string>, number]>([
    [{}, { MODEL_API_PORT: '0' }, 78],
    [{}, { MODEL_API_PORT: '1e3' }, 78],
    [{}, { MODEL_API_KEY_FILE: 'keys' }, 78],
    [{ url: 'ftp://relay' }, {}, 64],
    [{ url: 'a b' }, {}, 64],
  ])('cannot be determined from an invalid variable or flag: %j, %j', async (flags, env, exitCode) => {
    await expect(addressFrom(flags, env, noFile)).rejects.toMatchObject({ exitCode });
  });
});

const dayMs = 86_400_000;
/** Kind of stores of a feature. */
const box: StoreFamily = {
  ...{ kind: 'box', dataPlace: 'box', isShared: false, form: 'box:name' },
  parsePlace: (text) => (text.startsWith('box:') ? { shown: text, password: null } : null),
};
const features = [{ variables, store: box }];

describe('The store of a command', () => {
  it.each<[string | undefined, string | undefined, string | undefined, number]>([
    [undefined, undefined, undefined, 1],
    [undefined, 'box:/var/store', 'box:/var/store', 30],
    ['box:/other', 'box:/var/store', 'box:/other', 30],
    ['memory', 'box:/var/store', 'memory', 1],
  ])('is read from the flag, or otherwise from the environment: %j, %j', (flag, variable, text, days) => {
    const { place, ...times } = storeSettings(flag, { MODEL_API_STORE: variable }, features);
    expect(place?.text).toBe(text);
    expect(times).toEqual({
      conversationTtlMs: days * dayMs,
      jobTtlMs: dayMs,
    });
  });

  it('has the retention times of the environment', () => {
    const env = { MODEL_API_CONVERSATION_TTL_SECONDS: '60', MODEL_API_JOB_TTL_SECONDS: '30' };
    expect(storeSettings(undefined, env, features)).toMatchObject({ conversationTtlMs: 60_000, jobTtlMs: 30_000 });
  });

  it.each<[string | undefined, Record<string, string>, number]>([
    ['store.db', {}, 64],
    [undefined, { MODEL_API_STORE: 'store.db' }, 78],
    [undefined, { MODEL_API_JOB_TTL_SECONDS: 'soon' }, 78],
  ])('must be a valid location: %j, %j', (flag, env, exitCode) => {
    expect(() => storeSettings(flag, env, features)).toThrow(expect.objectContaining({ exitCode }));
  });
});
