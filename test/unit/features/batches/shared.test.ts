import { batches } from '../../../../src/features/batches/feature.js';
import { storedBatches } from '../../../../src/features/batches/primary.js';
import { files } from '../../../../src/features/files/feature.js';
import type { FileValues } from '../../../../src/features/files/shared.js';
import { loadConfig } from '../../../../src/shared/config/config.js';

const load = (env: Readonly<Record<string, string>>) => loadConfig(env, async () => '', undefined, [files, batches]);

it('The lines of a client are limited by a whole number', async () => {
  const name = 'MODEL_API_MAX_BATCH_LINES';
  expect((await load({ [name]: '10000000' })).featureValues[name]).toBe(10_000_000);
  for (const text of ['0', '10000001', '1.5', '']) await expect(load({ [name]: text })).rejects.toThrow(name);
});

it('Batches are stored where files are', async () => {
  const { store, featureValues } = await load({ MODEL_API_FILES: 'memory' });
  const row = storedBatches(store, featureValues as FileValues);
  expect(row).toMatchObject({ kind: 'batches', place: 'memory', until: '30 days after its end' });
});
