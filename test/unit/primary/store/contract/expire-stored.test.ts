import { answerTtlMs } from '../../../../../src/primary/store/contract/answers.js';
import { expireStored } from '../../../../../src/primary/store/contract/expire-stored.js';
import { uploadLimitMs } from '../../../../../src/primary/store/contract/files.js';
import { memoryStore } from '../../../../../src/primary/store/memory/memory-store.js';
import { settled } from '../../../../support/basics/settled.js';
import { recordedAnswer } from '../../../../support/jobs/claims.js';
import { fileOf } from '../../../../support/stores/file-store-contract.js';

describe('The upkeep of a store', () => {
  it('removes files, broken uploads and recorded answers after their time, whichever features the service has', async () => {
    const store = memoryStore([]);
    const { files, answers } = store;
    const [at, client] = [1_000_000, 'key ada'];
    await files.create(fileOf('file-old', { client, createdAt: at, expiresAt: at + 10, isWhole: true }));
    await files.create(
      fileOf('file-broken', { client, createdAt: at, expiresAt: at + 10 * answerTtlMs, isWhole: false }),
    );
    await answers.keep({ client, key: 'k' }, { digest: 'd', answer: recordedAnswer('x') }, at);
    expireStored(store, at + 9);
    await settled();
    expect(await files.find('file-old', client)).not.toBeNull();
    expireStored(store, at + Math.max(uploadLimitMs, answerTtlMs) + 1);
    await settled();
    for (const id of ['file-old', 'file-broken']) expect([id, await files.find(id, client)]).toEqual([id, null]);
    expect(await answers.read({ client, key: 'k' }, 'd', 0)).toBe('');
  });
});
