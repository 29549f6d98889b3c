import { createHash } from 'node:crypto';
import { type ExportCore, type ExportEnd, exportOf } from '../../../../src/features/retention/export.js';
import { memoryStore } from '../../../../src/features/stores/memory/memory-store.js';
import { deliveryTable } from '../../../../src/features/webhooks/deliveries.js';
import { Clients } from '../../../../src/primary/access/clients.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { loadConfig } from '../../../../src/shared/config/config.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { keyOptions } from '../../../support/basics/key-options.js';
import { recordedAnswer } from '../../../support/jobs/claims.js';
import { jobRequest, plainForm } from '../../../support/jobs/job-records.js';
import { usagePart } from '../../../support/jobs/usage-part.js';
import { StoreHarness } from '../../../support/stores/conversations.js';
import { deliveriesIn, deliveryOf } from '../../../support/stores/delivery-store-contract.js';
import { batchOf, fileOf } from '../../../support/stores/file-store-contract.js';
import { nodeOf, turnOf } from '../../../support/stores/response-store-contract.js';

const client = 'key alice';
const limits = { maxResponses: 10, maxBytes: 1e6, ttlMs: 1e15 };

/** Returns the lines of an export, and what its record has. */
async function exported(core: ExportCore, of: ClientText = client) {
  const ends: ExportEnd[] = [];
  const lines: string[] = [];
  for await (const line of exportOf(core, of, 'now', async (end) => void ends.push(end))) lines.push(line);
  return { lines, ends, values: lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

async function filled() {
  const harness = new StoreHarness({ maxConversations: 1000 });
  const store = memoryStore([deliveryTable]);
  const clock = new FakeClock();
  const part = usagePart(clock);
  for (let count = 0; count < 101; count++) harness.chat();
  for (const owner of [client, 'key bob'] as const) {
    const at = { createdAt: 5, expiresAt: 1e15 };
    await store.files.createFile(fileOf(`file-${owner}`, { client: owner, name: '../../evil', ...at }));
    await store.files.appendPieces([{ id: `file-${owner}`, data: Buffer.from('bytes of the file') }]);
    await store.files.completeFile(`file-${owner}`, { purpose: 'user_data', lines: 0, expiresAt: 1e15 });
    const request = jobRequest({ client: owner });
    await store.jobs.accept({ id: `job-${owner}`, title: 'Hi', form: plainForm, createdAt: 5, request });
    await store.responses.putResponse(nodeOf(`response-${owner}`, null, { client: owner, createdAt: 5 }), limits);
    await deliveriesIn(store).addRow(deliveryOf(`delivery-${owner}`, { client: owner }));
    await store.files.addBatch(batchOf(`batch-${owner}`, { client: owner }));
    const answer = recordedAnswer(`answer for ${owner}`);
    await store.answers.keep({ client: owner, key: `key-${owner}` }, { digest: 'd', answer }, 5);
    part.countRefusal(owner);
  }
  const recordsOf = (owner: ClientText) => ({ lent_key: [{ id: `lent-${owner}` }] });
  const config = { readBack: true, keyOptions };
  const clients = new Clients(await loadConfig({}, async () => ''), clock);
  return { store, conversations: harness.store, usage: part, clients, recordsOf, config };
}

describe('An export', () => {
  it('has everything of its client and nothing of others, its numbers, and its digest', async () => {
    const { lines, values, ends } = await exported(await filled());
    const some = { conversation: 101, job: 1, recorded_answer: 1, response: 1, file: 1, batch: 1, deliveries: 1 };
    const counts = { ...some, usage: 2, access: 1, lent_key: 1 };
    const sha256 = createHash('sha256').update(lines.slice(0, -1).join('')).digest('hex');
    expect(values.at(-1)).toEqual({ kind: 'end', counts, sha256 });
    expect(ends).toEqual([{ counts, sha256 }]);
    expect(lines.join('')).not.toContain('key bob'); // ids are random, and can contain a short name
    const dataOf = (wanted: string) => values.filter(({ kind }) => kind === wanted);
    expect(dataOf('recorded_answer_data')).toEqual([
      { kind: 'recorded_answer_data', id: 'key-key alice', text: 'answer for key alice' },
    ]);
    const [request] = dataOf('job_data');
    expect(JSON.parse(String(request?.request))).toMatchObject({ client, text: 'Hi' });
    expect(dataOf('response_data').map(({ messages, text }) => messages ?? text)).toEqual([
      JSON.stringify(turnOf('response-key alice')),
      'response-key alice',
    ]);
    expect(dataOf('file_data')).toEqual([
      { kind: 'file_data', id: 'file-key alice', base64: Buffer.from('bytes of the file').toString('base64') },
    ]);
    expect(values.filter(({ kind }) => kind === 'conversation_data').length).toBeGreaterThan(200);
  });

  it('has the results so far of a batch that runs', async () => {
    const core = await filled();
    const times = { createdAt: 5, expiresAt: 1e15 };
    for (const id of ['out', 'err']) await core.store.files.createFile(fileOf(id, { client, ...times }));
    await core.store.files.appendPieces([{ id: 'out', data: Buffer.from('result') }]);
    const { values } = await exported(core);
    expect(values.filter(({ id }) => id === 'out')).toEqual([
      { kind: 'file_data', id: 'out', base64: Buffer.from('result').toString('base64') },
    ]);
  });

  it.each(['files', 'batches'])('fails if it would lack %s because one was removed meanwhile', async (kind) => {
    const core = await filled();
    const { files } = core.store;
    const ids = Array.from({ length: 150 }, (_, index) => `${kind}-${index}`);
    for (const id of ids) {
      if (kind === 'batches') await files.addBatch(batchOf(id, { client }));
      else await files.createFile(fileOf(id, { client, createdAt: 5, expiresAt: 1e15, isWhole: true }));
    }
    const seen: string[] = [];
    const removing = async () => {
      for await (const line of exportOf(core, client, 'now', async () => {})) {
        const { id } = JSON.parse(line) as { readonly id?: string };
        if (id?.startsWith(kind) !== true) continue;
        seen.push(id);
        await (kind === 'batches' ? files.removeBatch(id) : files.removeFile(id));
      }
    };
    await expect(removing()).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(seen.length).toBeLessThan(150);
  });

  it('is empty for a client without data, and has no conversations if clients may not read them back', async () => {
    const core = await filled();
    expect((await exported(core, 'key eve')).ends[0]?.counts).toEqual({ access: 1, lent_key: 1 });
    expect((await exported({ ...core, config: { readBack: false, keyOptions } })).ends[0]?.counts).not.toHaveProperty(
      'conversation',
    );
  });

  it('has no last line if it cannot be recorded', async () => {
    const core = await filled();
    const lines: string[] = [];
    const failing = async () => {
      for await (const line of exportOf(core, client, 'now', () => Promise.reject(new Error('no record'))))
        lines.push(line);
    };
    await expect(failing()).rejects.toThrow('no record');
    expect(lines.join('')).not.toContain('"kind":"end"');
  });

  it('has the data of the own keys of a person, and not that of the sub-clients of a key', async () => {
    const core = await filled();
    for (const owner of ['sso ada', 'sso ada/laptop~1', 'sso ada/laptop~1/phone', 'sso adam', 'key app/ada'] as const)
      await deliveriesIn(core.store).addRow(deliveryOf(owner, { client: owner }));
    const idsOf = async (of: ClientText) =>
      (await exported(core, of)).values.flatMap(({ kind, id }) => (kind === 'deliveries' ? [id] : []));
    expect(await idsOf('sso ada')).toEqual(['sso ada', 'sso ada/laptop~1']);
    expect(await idsOf('key app')).toEqual([]);
  });
});
