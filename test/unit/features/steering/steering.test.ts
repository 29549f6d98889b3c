import { MessageLine, maxWaiting, type SteeredJob } from '../../../../src/features/steering/message-line.js';
import { steeringPart } from '../../../../src/features/steering/primary.js';
import type { Fate } from '../../../../src/features/steering/shared.js';
import { withResolvers } from '../../../../src/shared/async.js';
import { cancelled, RelayError } from '../../../../src/shared/errors.js';

type Parts = Parameters<typeof steeringPart>[0];

/** A job whose model takes messages when the test says so. */
function someJob() {
  const controller = new AbortController();
  const adding: ((isAdded: boolean) => void)[] = [];
  const texts: string[] = [];
  const job = {
    signal: controller.signal,
    addMessage: (text: string) => {
      const { promise, resolve } = withResolvers<boolean>();
      texts.push(text);
      adding.push(resolve);
      return promise;
    },
    interrupt: () => {
      for (const resolve of adding) resolve(false);
      return true;
    },
  };
  return {
    job,
    texts,
    end: (isAdded: boolean) => adding.at(-1)?.(isAdded),
    cut: (reason: Error) => controller.abort(reason),
  };
}

function lineTo(job: SteeredJob, checkRoom: (sizes: readonly number[]) => void = () => {}): MessageLine {
  return new MessageLine(job, checkRoom);
}

/** Sends a message. `fate` resolves when it is known; `leave` ends the stream, as a worker does. */
function send(line: MessageLine, text: string, more: { interrupt?: boolean; key?: string } = {}, seen: string[] = []) {
  const controller = new AbortController();
  const { interrupt = false, key = null } = more;
  const turn = line.hold({ text, interrupt, key }, controller.signal);
  const fate = turn.next().then(({ value }) => {
    seen.push(text);
    return value as Fate;
  });
  fate.catch(() => {});
  return {
    fate,
    leave: async () => {
      controller.abort(cancelled('the worker has left'));
      await turn.next();
    },
  };
}

describe('The messages to an answer', () => {
  it('become turns in their order, also if a later one ends the answer', async () => {
    const seen: string[] = [];
    const line = lineTo(someJob().job);
    const first = send(line, 'first', {}, seen);
    const second = send(line, 'second', { interrupt: true }, seen);
    expect(await first.fate).toEqual({ isAdded: false, isInterrupted: false });
    await new Promise(setImmediate);
    expect(seen).toEqual(['first']); // its worker has not accepted it yet
    await first.leave();
    expect(await second.fate).toEqual({ isAdded: false, isInterrupted: true });
    expect(seen).toEqual(['first', 'second']);
  });

  it('do not pass a message that has become the next turn', async () => {
    const { job, texts, end } = someJob();
    const line = lineTo(job);
    const first = send(line, 'first');
    end(false);
    await first.fate;
    await first.leave();
    expect(await send(line, 'second').fate).toMatchObject({ isAdded: false });
    expect(texts).toEqual(['first']);
  });

  it('do not become turns after the job was cancelled, and only then', async () => {
    const [cancelledJob, failedJob] = [someJob(), someJob()];
    const lost = send(lineTo(cancelledJob.job), 'lost');
    cancelledJob.cut(cancelled('the job was cancelled'));
    cancelledJob.end(false);
    await expect(lost.fate).rejects.toMatchObject({ code: 'turn_ended' });
    const kept = send(lineTo(failedJob.job), 'kept');
    failedJob.cut(new Error('the model took too long'));
    failedJob.end(false);
    expect(await kept.fate).toMatchObject({ isAdded: false });
  });

  it('reach the model once for each Idempotency-Key, also if the worker of the first request ends', async () => {
    const { job, texts, end } = someJob();
    const line = lineTo(job);
    const first = send(line, 'once', { key: 'k' });
    await Promise.all([expect(first.fate).rejects.toThrow(), first.leave()]);
    const second = send(line, 'once', { key: 'k' });
    end(true);
    expect(await second.fate).toMatchObject({ isAdded: true });
    expect(texts).toEqual(['once']);
  });
});

describe('Too many messages to an answer', () => {
  const full = () => {
    throw new RelayError('concurrency_limited', 'the queue is full');
  };

  it('do not end it if they cannot all become turns', async () => {
    const { job, end } = someJob();
    let cuts = 0;
    const sizes: (readonly number[])[] = [];
    const interrupt = () => ++cuts > 0;
    const line = lineTo({ ...job, interrupt }, (each) => {
      sizes.push(each);
      full();
    });
    const first = send(line, 'first');
    const second = send(line, 'second', { interrupt: true });
    await expect(second.fate).rejects.toMatchObject({ code: 'concurrency_limited' });
    expect([cuts, sizes]).toEqual([0, [[5, 6]]]);
    end(true);
    expect(await first.fate).toMatchObject({ isAdded: true });
  });

  it('are refused while the others wait', async () => {
    const { job } = someJob();
    const line = lineTo(job);
    const waiting = Array.from({ length: maxWaiting }, (_, at) => send(line, `message ${at}`));
    await expect(send(line, 'one more').fate).rejects.toMatchObject({ code: 'concurrency_limited' });
    await Promise.all(waiting.slice(0, 1).flatMap(({ fate, leave }) => [expect(fate).rejects.toThrow(), leave()]));
    const next = send(line, 'another');
    await expect(Promise.race([next.fate, Promise.resolve('waits')])).resolves.toBe('waits');
  });
});

describe('A message that is repeated with its key after the answer has ended', () => {
  const order = {
    of: 'conversation',
    id: 'c',
    client: 'key ada' as const,
    interrupt: false,
    key: 'k',
    text: 'once',
  } as const;

  function partWith(jobs: { ended?: boolean; known?: readonly string[] }) {
    const { job, end } = someJob();
    const request = { operation: 'chat', client: 'key ada' as const, model: null, schema: null, effort: null };
    const running = { turnControl: job, isRunning: true, addedTexts: [], hasStarted: true, turn: null };
    const open = { signal: job.signal, ...running, conversationId: 'c', background: null, request };
    const clientJobs = {
      openTurnOf: () => (jobs.ended ? null : open),
      jobHere: () => open,
      idOf: () => '1-a',
      openJob: async (id: string) => {
        if (jobs.known?.includes(id) !== true) throw new RelayError('not_found', 'no such job');
        return null;
      },
    };
    const parts = { clientJobs, store: { isShared: false }, conversations: { snapshot: () => {} } };
    const never = () => {};
    const more = { checkStart: never, router: { checkModel: never }, background: { checkRoom: never } };
    return { ...steeringPart({ ...parts, ...more } as unknown as Parts).handlers, end };
  }

  it('is recognised if the model has got it, also after its worker has left', async () => {
    const jobs = { ended: false };
    const { findTurn, holdTurn, end } = partWith(jobs);
    const found = (await findTurn(order)) as { jobId: string; nextId: string | null };
    const controller = new AbortController();
    const fates = holdTurn({ ...order, ...found }, controller.signal) as AsyncGenerator<Fate>;
    const fate = fates.next();
    controller.abort(cancelled('the worker has left'));
    await expect(fate).rejects.toThrow();
    end(true);
    await new Promise(setImmediate);
    jobs.ended = true;
    expect(await findTurn(order)).toEqual({ repeated: null });
    for (const other of [{ text: 'twice' }, { key: 'other' }, { client: 'key bob' as const }, { key: null }])
      await expect(findTurn({ ...order, ...other })).rejects.toMatchObject({ code: 'turn_ended' });
  });

  it('is recognised if it became the next turn', async () => {
    const { nextId } = (await partWith({}).findTurn(order)) as { nextId: string };
    const { findTurn } = partWith({ ended: true, known: [nextId] });
    expect(await findTurn(order)).toEqual({ repeated: nextId });
    await expect(findTurn({ ...order, text: 'twice' })).rejects.toMatchObject({ code: 'turn_ended' });
  });
});

describe('The turn after an answer', () => {
  const request = { operation: 'chat', model: 'opus', schema: null, effort: null };

  async function nextOf(job: object, interrupt = false, isShared = false, more: object = {}) {
    const open = {
      conversationId: 'c',
      hasStarted: true,
      turn: { isFirst: false, system: null },
      background: null,
      request,
      ...job,
    };
    const store = { isShared };
    const clientJobs = { openTurnOf: () => open, idOf: () => '1-a' };
    const checks = { checkStart: () => {}, router: { checkModel: () => {} } };
    const parts = { clientJobs, store, ...checks, ...more } as unknown as Parts;
    const { findTurn } = steeringPart(parts).handlers;
    const text = interrupt ? null : 'more';
    const found = await findTurn({ of: 'conversation', id: 'c', client: 'key ada', interrupt, text, key: null });
    return 'next' in found ? found.next : 'repeated';
  }

  it('has the same models, and no other ones if the client has refused them', async () => {
    expect(await nextOf({})).toMatchObject({ model: 'opus', refusesFallback: false });
    const named = { request: { ...request, fallbacks: ['sonnet'] } };
    expect(await nextOf(named)).toMatchObject({ model: 'opus,sonnet', refusesFallback: false });
    const refused = { request: { ...request, fallbacks: [] } };
    expect(await nextOf(refused)).toMatchObject({ model: 'opus', refusesFallback: true });
  });

  it('is followed if the answer is', async () => {
    const inBackground = (form: object) => ({ background: { accepted: { form } } });
    expect(await nextOf({})).toMatchObject({ isFollowed: true });
    expect(await nextOf(inBackground({ isFollowed: true }))).toMatchObject({ isFollowed: true });
    expect(await nextOf(inBackground({}))).toMatchObject({ isFollowed: false });
  });

  it('can begin the conversation, but not for other hosts', async () => {
    const first = { turn: { isFirst: true, system: 'Be brief.' } };
    expect(await nextOf({})).toMatchObject({ beginning: null });
    expect(await nextOf(first)).toMatchObject({ beginning: { system: 'Be brief.', versionOf: null } });
    expect(await nextOf(first, false, true)).toBeNull();
    expect(await nextOf({}, false, true)).toMatchObject({ beginning: null });
  });

  it('is refused if its client may not ask now, but the answer may still be ended', async () => {
    const checkStart = () => {
      throw new RelayError('rate_limited', 'the budget is used up', { reason: 'budget' });
    };
    await expect(nextOf({}, false, false, { checkStart })).rejects.toMatchObject({ reason: 'budget' });
    await expect(nextOf({}, true, false, { checkStart })).resolves.toMatchObject({});
    const checkModel = () => {
      throw new RelayError('validation_error', 'not for this client');
    };
    await expect(nextOf({}, false, false, { router: { checkModel } })).rejects.toMatchObject({
      code: 'validation_error',
    });
  });

  it('is refused with advice if another host may write the answer', async () => {
    const clientJobs = { openTurnOf: () => null };
    const conversations = { snapshot: () => {} };
    const more = { clientJobs, conversations };
    await expect(nextOf({}, false, true, more)).rejects.toThrow(/to the host that writes the answer/);
    await expect(nextOf({}, false, false, more)).rejects.toThrow(/as the next one/);
  });

  it('is refused together with an end that the answer cannot have', async () => {
    const structured = { request: { ...request, schema: '{}' } };
    await expect(nextOf(structured, true)).rejects.toThrow('an answer in plain text');
  });
});
