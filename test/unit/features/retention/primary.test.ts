import { createRetention } from '../../../../src/features/retention/primary.js';
import { retentionBody } from '../../../../src/features/retention/shared.js';
import type { PrimaryCore } from '../../../../src/primary/features/feature.js';
import type { StoredKind } from '../../../../src/primary/features/stored-kind.js';
import { loadConfig } from '../../../../src/shared/config/config.js';

const notices: StoredKind = {
  ...{ kind: 'notices', content: 'amounts', place: 'redis', keptMs: 1500, until: 'a while', readers: ['admin'] },
  ...{ export: null, deletion: null, variables: ['A'] },
};

describe('The retention of a primary', () => {
  it('has what the core stores, and what other features store, in the form of its schema', async () => {
    const config = await loadConfig({}, async () => '');
    const part = createRetention({
      config,
      storedKinds: () => [notices],
      mayStore: () => true,
    } as unknown as PrimaryCore);
    const body = retentionBody.parse(await part.handlers.retention?.({} as never));
    expect(body.store).toBe('memory');
    expect(body.data.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['conversations', 'usage', 'notices']));
    expect(body.data.at(-1)).toMatchObject({ kind: 'notices', kept_seconds: 1.5, kept: 'a while', readers: ['admin'] });
  });

  it('has the data of features in the same order, whatever the order of the features', async () => {
    const config = await loadConfig({}, async () => '');
    const files = { ...notices, kind: 'files' };
    const kindsOf = async (kinds: StoredKind[]) => {
      const part = createRetention({
        config,
        storedKinds: () => kinds,
        mayStore: () => true,
      } as unknown as PrimaryCore);
      return retentionBody.parse(await part.handlers.retention?.({} as never)).data.map(({ kind }) => kind);
    };
    expect(await kindsOf([notices, files])).toEqual(await kindsOf([files, notices]));
  });
});
