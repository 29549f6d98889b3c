import { CommandError } from '../../src/command/errors.js';
import { addressFrom } from '../../src/command/service-address.js';

const noFile = () => Promise.reject(new Error('ENOENT: no such file'));

async function exitCodeOf(promise: Promise<unknown>): Promise<number | null> {
  return promise.then(
    () => null,
    (error: unknown) => (error instanceof CommandError ? error.exitCode : Promise.reject(error)),
  );
}

describe('the address of the service', () => {
  it.each<[Record<string, string>, string]>([
    [{}, 'http://127.0.0.1:5051'],
    [{ MODEL_API_PORT: '6000', MODEL_API_HOST: '0.0.0.0' }, 'http://127.0.0.1:6000'],
    [{ MODEL_API_HOST: '::' }, 'http://[::1]:5051'],
    [{ MODEL_API_HOST: 'Relay.Example.Org' }, 'http://relay.example.org:5051'],
  ])('with the environment %j is %s', async (env, url) => {
    expect(await addressFrom({}, env, noFile)).toEqual({ url, key: null });
  });

  it('is taken from the flags first', async () => {
    const env = { MODEL_API_PORT: '0', MODEL_API_KEY: 'other' };
    const address = await addressFrom({ url: 'https://relay.example.org/v1/', key: 'mine' }, env, noFile);
    expect(address).toEqual({ url: 'https://relay.example.org/v1', key: 'mine' });
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
    const message = `${source}: the key may hold printable ASCII only, and no spaces`;
    await expect(addressFrom(flags, env, noFile)).rejects.toMatchObject({ exitCode, message });
  });

  it('cannot be determined from an invalid variable or flag', async () => {
    expect(await exitCodeOf(addressFrom({}, { MODEL_API_PORT: '0' }, noFile))).toBe(78);
    expect(await exitCodeOf(addressFrom({}, { MODEL_API_PORT: '1e3' }, noFile))).toBe(78);
    expect(await exitCodeOf(addressFrom({}, { MODEL_API_KEY_FILE: 'keys' }, noFile))).toBe(78);
    expect(await exitCodeOf(addressFrom({ url: 'ftp://relay' }, {}, noFile))).toBe(64);
    expect(await exitCodeOf(addressFrom({ url: '127.0.0.1' }, {}, noFile))).toBe(64);
  });
});
