import { AnswerLog } from '../../../src/features/background/event-log.js';
import type { FullStore } from '../../../src/features/stores/contract/full-store.js';
import type { ResponseLimits } from '../../../src/features/stores/contract/responses.js';
import type { UsageDelta } from '../../../src/features/stores/contract/usage.js';
import { noCharge } from '../../../src/primary/jobs/bill.js';
import { type ClientText, holderOf, noClient } from '../../../src/shared/client.js';
import { sameNames } from '../basics/identities.js';
import { recordedAnswer } from '../jobs/claims.js';
import { jobDone, jobRequest, plainForm } from '../jobs/job-records.js';
import { deliveriesIn, deliveryOf, withStoresOf } from './delivery-store-contract.js';
import { batchOf, fileOf } from './file-store-contract.js';
import { nodeOf } from './response-store-contract.js';
import type { StorePlaceForTests } from './store-contract.js';

const limits: ResponseLimits = { maxResponses: 1000, maxBytes: 64 * 1024 * 1024, ttlMs: 86_400_000 };
const digest = 'a digest';
const clients = sameNames.map(({ client }) => client);

function usageOf(client: ClientText): UsageDelta {
  const jobs = { ok: 1 } as UsageDelta['jobs'];
  return { day: '2026-01-01', client, model: '', account: '', jobs, refused: 0, ...noCharge, modelMs: 0 };
}

/** Stores one of each thing for a client, all with ids that contain `id`. */
async function fill(store: FullStore, client: ClientText, id: string, at: number): Promise<void> {
  const { files, jobs, answers, responses } = store;
  const owner = { client, holder: holderOf(client) };
  await files.createFile(fileOf(`file-${id}`, { ...owner, expiresAt: at + 60_000 }));
  const whole = { purpose: 'batch', lines: 1, expiresAt: at + 60_000 } as const;
  await files.completeFile(`file-${id}`, whole);
  await files.addBatch(batchOf(`batch-${id}`, { ...owner, expiresAt: at + 60_000, removeAt: at + 60_000 }));
  const request = jobRequest({ client, requestId: `request-${id}` });
  await jobs.accept({ id: `job-${id}`, title: id, form: plainForm, createdAt: at, request });
  await jobs.startJob(`job-${id}`, at);
  const end = { ...jobDone({ model: 'eliza' }), text: null };
  await jobs.endJob(`job-${id}`, { status: 'succeeded', endedAt: at, end }, new AnswerLog());
  await answers.claimOrFind({ client, key: 'same' }, digest, at);
  await answers.keep({ client, key: 'same' }, { digest, answer: recordedAnswer(id) }, at);
  await responses.putResponse(nodeOf(`response-${id}`, null, { client, createdAt: at }), limits);
  await deliveriesIn(store).addRow(deliveryOf(`delivery-${id}`, { client, createdAt: at, nextAt: at + 60_000 }));
}

/** Returns the ids of the things in the store that this client can read. */
async function seenBy(
  { files, jobs, answers, responses }: FullStore,
  client: ClientText,
  at: number,
): Promise<string[]> {
  const after = at - limits.ttlMs;
  const page = { client, after: null, limit: 100, isAscending: true };
  const [list, batches] = [await files.listFiles(page, ['batch']), await files.listBatches(page, ['chat'])];
  const jobList = await jobs.listJobs({ client, status: null, before: null, limit: 100 });
  const known = await answers.claimOrFind({ client, key: 'same' }, digest, at);
  if (known.type === 'free') answers.releaseKey({ client, key: 'same' });
  const found: string[] = [];
  for (const index of clients.keys()) {
    const piece = await responses.readPiece({ id: `response-${index}`, client }, 0, after);
    if (piece !== null) found.push(piece.text);
  }
  return [
    ...[...list.items, ...batches.items, ...jobList.jobs].map(({ id }) => id),
    ...(known.type === 'answered' ? [`answer-${known.answer.begin}`] : []),
    ...found,
  ].toSorted();
}

function thingsOf(id: string): string[] {
  return ['answer', 'batch', 'file', 'job', 'response'].map((kind) => `${kind}-${id}`);
}

/** Tests that clients with equal names share nothing in a store. */
export function describeIdentities(name: string, place: () => Promise<StorePlaceForTests>): void {
  const withStore = withStoresOf(place);

  describe(`Clients with equal names in ${name}`, () => {
    it('see what is theirs and nothing else, also by an id that they know', () =>
      withStore(async (store) => {
        const at = Date.now();
        for (const [index, client] of clients.entries()) await fill(store, client, String(index), at);
        for (const [index, client] of clients.entries()) {
          expect([client, await seenBy(store, client, at)]).toEqual([client, thingsOf(String(index))]);
          for (const [other] of clients.entries()) {
            const isOwn = other === index;
            expect((await store.files.findFile(`file-${other}`, client)) !== null).toBe(isOwn);
            expect((await store.files.findBatch(`batch-${other}`, client)) !== null).toBe(isOwn);
            expect((await store.jobs.findJob(`job-${other}`, client)) !== null).toBe(isOwn);
          }
        }
        const holders = sameNames.map(({ spenders: [holder = noClient] }) => holder);
        for (const holder of holders) {
          const count = holders.filter((each) => each === holder).length;
          expect([holder, (await store.files.usageOf(holder)).files]).toEqual([holder, count]);
          expect(await store.files.openBatches(holder)).toHaveLength(count);
        }
      }));

    it('lose only what is theirs in a purge', () =>
      withStore(async (store) => {
        const at = Date.now();
        for (const [index, client] of clients.entries()) await fill(store, client, String(index), at);
        await store.usage.addUsage(clients.map(usageOf));
        for (const [index, client] of clients.entries()) {
          await store.jobs.removeJob(`job-${index}`); // as a purge does first
          await store.upkeep.purge(client);
          expect(await seenBy(store, client, at)).toEqual([]);
          const next = clients[index + 1];
          if (next !== undefined) expect(await seenBy(store, next, at)).toEqual(thingsOf(String(index + 1)));
          const left = (await deliveriesIn(store).listRows(100)).map((delivery) => delivery.client);
          expect(left.toSorted()).toEqual(clients.slice(index + 1).toSorted());
        }
      }));
  });
}
