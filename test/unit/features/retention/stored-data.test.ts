import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { storedByCore } from '../../../../src/features/retention/stored-data.js';
import { features } from '../../../../src/features.js';
import { loadConfig } from '../../../../src/shared/config/config.js';
import { variablesOf } from '../../../../src/shared/config/feature-variables.js';
import { variables } from '../../../../src/shared/config/variables.js';
import { root } from '../../../support/documents/sources.js';
import { allDoorEndpoints, nativeEndpoints } from '../../../support/documents/tables.js';

const day = 86_400_000;

async function stored(env: Readonly<Record<string, string>> = {}) {
  const rows = storedByCore(await loadConfig(env, async () => '', undefined, features));
  return { rows, of: (kind: string) => rows.find((row) => row.kind === kind) };
}

describe('The data that the core stores', () => {
  it('is in memory with the default settings, conversations for a day', async () => {
    const { of } = await stored();
    expect(of('conversations')).toMatchObject({ place: 'memory', keptMs: day, readers: ['client', 'host'] });
    expect(of('conversations')?.until).toBe('1 day after its last activity, or until there are too many');
    expect(of('usage')?.place).toBe('memory');
  });

  it('is in the file or in Redis if the store is there, with the time limits of the settings', async () => {
    const { of } = await stored({
      ...{ MODEL_API_STORE: 'sqlite:/var/lib/relay/store.db', MODEL_API_CONVERSATION_TTL_SECONDS: '300' },
    });
    expect(of('conversations')).toMatchObject({ place: 'file', keptMs: 300_000 });
    const shared = await stored({ MODEL_API_STORE: 'redis://127.0.0.1:6379' });
    expect(shared.of('responses')?.place).toBe('redis');
  });

  it('is less with the settings that prevent it', async () => {
    const { of } = await stored({
      ...{ MODEL_API_READ_BACK: 'false', MODEL_API_REUSE: 'off', MODEL_API_MAX_JOBS: '0' },
      ...{ MODEL_API_LIVE_SESSIONS: '0', MODEL_API_METRICS_AUTH: 'true', MODEL_API_KEY: 'x'.repeat(40) },
    });
    for (const kind of ['background jobs', 'live processes', 'renewed processes'])
      expect([kind, of(kind)?.place]).toEqual([kind, 'nowhere']);
    expect(of('conversations')).toMatchObject({ readers: ['host'], export: null, deletion: 'DELETE /chat/{id}' });
    expect(of('metrics')?.readers).toEqual(['scraper', 'host']);
  });

  it('has a row in the documents for each kind, and names existing variables and endpoints only', async () => {
    const { rows } = await stored();
    const page = readFileSync(join(root, 'docs', 'data.md'), 'utf8').toLowerCase();
    const known = Object.keys({ ...variables, ...variablesOf(features) });
    const plain = (request: string) => request.replaceAll(/\{\w+\}/g, '{}');
    const routes = [...nativeEndpoints, ...allDoorEndpoints].map(({ method, route }) => plain(`${method} ${route}`));
    for (const { kind, variables: named, export: reading, deletion } of rows) {
      const words = kind.replace(/e?s$/, '').replace('recorded answer', 'idempotency-key');
      expect([kind, page.includes(words)]).toEqual([kind, true]);
      expect([kind, named.filter((name) => !known.includes(name))]).toEqual([kind, []]);
      const requests = `${reading} ${deletion}`.match(/(GET|DELETE) \/[\w/{}]+/g) ?? [];
      expect([kind, requests.filter((request) => !routes.includes(plain(request)))]).toEqual([kind, []]);
    }
  });
});
