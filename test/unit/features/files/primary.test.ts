import { files } from '../../../../src/features/files/feature.js';
import { storedFiles } from '../../../../src/features/files/primary.js';
import type { FileValues } from '../../../../src/features/files/shared.js';
import { loadConfig } from '../../../../src/shared/config/config.js';

async function load(env: Readonly<Record<string, string>>) {
  const config = await loadConfig(env, async () => '', undefined, [files]);
  return { ...config, values: config.featureValues as FileValues };
}

const mega = 1024 ** 2;

describe('The settings of files', () => {
  it.each([
    ['MODEL_API_FILES', { store: 'store', memory: 'memory', off: 'off' }, ['', 'on', 'Store']],
    ['MODEL_API_FILES_MB', { '1': mega, '1000000': 1_000_000 * mega }, ['0', '1000001', '1.5', '']],
    ['MODEL_API_MAX_FILES', { '1': 1, '1000000': 1_000_000 }, ['0', '1000001', '1.5', '']],
    ['MODEL_API_FILES_TTL_SECONDS', { '1': 1000, '31536000': 31_536_000_000 }, ['0', '31536001', '']],
  ] as const)('are read and checked: %s', async (name, good, bad) => {
    for (const [text, value] of Object.entries(good)) expect((await load({ [name]: text })).values[name]).toBe(value);
    for (const text of bad) await expect(load({ [name]: text })).rejects.toThrow(name);
  });

  it('decide where files are stored, and how long', async () => {
    const rowOf = async (env: Readonly<Record<string, string>>) => {
      const { store, values } = await load(env);
      return storedFiles(store, values);
    };
    const days = { MODEL_API_FILES_TTL_SECONDS: '172800' };
    expect(await rowOf({})).toMatchObject({ kind: 'files', place: 'memory', keptMs: 86_400_000 });
    expect(await rowOf({ MODEL_API_FILES: 'memory', ...days })).toMatchObject({
      ...{ place: 'memory', keptMs: 172_800_000, until: expect.stringMatching(/^2 days after/) },
    });
    expect((await rowOf({ MODEL_API_FILES: 'off' })).place).toBe('nowhere');
  });
});
