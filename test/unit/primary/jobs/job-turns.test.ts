import { plainLaunch } from '../../../../src/primary/cli/contract/adapter.js';
import { noJournal } from '../../../../src/primary/store/memory-store.js';
import { cliError, storeUnavailable } from '../../../../src/shared/errors.js';
import { settled } from '../../../support/basics/settled.js';
import {
  all,
  answers,
  barrier,
  hangs,
  jobHarness,
  type Script,
  shutdown,
  throws,
} from '../../../support/jobs/job-harness.js';

describe('A turn of a conversation', () => {
  it('adds the question and the answer, and receives the earlier messages', async () => {
    const harness = jobHarness();
    const id = await harness.turn();
    const end = await harness.finish({ operation: 'chat', conversationId: id, text: 'And then?' });
    expect(end).toMatchObject({ outcome: 'ok', conversation: { id, messageCount: 4, tokensUsed: 21 } });
    expect(harness.processes[1]?.turns).toEqual([
      {
        ...plainLaunch(null),
        text: 'And then?',
        images: [],
        history: [
          { role: 'user', text: 'Hi' },
          { role: 'assistant', text: 'Hello' },
        ],
      },
    ]);
  });

  it('requests the process of its conversation, and returns it with the new state', async () => {
    const harness = jobHarness();
    const id = await harness.turn();
    await harness.turn(id);
    const first = { id, messageCount: 2, client: 'key a', launch: plainLaunch(null) };
    const second = { ...first, messageCount: 4, beginnings: [{ id, messageCount: 2 }] };
    expect(harness.requestedConversations).toEqual([null, first]);
    const guess = { kind: 'question', client: 'key a' };
    expect(harness.processes.map(({ released }) => released)).toEqual([
      [{ ...first, guess, beginnings: [] }],
      [second],
    ]);
  });

  it('retains the system text of the first turn', async () => {
    const harness = jobHarness();
    const id = await harness.turn(null, { system: 'Be brief.' });
    await harness.turn(id, { system: 'Be long.' });
    expect(harness.launches.map(({ system }) => system)).toEqual(['Be brief.', 'Be brief.']);
    expect(harness.processes.map(({ turns }) => turns[0]?.system)).toEqual(['Be brief.', 'Be brief.']);
  });

  it.each<[string, Script]>([
    ['fails', throws(cliError('other', 'no'))],
    ['is cancelled', hangs],
  ])('changes nothing when it %s, and its process is ended', async (_, script) => {
    const harness = jobHarness({ script: [answers, script, answers] });
    const id = await harness.turn();
    const failing = harness.start({ operation: 'chat', conversationId: id });
    await settled();
    failing.leave();
    expect((await failing.end()).outcome).not.toBe('ok');
    expect(harness.processes[1]?.released).toEqual([null]);
    expect(harness.conversations.snapshot(id, 'key a')).toMatchObject({ messageCount: 2 });
    await harness.turn(id);
    expect(harness.processes[2]?.turns[0]?.history).toHaveLength(2);
    await harness.expectTidy();
  });

  it('waits for the previous turn, in the queue and without a slot, and reports its position', async () => {
    const first = barrier();
    const harness = jobHarness({
      script: [answers, (sink, signal) => first.wait().then(() => answers(sink, signal))],
      maxActive: 2,
    });
    const id = await harness.turn();
    await settled();
    const turns = [1, 2].map(() => all(harness.run({ operation: 'chat', conversationId: id, isStreamed: true })));
    await settled();
    expect([harness.room.active, harness.room.waiting]).toEqual([1, 1]);
    first.open();
    const [, waited] = await Promise.all(turns);
    expect(waited?.slice(0, 3)).toEqual([
      { type: 'job-admitted', session: null, ignoresEffort: false, conversationId: id },
      { type: 'job-queued', position: 1, reason: 'conversation' },
      { type: 'job-start', queueMs: 0 },
    ]);
    expect(harness.processes.map(({ turns: [turn] }) => turn?.history.length)).toEqual([0, 2, 4]);
    await harness.expectTidy();
  });

  it('ends in queue_timeout if the previous turn takes too long', async () => {
    const harness = jobHarness({ script: [answers, hangs], maxActive: 2 });
    const id = await harness.turn();
    const [running, waiting] = [1, 2].map(() => harness.finish({ operation: 'chat', conversationId: id }));
    await harness.clock.advance(15_000);
    expect((await waiting)?.outcome).toBe('queue_timeout');
    harness.runner.openJobs.cutAll(shutdown);
    await running;
    await harness.expectTidy();
  });

  it('lets the next turn of its conversation start while its process still ends', async () => {
    const { wait, open } = barrier();
    const harness = jobHarness({ release: wait, maxActive: 2 });
    const id = await harness.turn();
    expect(harness.room.active).toBe(1);
    await harness.turn(id);
    expect(harness.room.active).toBe(2);
    open();
    await settled();
    await harness.expectTidy();
  });

  it('does not return its process if its conversation was deleted meanwhile', async () => {
    const { wait, open } = barrier();
    const harness = jobHarness({ script: [answers, (sink, signal) => wait().then(() => answers(sink, signal))] });
    const id = await harness.turn();
    const running = harness.turn(id);
    await settled();
    harness.conversations.removeConversation(id, 'key a');
    open();
    expect(await running).toBe(id);
    expect(harness.processes[1]?.released).toEqual([null]);
    await harness.expectTidy();
  });

  it('does not return its process if the turn could not be stored, because the process knows more than the conversation', async () => {
    const harness = jobHarness();
    const id = await harness.turn();
    harness.journal = { commitChange: () => Promise.reject(storeUnavailable()) };
    const end = await harness.finish({ operation: 'chat', conversationId: id });
    const failure = { code: 'store_unavailable', retryAfterSeconds: 5 };
    expect(end).toMatchObject({ outcome: 'store_unavailable', failure });
    expect(harness.processes[1]?.released).toEqual([null]);
    expect(harness.conversations.snapshot(id, 'key a').messageCount).toBe(2);
    harness.journal = noJournal;
    expect(await harness.turn(id)).toBe(id);
    expect(harness.conversations.snapshot(id, 'key a').messageCount).toBe(4);
    await harness.expectTidy();
  });
});
