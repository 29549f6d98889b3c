import { stores } from '../../../../src/features/stores/feature.js';
import type { OpenedStore, StoreProvider } from '../../../../src/primary/hosts/hosts.js';
import { StoreFault } from '../../../../src/primary/store/contract/store.js';
import { asConfigFault, checkKind, openStore } from '../../../../src/primary/store/open.js';
import { ConfigFault, loadConfig } from '../../../../src/shared/config/config.js';
import { emptyFeature } from '../../../../src/shared/features/empty-feature.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';

const box = {
  ...{ kind: 'box', dataPlace: 'box', isShared: false, form: 'box:name' },
  parsePlace: (text: string) => (text.startsWith('box:') ? { shown: text, password: null } : null),
};

/** Opens the store of a service with these kinds of stores. */
async function open(text: string, ...providers: readonly StoreProvider[]): Promise<OpenedStore> {
  const kinds = providers.map((store) => ({ ...emptyFeature, store }));
  const config = await loadConfig({ MODEL_API_STORE: text }, async () => '', undefined, [stores, ...kinds]);
  const parts = { config, tables: [], clock: new FakeClock(), onHang: () => {} };
  return openStore(config.store, providers, parts);
}

describe('The store of a service', () => {
  it('is in memory by default', async () => {
    expect(await open('memory', { ...box, open: notOpened })).toMatchObject({
      store: { kind: 'memory', isUp: true },
      hosts: null,
    });
  });

  it('is of a kind that a feature adds, if the variable names it', async () => {
    const opened = { store: { kind: 'box' }, hosts: null } as unknown as OpenedStore;
    const places: (string | null)[] = [];
    const provider: StoreProvider = {
      ...box,
      open: async ({ shown }) => {
        places.push(shown);
        return opened;
      },
    };
    expect(await open('box:one', provider)).toBe(opened);
    expect(places).toEqual(['box:one']);
  });

  it('causes a configuration fault if it cannot be opened', async () => {
    const fault = await open('box:one', { ...box, open: () => Promise.reject(new StoreFault('is full')) }).catch(
      (error: unknown) => error,
    );
    expect(fault).toEqual(new ConfigFault(['MODEL_API_STORE: is full']));
  });

  it('is refused before anything is opened if this host cannot open such a store', async () => {
    const refused = { ...box, findFault: () => 'box: needs a lid', open: notOpened };
    expect(() => checkKind({ kind: 'box' }, [refused])).toThrow('MODEL_API_STORE: box: needs a lid');
    expect(() => checkKind({ kind: 'box' }, [{ ...refused, findFault: () => null }])).not.toThrow();
    expect(() => checkKind({ kind: 'memory' }, [refused])).not.toThrow();
    await expect(open('box:one', refused)).rejects.toBeInstanceOf(ConfigFault);
  });

  it('turns its faults into configuration faults, but not defects', () => {
    const defect = new Error('a defect');
    expect(asConfigFault(defect)).toBe(defect);
    expect(asConfigFault(new StoreFault('is broken'))).toEqual(new ConfigFault(['MODEL_API_STORE: is broken']));
  });
});

function notOpened(): never {
  throw new Error('it must not be opened');
}
