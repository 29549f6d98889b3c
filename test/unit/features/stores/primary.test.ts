import { AnswerLog } from '../../../../src/features/background/event-log.js';
import { answerTtlMs } from '../../../../src/features/stores/contract/answers.js';
import { uploadLimitMs } from '../../../../src/features/stores/contract/files.js';
import { memoryStore } from '../../../../src/features/stores/memory/memory-store.js';
import { expireStored } from '../../../../src/features/stores/primary.js';
import { settled } from '../../../support/basics/settled.js';
import { recordedAnswer } from '../../../support/jobs/claims.js';
import { jobDone } from '../../../support/jobs/job-records.js';
import { fileOf } from '../../../support/stores/file-store-contract.js';
import { nodeOf } from '../../../support/stores/response-store-contract.js';
import { acceptedJob } from '../../../support/stores/shared-jobs.js';

describe('The upkeep of a store', () => {
  it('removes files, broken uploads, recorded answers, stored responses and ended jobs after their time, whichever features the service has', async () => {
    const store = memoryStore([]);
    const { files, answers, jobs, responses } = store;
    const core = { store, config: { jobTtlMs: 5000, conversationTtlMs: 7000 } };
    const [at, client] = [1_000_000, 'key ada'] as const;
    await files.createFile(fileOf('file-old', { client, createdAt: at, expiresAt: at + 10, isWhole: true }));
    await files.createFile(
      fileOf('file-broken', { client, createdAt: at, expiresAt: at + 10 * answerTtlMs, isWhole: false }),
    );
    const response = nodeOf('r', null, { client, createdAt: at });
    await responses.putResponse(response, { maxResponses: 9, maxBytes: 1e6, ttlMs: 7000 });
    await answers.keep({ client, key: 'k' }, { digest: 'd', answer: recordedAnswer('x') }, at);
    await jobs.accept({ ...acceptedJob('j1'), createdAt: at });
    await jobs.startJob('j1', at);
    await jobs.endJob('j1', { status: 'succeeded', endedAt: at, end: jobDone() }, new AnswerLog());
    expireStored(core, at + 9);
    await settled();
    expect(await files.findFile('file-old', client)).not.toBeNull();
    expect(await jobs.findJob('j1', null)).not.toBeNull();
    expireStored(core, at + Math.max(uploadLimitMs, answerTtlMs) + 1);
    await settled();
    for (const id of ['file-old', 'file-broken']) expect([id, await files.findFile(id, client)]).toEqual([id, null]);
    expect(await answers.readAnswer({ client, key: 'k' }, 'd', 0)).toBe('');
    expect(await jobs.findJob('j1', null)).toBeNull();
    expect(responses.counts.count).toBe(0);
  });
});
