import { audit } from '../../../../src/features/audit/feature.js';
import { createAudit } from '../../../../src/features/audit/primary.js';
import type { PrimaryCore } from '../../../../src/primary/features/feature.js';
import { FeatureHooks } from '../../../../src/primary/features/feature-hooks.js';
import { ConfigFault, loadConfig } from '../../../../src/shared/config/config.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { LogBook } from '../../../support/basics/log-book.js';

const act = { act: 'key_made', by: 'key root', target: 'made ci~1', request_id: 'r' } as const;

function createHooks(path: string | null) {
  const log = new LogBook();
  const part = createAudit({ MODEL_API_AUDIT_FILE: path })({
    host: { clock: new FakeClock(), log },
  } as unknown as PrimaryCore);
  const hooks = new FeatureHooks([part]);
  const records = async () => hooks.handlers.audit?.({ limit: 9 } as never);
  return { hooks, log, records };
}

describe('The audit of a primary', () => {
  it('lists the record of an act, which was written before it', async () => {
    const { hooks, records } = createHooks(null);
    await hooks.beforeAct(act);
    expect(await records()).toMatchObject({ records: [act] });
  });

  it('refuses an act whose record cannot be written, and logs why', async () => {
    const { hooks, log, records } = createHooks('/no/such/folder/audit.jsonl');
    await expect(hooks.beforeAct(act)).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(log.events).toEqual(['audit_failed']);
    expect(await records()).toEqual({ records: [] });
  });
});

describe('The audit file', () => {
  const load = (path: string) =>
    loadConfig({ MODEL_API_AUDIT_FILE: path }, async () => '', undefined, [audit]).catch((fault: unknown) => fault);

  it('has an absolute path', async () => {
    const featureValues = { MODEL_API_AUDIT_FILE: '/var/log/audit.jsonl' };
    expect(await load('/var/log/audit.jsonl')).toMatchObject({ featureValues });
    for (const path of ['', 'audit.jsonl']) expect(await load(path)).toBeInstanceOf(ConfigFault);
  });
});
