import type { AnswerStore, KnownKey } from '../../../../src/features/stores/contract/answers.js';
import { MemoryAnswers } from '../../../../src/features/stores/memory/memory-store.js';
import { withResolvers } from '../../../../src/shared/async.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { ClaimingRequests, recordedAnswer } from '../../../support/jobs/claims.js';

const inProgress = { code: 'idempotency_in_progress', retryAfterSeconds: 7 };
const mismatch = { code: 'idempotency_mismatch' };

function open(differences: Partial<AnswerStore> = {}) {
  const memory = new MemoryAnswers();
  const store: AnswerStore = {
    claimOrFind: (...asked) => memory.claimOrFind(...asked),
    keep: (...kept) => memory.keep(...kept),
    readAnswer: (...asked) => memory.readAnswer(...asked),
    readById: (...asked) => memory.readById(...asked),
    releaseKey: () => {},
    expireAnswers: (at) => memory.expireAnswers(at),
    ...differences,
  };
  return new ClaimingRequests(store);
}

describe('An idempotency key', () => {
  it('belongs to the first request until it is answered, and every further request gets that answer', async () => {
    const requests = open();
    const first = await requests.send('k');
    await expect(requests.send('k')).rejects.toMatchObject(inProgress);
    const answer = recordedAnswer('the answer', { status: 504, error: 'timeout' });
    expect(await requests.claims.record(first.claim as number, answer)).toBe(true);
    expect((await requests.send('k')).answer).toEqual(answer);
    await first.leave();
    expect((await requests.send('k')).answer).toEqual(answer);
  });

  it('belongs to one request: it is refused for a different one, running or answered', async () => {
    const requests = open();
    const first = await requests.send('k', 'one');
    await expect(requests.send('k', 'other')).rejects.toMatchObject(mismatch);
    await requests.claims.record(first.claim as number, recordedAnswer('one'));
    await expect(requests.send('k', 'other')).rejects.toMatchObject(mismatch);
    expect(await requests.answerTo('k', 'one')).toBe('one');
  });

  it('is free again if its request ends without an answer, for example when a worker dies', async () => {
    const requests = open();
    const first = await requests.send('k');
    await first.leave();
    const second = await requests.send('k', 'another request');
    expect(second.claim).not.toBeNull();
    expect(await requests.claims.record(first.claim as number, recordedAnswer('too late'))).toBe(false);
    await expect(requests.send('k')).rejects.toMatchObject(mismatch);
  });

  it('belongs to one client: the same key of another client is independent', async () => {
    const requests = open();
    await requests.answer('k', 'for Ada', 'one', 'key ada');
    expect(await requests.answerTo('k', 'other', 'key bob')).toBeNull();
    expect(await requests.answerTo('k', 'one', 'key ada')).toBe('for Ada');
  });

  it('is given to one of many simultaneous requests', async () => {
    const requests = open();
    const sent = await Promise.allSettled(Array.from({ length: 50 }, () => requests.send('k')));
    const claimed = sent.filter(({ status }) => status === 'fulfilled');
    expect(claimed).toHaveLength(1);
    for (const each of sent) if (each.status === 'rejected') expect(each.reason).toMatchObject(inProgress);
  });

  it('is looked up in the store once, and given to no request before that', async () => {
    const { promise, resolve } = withResolvers<KnownKey>();
    let asked = 0;
    const requests = open({ claimOrFind: () => (asked++ === 0 ? promise : Promise.resolve(kept)) });
    const begin = { status: 200, headers: {}, error: null, begin: 'kept', bytes: 4 };
    const kept: KnownKey = { type: 'answered', digest: 'a digest', answer: begin };
    const sent = Promise.all(Array.from({ length: 5 }, () => requests.send('k')));
    resolve(kept);
    expect((await sent).map(({ answer }) => answer?.body)).toEqual(Array.from({ length: 5 }, () => 'kept'));
  });

  it('that another host has claimed is refused here, and not claimed by this host', async () => {
    const held: KnownKey = { type: 'held', digest: 'a digest' };
    const requests = open({ claimOrFind: async () => held });
    await expect(requests.send('k')).rejects.toMatchObject(inProgress);
    await expect(requests.send('k', 'other')).rejects.toMatchObject(mismatch);
  });

  it('is released in the store only if there is no answer', async () => {
    const released: string[] = [];
    const requests = open({ releaseKey: ({ key }) => void released.push(key) });
    await requests.answer('answered', 'so');
    await (await requests.send('left')).leave();
    expect(released).toEqual(['left']);
  });
});

describe('An answer', () => {
  it('that the store does not accept is not sent again, and the key is free', async () => {
    const requests = open({ keep: () => Promise.reject(new Error('disk full')) });
    expect(await requests.answer('k', 'lost')).toBe(false);
    expect((await requests.send('k')).claim).not.toBeNull();
  });

  it('is recorded even if the worker dies meanwhile, and the key is not given away before that', async () => {
    const { promise, resolve } = withResolvers();
    const memory = new MemoryAnswers();
    const requests = open({
      claimOrFind: (...asked) => memory.claimOrFind(...asked),
      keep: async (...kept) => {
        await promise;
        await memory.keep(...kept);
      },
    });
    const first = await requests.send('k');
    const recorded = requests.claims.record(first.claim as number, recordedAnswer('late'));
    await first.leave();
    await expect(requests.send('k')).rejects.toMatchObject(inProgress);
    resolve();
    expect(await recorded).toBe(true);
    expect(await requests.answerTo('k')).toBe('late');
  });

  it('is recorded once', async () => {
    const requests = open();
    const { claim } = await requests.send('k');
    const twice = ['first', 'second'].map((body) => requests.claims.record(claim as number, recordedAnswer(body)));
    expect(await Promise.all(twice)).toEqual([true, false]);
    expect(await requests.answerTo('k')).toBe('first');
  });
});

it('A store that fails does not prevent requests', async () => {
  const requests = open({ claimOrFind: () => Promise.reject(new Error('away')) });
  expect((await requests.send('k')).claim).not.toBeNull();
  await expect(requests.send('k')).rejects.toMatchObject(inProgress);
});

describe('Claimed keys', () => {
  it('are limited, for one client and in total', async () => {
    const limits = { maxClaims: 3, maxClaimsOfClient: 2 };
    const requests = new ClaimingRequests(new MemoryAnswers(), limits);
    const of = (client: ClientText, key: string) => requests.send(key, 'a digest', client);
    const first = await of('key a', '1');
    await of('key a', '2');
    await expect(of('key a', '3')).rejects.toMatchObject({ code: 'concurrency_limited', retryAfterSeconds: 1 });
    await of('key b', '1');
    await expect(of('key c', '1')).rejects.toMatchObject({ code: 'concurrency_limited' });
    await first.leave();
    expect((await of('key a', '3')).claim).not.toBeNull();
  });

  it('are limited for an API key together with all its users', async () => {
    const requests = new ClaimingRequests(new MemoryAnswers(), { maxClaims: 9, maxClaimsOfClient: 2 });
    const of = (client: ClientText) => requests.send('1', 'a digest', client);
    const first = await of('key app/ada');
    await of('key app/bob');
    await expect(of('key app/eve')).rejects.toMatchObject({ code: 'concurrency_limited' });
    await first.leave();
    expect((await of('key app/eve')).claim).not.toBeNull();
  });
});
