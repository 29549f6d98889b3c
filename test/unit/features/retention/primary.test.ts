import { createRetention } from '../../../../src/features/retention/primary.js';
import { maxExportsAnHour, retentionBody } from '../../../../src/features/retention/shared.js';
import { memoryStore } from '../../../../src/features/stores/memory/memory-store.js';
import { Clients } from '../../../../src/primary/access/clients.js';
import type { PrimaryCore } from '../../../../src/primary/features/feature.js';
import type { StoredKind } from '../../../../src/primary/features/stored-kind.js';
import { loadConfig } from '../../../../src/shared/config/config.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { keyOptions } from '../../../support/basics/key-options.js';
import { usagePart } from '../../../support/jobs/usage-part.js';

const notices: StoredKind = {
  ...{ kind: 'notices', content: 'amounts', place: 'redis', keptMs: 1500, until: 'a while', readers: ['admin'] },
  ...{ export: null, deletion: null, variables: ['A'] },
};

describe('The retention of a primary', () => {
  it('has what the core stores, and what other features store, in the form of its schema', async () => {
    const config = await loadConfig({}, async () => '');
    const part = createRetention({
      config,
      host: { clock: new FakeClock() },
      ...{ storedKinds: () => [notices], earlierParts: [usagePart(new FakeClock())] },
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
        host: { clock: new FakeClock() },
        ...{ storedKinds: () => kinds, earlierParts: [usagePart(new FakeClock())] },
        mayStore: () => true,
      } as unknown as PrimaryCore);
      return retentionBody.parse(await part.handlers.retention?.({} as never)).data.map(({ kind }) => kind);
    };
    expect(await kindsOf([notices, files])).toEqual(await kindsOf([files, notices]));
  });

  it('lets a key and its sub-clients together export only so often, because each export writes a record', async () => {
    const acts: unknown[] = [];
    const [config, clock] = [await loadConfig({}, async () => ''), new FakeClock()];
    const part = createRetention({
      config: { readBack: false, keyOptions },
      store: memoryStore([]),
      ...{ earlierParts: [usagePart(clock)], clients: new Clients(config, clock), recordsOf: () => ({}) },
      yieldInOrder: async () => {},
      host: { clock },
      beforeAct: async (act: unknown) => void acts.push(act),
    } as unknown as PrimaryCore);
    const { exportData } = part.handlers as unknown as { exportData(order: object): AsyncIterable<unknown> };
    const exportOf = async (client: string) => {
      const lines = [];
      for await (const line of exportData({ client, requestId: 'r' })) lines.push(line);
    };
    for (let count = 0; count < maxExportsAnHour; count++) await exportOf(count % 2 === 0 ? 'key app' : 'key app/eve');
    await expect(exportOf('key app/bob')).rejects.toMatchObject({ code: 'rate_limited' });
    await exportOf('key other');
    expect(acts).toHaveLength(maxExportsAnHour + 1);
  });
});
