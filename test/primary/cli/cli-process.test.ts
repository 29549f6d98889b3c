import { type Dialect, type TextDelta, type TurnEnd, unknownUsage } from '../../../src/primary/cli/adapter.js';
import { Cancelled } from '../../../src/shared/errors.js';
import { FakeClock } from '../../support/fake-clock.js';
import { lineDialect, scriptedCli, turnOf } from '../../support/scripted-cli.js';
import { settled } from '../../support/settled.js';

const never = new AbortController().signal;
const gone = new Cancelled('the client has gone');

const inTwoParts: Dialect = {
  ...lineDialect(),
  write: ({ text }) => ({ text: `${text}\n`, rest: ['again\n'], stdin: 'keep-open' }),
};

/** Says all it has said once more at its end. */
const saysItTwice: Dialect = {
  ...lineDialect(),
  decoder: () => ({
    hasBegun: true,
    read: (text) => [
      { type: 'text-delta', text },
      { type: 'turn-end', text, model: null, usage: unknownUsage },
    ],
    exit: () => [],
  }),
};

async function read(turn: AsyncIterable<TextDelta | TurnEnd>): Promise<string[]> {
  const words: string[] = [];
  for await (const event of turn) words.push(event.type === 'text-delta' ? event.text : event.type);
  return words;
}

describe('a CLI process', () => {
  it('answers turn after turn where the program reads on', async () => {
    const { tree, process } = scriptedCli(new FakeClock());
    for (const prompt of ['one', 'two']) {
      expect(process.isWaiting).toBe(true);
      const answer = read(process.turn(turnOf(prompt), never));
      await settled();
      expect(process.isWaiting).toBe(false);
      await tree.say(`+${prompt}?\nend\n`);
      expect(await answer).toEqual([`${prompt}?`, 'turn-end']);
    }
    expect(tree.heard).toBe('one\ntwo\n');
    expect([process.isWaiting, tree.ends]).toEqual([true, []]);
  });

  it('is done after one turn where the program reads to the end of its stdin', async () => {
    const { tree, process } = scriptedCli(new FakeClock(), {}, lineDialect('end'));
    const answer = read(process.turn(turnOf('one'), never));
    await tree.say('+one?\n');
    await tree.exit(0);
    expect(await answer).toEqual(['one?', 'turn-end']);
    expect([process.isWaiting, tree.stdin.writableEnded]).toEqual([false, true]);
  });

  it('does not wait any more once the program has exited, or is being ended', async () => {
    const dead = scriptedCli(new FakeClock());
    await dead.tree.exitAndLeave(1);
    expect(dead.process.isWaiting).toBe(false);
    const retired = scriptedCli(new FakeClock());
    void retired.process.retire();
    expect(retired.process.isWaiting).toBe(false);
  });

  it('is ended once, for the first reason: a job with a short grace, what nobody waits for with the whole one', async () => {
    const job = scriptedCli(new FakeClock());
    await Promise.all([job.process.end('done'), job.process.end('cancelled'), job.process.retire()]);
    expect([job.tree.ends, job.tree.graces]).toEqual([['done'], [400]]);
    const waiting = scriptedCli(new FakeClock());
    await waiting.process.retire();
    expect([waiting.tree.ends, waiting.tree.graces]).toEqual([['retired'], [2000]]);
  });
});

describe('a turn that is cut', () => {
  it('ends the program at once, whether or not anybody reads on', async () => {
    const controller = new AbortController();
    const { tree, process } = scriptedCli(new FakeClock());
    const turn = process.turn(turnOf('one'), controller.signal);
    const first = turn.next();
    await tree.say('+one\n+two\n');
    await first;
    controller.abort(gone);
    expect(tree.ends).toEqual(['cancelled']);
    await expect(turn.next()).rejects.toBe(gone);
    expect(process.isWaiting).toBe(false);
  });

  it('is not even told to the program where the caller has gone before it', async () => {
    const { tree, process } = scriptedCli(new FakeClock());
    await expect(read(process.turn(turnOf('secret'), AbortSignal.abort(gone)))).rejects.toBe(gone);
    await settled();
    expect([tree.heard, tree.ends, process.isWaiting]).toEqual(['', ['cancelled'], false]);
  });

  it('is cut by its reader, who leaves before the end', async () => {
    const { tree, process } = scriptedCli(new FakeClock());
    const turn = process.turn(turnOf('one'), never);
    const first = turn.next();
    await tree.say('+one\n');
    await first;
    await turn.return(undefined);
    expect([tree.ends, process.isWaiting]).toEqual([['done'], false]);
  });

  it.each([
    ['fails', '+one\nfail\n', 'it failed'],
    ['is too long', `+${'x'.repeat(101)}\n`, 'the answer is longer than 100 bytes'],
    ['is too long in its bytes', `+${'é'.repeat(51)}\n`, 'the answer is longer than 100 bytes'],
    ['is too long in all', `+${'x'.repeat(60)}\n+${'x'.repeat(60)}\n`, 'the answer is longer than 100 bytes'],
    ['asks for more than there is', 'more\n', 'the model CLI asked for more than a turn has'],
  ])('is over when it %s: the program is ended before anybody minds', async (_, output, message) => {
    const { tree, process } = scriptedCli(new FakeClock(), { maxOutputBytes: 100 });
    const answer = read(process.turn(turnOf('one'), never));
    const failure = expect(answer).rejects.toMatchObject({ code: 'cli_error', message });
    await tree.say(output);
    await failure;
    expect([tree.ends, process.isWaiting]).toEqual([['done'], false]);
  });

  it('may be exactly as long as is allowed, and what is said again at its end counts once', async () => {
    const { tree, process } = scriptedCli(new FakeClock(), { maxOutputBytes: 100 }, saysItTwice);
    const answer = read(process.turn(turnOf('one'), never));
    await tree.say('é'.repeat(50));
    expect(await answer).toEqual(['é'.repeat(50), 'turn-end']);
  });

  it('leaves no timer and no listener behind', async () => {
    const clock = new FakeClock();
    const controller = new AbortController();
    const { tree, process } = scriptedCli(clock, { firstOutputMs: 1000, stallMs: 1000 });
    const answer = read(process.turn(turnOf('one'), controller.signal));
    await tree.say('end\n');
    await answer;
    expect(clock.pending).toBe(0);
    controller.abort(gone);
    expect([tree.ends, process.isWaiting]).toEqual([[], true]);
  });
});

describe('a program that is silent for too long', () => {
  it('is ended before its first output, as a timeout that says so', async () => {
    const clock = new FakeClock();
    const { tree, process } = scriptedCli(clock, { firstOutputMs: 300, stallMs: 20 });
    const answer = read(process.turn(turnOf('one'), never));
    const message = 'the model was silent for 300 ms before its first output';
    const failure = expect(answer).rejects.toMatchObject({ code: 'timeout', message });
    await clock.advance(300);
    await failure;
    expect(tree.ends).toEqual(['timeout']);
  });

  it('is ended before its model has begun, whatever it writes of itself and however it takes in the history', async () => {
    const clock = new FakeClock();
    const { tree, process } = scriptedCli(clock, { firstOutputMs: 300, stallMs: 20 }, inTwoParts);
    const answer = read(process.turn(turnOf('one'), never));
    const message = 'the model was silent for 300 ms before its first output';
    const failure = expect(answer).rejects.toMatchObject({ code: 'timeout', message });
    await clock.advance(100);
    await tree.say(': I have started\nmore\n');
    await clock.advance(100);
    await tree.say(': I ask the model\n');
    await clock.advance(99);
    expect([tree.heard, tree.ends]).toEqual(['one\nagain\n', []]);
    await clock.advance(1);
    await failure;
    expect(tree.ends).toEqual(['timeout']);
  });

  it('is given time while it tells of itself, once its model has begun', async () => {
    const clock = new FakeClock();
    const { tree, process } = scriptedCli(clock, { firstOutputMs: 300, stallMs: 20 });
    const answer = read(process.turn(turnOf('one'), never));
    await clock.advance(299);
    await tree.say('+one\n');
    for (let count = 0; count < 3; count++) {
      await clock.advance(19);
      await tree.say(': a tool runs\n');
    }
    await tree.say('end\n');
    expect(await answer).toEqual(['one', 'turn-end']);
  });

  it('is ended between two outputs, each turn anew', async () => {
    const clock = new FakeClock();
    const { tree, process } = scriptedCli(clock, { firstOutputMs: 300, stallMs: 20 });
    const first = read(process.turn(turnOf('one'), never));
    await clock.advance(299);
    await tree.say('+one\nend\n');
    await first;
    await clock.advance(10_000); // nothing is expected of it between two turns
    const second = read(process.turn(turnOf('two'), never));
    const failure = expect(second).rejects.toMatchObject({
      code: 'timeout',
      message: 'the model CLI was silent for 20 ms between two outputs',
    });
    await clock.advance(299);
    await tree.say('thinking aloud\n');
    await clock.advance(19);
    expect(tree.ends).toEqual([]);
    await clock.advance(1);
    await failure;
    expect(tree.ends).toEqual(['timeout']);
  });
});

describe('the time a program takes to start', () => {
  it('ends with the first byte that a turn reads, whatever it is', async () => {
    const clock = new FakeClock();
    const { tree, process } = scriptedCli(clock);
    void read(process.turn(turnOf('one'), never));
    await clock.advance(120);
    expect(process.startupMs).toBeNull();
    await tree.say('init\n');
    await clock.advance(5000);
    await tree.say('+one\nend\n');
    expect(process.startupMs).toBe(120);
  });
});
