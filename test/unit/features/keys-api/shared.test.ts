import { endpointsWith, inspectFiles } from '../../../../src/features/keys-api/shared.js';
import { storeFamiliesOf, storeSchema } from '../../../../src/shared/config/stores.js';
import { keyOptions } from '../../../support/basics/key-options.js';

const store = storeSchema(storeFamiliesOf([])).parse('memory');
const settings = { store, stateFolder: '/state', needsKey: true, keyOptions };

describe('The check of the file with the keys', () => {
  const read = async () => '{';

  it('warns of a damaged file', async () => {
    expect(await inspectFiles(settings, read)).toEqual({
      warnings: ['MODEL_API_STATE_FOLDER: /state/made-keys.json is damaged: no key in it works'],
      keyDigests: [],
    });
  });

  it.each([
    ['there is no file', settings, () => Promise.reject(Object.assign(new Error(), { code: 'ENOENT' }))],
    ['there is no folder', { ...settings, stateFolder: null }, read],
    ['requests need no key', { ...settings, needsKey: false }, read],
    ['several hosts share a store', { ...settings, store: { ...store, isShared: true } }, read],
  ] as const)('is silent if %s', async (_, each, readFile) => {
    expect(await inspectFiles(each, readFile)).toEqual({ warnings: [], keyDigests: [] });
  });
});

it('The endpoints for keys always need a key', () => {
  expect(endpointsWith({ body: {}, view: {} }).map(({ alwaysNeedsKey }) => alwaysNeedsKey)).not.toContain(undefined);
});
