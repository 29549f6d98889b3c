import { MessageLine } from '../../../../src/features/steering/message-line.js';
import { steeringPart } from '../../../../src/features/steering/primary.js';
import type { Fate } from '../../../../src/features/steering/shared.js';
import { withResolvers } from '../../../../src/shared/async.js';
import { cancelled } from '../../../../src/shared/errors.js';

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
    const line = new MessageLine(someJob().job);
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
    const line = new MessageLine(job);
    const first = send(line, 'first');
    end(false);
    await first.fate;
    await first.leave();
    expect(await send(line, 'second').fate).toMatchObject({ isAdded: false });
    expect(texts).toEqual(['first']);
  });

  it('do not become turns after the job was cancelled, and only then', async () => {
    const [cancelledJob, failedJob] = [someJob(), someJob()];
    const lost = send(new MessageLine(cancelledJob.job), 'lost');
    cancelledJob.cut(cancelled('the job was cancelled'));
    cancelledJob.end(false);
    await expect(lost.fate).rejects.toMatchObject({ code: 'turn_ended' });
    const kept = send(new MessageLine(failedJob.job), 'kept');
    failedJob.cut(new Error('the model took too long'));
    failedJob.end(false);
    expect(await kept.fate).toMatchObject({ isAdded: false });
  });

  it('reach the model once for each Idempotency-Key, also if the worker of the first request ends', async () => {
    const { job, texts, end } = someJob();
    const line = new MessageLine(job);
    const first = send(line, 'once', { key: 'k' });
    await Promise.all([expect(first.fate).rejects.toThrow(), first.leave()]);
    const second = send(line, 'once', { key: 'k' });
    end(true);
    expect(await second.fate).toMatchObject({ isAdded: true });
    expect(texts).toEqual(['once']);
  });
});

describe('The turn after an answer', () => {
  const request = { operation: 'chat', model: 'opus', schema: null, effort: null };

  async function nextOf(job: object, interrupt = false, isShared = false) {
    const open = {
      conversationId: 'c',
      hasStarted: true,
      turn: { isFirst: false, system: null },
      background: null,
      request,
      ...job,
    };
    const store = { jobs: { shared: isShared ? {} : null } };
    const clientJobs = { openTurnOf: () => open, idOf: () => '1-a' };
    const { findTurn } = steeringPart({ clientJobs, store } as unknown as Parts).handlers;
    return (await findTurn({ of: 'conversation', id: 'c', client: 'ada', interrupt })).next;
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

  it('is refused together with an end that the answer cannot have', async () => {
    const structured = { request: { ...request, schema: '{}' } };
    await expect(nextOf(structured, true)).rejects.toThrow('an answer in plain text');
  });
});
