import { AnswerLog } from '../../../../../src/features/background/event-log.js';
import { answerTtlMs } from '../../../../../src/primary/store/contract/answers.js';
import { expireStored } from '../../../../../src/primary/store/contract/expire-stored.js';
import { uploadLimitMs } from '../../../../../src/primary/store/contract/files.js';
import { memoryStore } from '../../../../../src/primary/store/memory/memory-store.js';
import { settled } from '../../../../support/basics/settled.js';
import { recordedAnswer } from '../../../../support/jobs/claims.js';
import { jobDone } from '../../../../support/jobs/job-records.js';
import { fileOf } from '../../../../support/stores/file-store-contract.js';
import { turnOf } from '../../../../support/stores/response-store-contract.js';
import { acceptedJob } from '../../../../support/stores/shared-jobs.js';

describe('The upkeep of a store', () => {
  it('removes files, broken uploads, recorded answers, responses and ended jobs after their time, whichever features the service has', async () => {
    const store = memoryStore([]);
    const { files, answers, jobs, responses } = store;
    const ttl = { jobTtlMs: 5000, conversationTtlMs: 5000 };
    const [at, client] = [1_000_000, 'key ada'] as const;
    await files.create(fileOf('file-old', { client, createdAt: at, expiresAt: at + 10, isWhole: true }));
    await files.create(
      fileOf('file-broken', { client, createdAt: at, expiresAt: at + 10 * answerTtlMs, isWhole: false }),
    );
    await answers.keep({ client, key: 'k' }, { digest: 'd', answer: recordedAnswer('x') }, at);
    await jobs.accept({ ...acceptedJob('j1'), createdAt: at });
    await jobs.start('j1', at);
    await jobs.end('j1', { status: 'succeeded', endedAt: at, end: jobDone() }, new AnswerLog());
    const limits = { maxResponses: 10, maxBytes: 10_000, ttlMs: ttl.conversationTtlMs };
    const response = { id: 'r1', client, previous: null, messages: turnOf('r1'), body: '{}', head: '', createdAt: at };
    await responses.put(response, limits);
    expireStored(store, ttl, at + 9);
    await settled();
    expect(await files.find('file-old', client)).not.toBeNull();
    expect(await jobs.find('j1', null)).not.toBeNull();
    expect(responses.counts.count).toBe(1);
    expireStored(store, ttl, at + Math.max(uploadLimitMs, answerTtlMs) + 1);
    await settled();
    for (const id of ['file-old', 'file-broken']) expect([id, await files.find(id, client)]).toEqual([id, null]);
    expect(await answers.read({ client, key: 'k' }, 'd', 0)).toBe('');
    expect(await jobs.find('j1', null)).toBeNull();
    expect(responses.counts.count).toBe(0);
  });
});
