import { findWarnings, keyOptions } from '../../../../src/features/storing/shared.js';
import { memoryPlace, type StorePlace } from '../../../../src/shared/config/stores.js';

const sqlite: StorePlace = { ...memoryPlace, kind: 'sqlite', dataPlace: 'file' };
const line = (name: string) => ({ name, featureOptions: { store: 'off' } });

describe('The option store=off', () => {
  it('is off or missing, and a key of a person cannot lift it', () => {
    expect(keyOptions.store.read('off')).toBe('off');
    for (const text of ['on', '', null]) expect(() => keyOptions.store.read(text)).toThrow('must be off');
    const { isWithin } = keyOptions.store.http;
    expect([isWithin(null, null), isWithin('off', null), isWithin('off', 'off'), isWithin(null, 'off')]).toEqual([
      ...[true, true, true, false],
    ]);
  });

  it('causes one warning, because it deletes nothing', () => {
    const warningsOf = (store: StorePlace, names: readonly string[]) =>
      findWarnings(null, {
        settings: { store },
        optionLines: [{ name: 'bob', featureOptions: {} }, ...names.map(line)],
      });
    expect(warningsOf(sqlite, [])).toEqual([]);
    expect(warningsOf(memoryPlace, ['ada'])).toEqual([]);
    expect(warningsOf(sqlite, ['ada', 'lab'])).toEqual([
      expect.stringContaining('store=off (ada, lab) deletes nothing'),
    ]);
    expect(
      warningsOf(
        sqlite,
        Array.from({ length: 11 }, (_, n) => `k${n}`),
      )[0],
    ).toContain('k9, …)');
  });
});
