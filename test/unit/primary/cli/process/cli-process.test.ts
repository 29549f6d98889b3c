import { getEventListeners } from 'node:events';
import { CallbackServer } from '../../../../../src/features/acp/callback-server.js';
import {
  type Decoder,
  type DecoderEvent,
  type ProgramVersion,
  type Protocol,
  type TurnEvent,
  unknownUsage,
} from '../../../../../src/primary/cli/contract/adapter.js';
import type { Callback, CallbackRequest } from '../../../../../src/primary/cli/contract/callbacks.js';
import { type CliLimits, CliProcess, type CliState } from '../../../../../src/primary/cli/process/cli-process.js';
import { cancelled, RelayError, shuttingDown } from '../../../../../src/shared/errors.js';
import {
  lineDecoder,
  lineVersion,
  noCallbacks,
  noLimits,
  noSecrets,
  type ScriptedOptions,
  ScriptedTree,
  scriptedCli,
  silentObserver,
  TextBook,
  turnOf,
  withDecoder,
} from '../../../../support/agents/scripted-cli.js';
import { FakeClock } from '../../../../support/basics/fake-clock.js';
import { settled } from '../../../../support/basics/settled.js';

const never = new AbortController().signal;
const turnEnd: TurnEvent = { type: 'turn-end', text: null, model: null, usage: unknownUsage };
const gone = cancelled('the client has disconnected');

/** Starts a process. Records its text and its states. */
async function start(options: ScriptedOptions = {}) {
  const clock = new FakeClock();
  const states: CliState['name'][] = [];
  const cli = await scriptedCli(clock, { ...options, onChange: ({ state }) => states.push(state.name) });
  const book = new TextBook();
  const turn = (text = 'hello', signal = never) => cli.process.turn(turnOf(text), book, signal);
  return { ...cli, clock, states, book, turn };
}

function unstarted(next: 'standby' | 'busy' = 'busy', limits: CliLimits = noLimits): CliProcess {
  return new CliProcess(
    {
      programVersion: lineVersion(),
      limits,
      clock: new FakeClock(),
      observer: silentObserver,
      redactor: noSecrets,
      callbacks: noCallbacks,
    },
    next,
  );
}

describe('A CLI process', () => {
  it('goes from its start through its turns to its end, and reports each change', async () => {
    const { process, tree, states, turn } = await start({ next: 'standby' });
    process.claim();
    const answer = turn();
    await tree.say('end\n');
    await answer;
    process.keepFor({ id: 'a', messageCount: 2 });
    expect(process.state).toEqual({ name: 'idle', conversation: { id: 'a', messageCount: 2 } });
    await process.end('done');
    expect(states).toEqual(['standby', 'busy', 'busy', 'busy', 'idle', 'stopping', 'gone']);
  });

  it('answers one turn after another if the program continues to read', async () => {
    const { process, tree, book, turn } = await start();
    for (const prompt of ['one', 'two']) {
      const answer = turn(prompt);
      await tree.say(`+${prompt}?\nend\n`);
      expect((await answer).type).toBe('turn-end');
    }
    expect([tree.receivedInput, book.texts, tree.ends]).toEqual(['one\ntwo\n', ['one?', 'two?'], []]);
    expect(process.keepFor({ id: 'a', messageCount: 4 })).toBe(true);
  });

  it('cannot be reused if the program reads to the end of stdin: it is done after one turn', async () => {
    const { process, tree, book, turn } = await start({ programVersion: lineVersion('end') });
    const answer = turn();
    await tree.say('+hello?\n');
    await tree.exit(0);
    expect([(await answer).type, book.text, tree.stdin.writableEnded]).toEqual(['turn-end', 'hello?', true]);
    expect(process.keepFor({ id: 'a', messageCount: 2 })).toBe(false);
  });

  it('is alive until its program has died, whether or not its death was reported', async () => {
    const told = await start();
    expect(told.process.isAlive).toBe(true);
    await told.tree.exit(1);
    await told.clock.advance(100);
    expect(told.process.isAlive).toBe(false);
    const untold = await start();
    untold.tree.dieUnnoticed();
    expect(untold.process.isAlive).toBe(false);
    expect(unstarted().isAlive).toBe(false);
  });

  it('reports when its state last changed', async () => {
    const { process, clock } = await start({ next: 'standby' });
    await clock.advance(500);
    expect([process.startedMs, process.sinceMs]).toEqual([0, 0]);
    process.claim();
    expect([process.startedMs, process.sinceMs]).toEqual([0, 500]);
  });

  it('reports the time from its start to the first byte that a turn reads, whatever that is', async () => {
    const { process, tree, clock, turn } = await start();
    const answer = turn();
    await clock.advance(120);
    expect(process.startupMs).toBeNull();
    await tree.say('init\n');
    await clock.advance(5000);
    await tree.say('+one\nend\n');
    await answer;
    expect(process.startupMs).toBe(120);
  });

  it('reports the usage since the last report', async () => {
    const { process, tree } = await start();
    expect(await process.takeUsage()).toBeNull();
    tree.used = { processorMs: 100.4, peakMemoryBytes: 7000 };
    expect(await process.takeUsage()).toEqual({ processorMs: 100, peakMemoryBytes: 7000 });
    tree.used = { processorMs: 350.2, peakMemoryBytes: 9000 };
    expect(await process.takeUsage()).toEqual({ processorMs: 250, peakMemoryBytes: 9000 });
  });
});

describe('An invalid transition', () => {
  const keep = (process: CliProcess) => process.keepFor({ id: 'a', messageCount: 2 });

  it('throws when a process that is being ended is claimed', async () => {
    const { process, tree } = await start({ next: 'standby' });
    const release = tree.linger();
    const ended = process.end('done');
    expect(() => process.claim()).toThrow("a CLI process can't go from stopping to busy");
    release();
    await ended;
    expect(() => process.claim()).toThrow("a CLI process can't go from gone to busy");
  });

  it('throws when a claimed process is claimed again', async () => {
    const { process } = await start({ next: 'standby' });
    process.claim();
    expect(() => process.claim()).toThrow('a CLI process was claimed twice');
  });

  it('throws when a second turn begins while one is open', async () => {
    const { tree, turn, book } = await start();
    const first = turn('one');
    await expect(turn('two')).rejects.toThrow('one turn at a time');
    await tree.say('+one?\nend\n');
    expect([(await first).type, book.text, tree.receivedInput]).toEqual(['turn-end', 'one?', 'one\n']);
  });

  it('throws when a turn begins on a program that was never started', async () => {
    await expect(unstarted().turn(turnOf('hello'), new TextBook(), never)).rejects.toThrow('before its start');
  });

  it('is rejected when a process without a finished turn is to be reused', async () => {
    expect(keep(unstarted())).toBe(false);
    const waiting = await start({ next: 'standby' });
    expect(keep(waiting.process)).toBe(false);
    const ended = await start();
    await ended.process.end('done');
    expect(keep(ended.process)).toBe(false);
  });
});

describe('The start of a CLI process', () => {
  it('fails if its process tree cannot start, and leaves nothing behind', async () => {
    const process = unstarted();
    const fault = new RelayError('spawn_error', 'no such program');
    await expect(process.startProgram(Promise.reject(fault))).rejects.toBe(fault);
    await process.ended;
    expect(process.state.name).toBe('gone');
  });

  it('is interrupted if the process is ended: the tree ends once it exists', async () => {
    const process = unstarted('standby');
    const tree = new ScriptedTree();
    let arrive = (_: ScriptedTree) => {};
    const started = process.startProgram(
      new Promise((resolve) => {
        arrive = resolve;
      }),
    );
    const ended = process.end('shutting_down');
    await settled();
    expect([process.state.name, tree.ends]).toEqual(['stopping', []]);
    arrive(tree);
    await expect(started).rejects.toMatchObject({ code: 'shutting_down' });
    await ended;
    expect([process.state.name, tree.ends]).toEqual(['gone', ['shutting_down']]);
  });
});

describe('The end of a CLI process', () => {
  it('happens once, for the first reason: a job has a short grace period', async () => {
    const { process, tree } = await start();
    await Promise.all([process.end('done'), process.end('cancelled'), process.retire()]);
    expect([tree.ends, tree.graces]).toEqual([['done'], [400]]);
  });

  it('has the full grace period if no job waits for it', async () => {
    const { process, tree } = await start();
    await process.retire();
    expect([tree.ends, tree.graces]).toEqual([['retired'], [2000]]);
  });

  it('never has a longer grace period than configured', async () => {
    const { process, tree } = await start({ limits: { graceMs: 100 } });
    await process.end('done');
    expect(tree.graces).toEqual([100]);
  });

  it('is reported only when nothing is left of it', async () => {
    const { process, tree } = await start();
    const release = tree.linger();
    let isGone = false;
    void process.ended.then(() => {
      isGone = true;
    });
    const ended = process.end('done');
    await settled();
    expect([process.state.name, isGone]).toEqual(['stopping', false]);
    release();
    await ended;
    await settled();
    expect([process.state.name, isGone]).toEqual(['gone', true]);
  });

  it('is the end of the open turn', async () => {
    const { process, turn } = await start();
    const answer = turn();
    void process.end('shutting_down');
    await expect(answer).rejects.toEqual(shuttingDown());
  });
});

describe('A program that dies while it waits', () => {
  it('is ended with all its children, on standby and between two turns', async () => {
    const standby = await start({ next: 'standby' });
    await standby.tree.exit(1);
    await standby.clock.advance(100);
    expect([standby.tree.ends, standby.process.state.name]).toEqual([['retired'], 'gone']);
    const idle = await startIdle();
    await idle.tree.exit(1);
    expect([idle.tree.ends, idle.process.state.name]).toEqual([['retired'], 'gone']);
  });

  it('is distinguished from one that was ended', async () => {
    const died = await start({ next: 'standby' });
    const release = died.tree.linger();
    await died.tree.exitAndLeave(1);
    await died.clock.advance(100);
    expect(died.process.state).toEqual({ name: 'stopping', hasDied: true });
    release();
    const retired = await start({ next: 'standby' });
    retired.tree.linger();
    void retired.process.retire();
    expect(retired.process.state).toEqual({ name: 'stopping', hasDied: false });
  });

  it('fails the next turn with its stderr', async () => {
    const { tree, clock, turn } = await start();
    tree.stderr.write('out of luck');
    await settled();
    await tree.exitAndLeave(3);
    await clock.advance(100);
    await expect(turn()).rejects.toMatchObject({ code: 'cli_error', message: 'exit 3: out of luck' });
  });

  it('cannot be reused for a conversation after its last turn', async () => {
    const { process, tree, turn } = await start();
    const answer = turn();
    await tree.say('end\n');
    await answer;
    await tree.exit(0);
    expect(process.keepFor({ id: 'a', messageCount: 2 })).toBe(false);
  });
});

/** Starts a process that has run a turn and waits for the next one of its conversation. */
async function startIdle() {
  const started = await start();
  const answer = started.turn();
  await started.tree.say('end\n');
  await answer;
  started.process.keepFor({ id: 'a', messageCount: 2 });
  return started;
}

describe('Output between two turns', () => {
  it.each([
    ['a piece of an answer', '+late\n'],
    ['the end of an answer', 'end\n'],
    ['a failure', 'fail\n'],
    ['a line that never ends', 'x'.repeat(100_001)],
  ])('ends the process, because it would enter the next answer: %s', async (_, text) => {
    const { process, tree } = await startIdle();
    await tree.say(text);
    expect([tree.ends, process.state.name]).toEqual([['retired'], 'gone']);
  });

  it('prevents reuse if the job has not yet given the process back', async () => {
    const { process, tree, turn, book } = await start();
    const answer = turn();
    await tree.say('end\n');
    await answer;
    await tree.say('+late\n');
    expect([process.state.name, book.texts]).toEqual(['busy', []]);
    expect(process.keepFor({ id: 'a', messageCount: 2 })).toBe(false);
  });

  it('ends the process even if no event was decoded yet', async () => {
    let isMidAnswer = false;
    const decoder = {
      hasBegun: true,
      get isMidAnswer() {
        return isMidAnswer;
      },
      read: (text: string): TurnEvent[] => {
        isMidAnswer = text.includes('silent part');
        return text.includes('end') ? [turnEnd] : [];
      },
      exit: () => [],
    };
    const { process, tree, turn } = await start({ programVersion: withDecoder(decoder) });
    const answer = turn();
    await tree.say('end\n');
    await answer;
    process.keepFor({ id: 'a', messageCount: 2 });
    await tree.say('silent part\n');
    expect([tree.ends, process.state.name]).toEqual([['retired'], 'gone']);
  });

  it.each([
    ['a second end', 'end\nend\n'],
    ['a piece of an answer', 'end\n+late\n'],
    ['a line of another turn, before the end', 'stray\nend\n'],
  ])('prevents reuse if it arrived with the end of the turn: %s', async (_, text) => {
    const { process, tree, turn, book } = await start();
    const answer = turn();
    await tree.say(text);
    expect([(await answer).type, book.texts]).toEqual(['turn-end', []]);
    expect(process.keepFor({ id: 'a', messageCount: 2 })).toBe(false);
  });

  it('has no effect if it is no part of an answer', async () => {
    const { process, tree } = await startIdle();
    await tree.say(': I am still here\n');
    expect([tree.ends, process.state.name]).toEqual([[], 'idle']);
  });

  it('belongs to the first turn if it was written before it', async () => {
    const { process, tree, book, turn } = await start({ next: 'standby' });
    await tree.say('+early\n');
    expect(process.state.name).toBe('standby');
    process.claim();
    const answer = turn();
    await tree.say('end\n');
    await answer;
    expect(book.texts).toEqual(['early']);
  });
});

describe('A turn that is cut', () => {
  it('ends the program immediately with the reason of its signal', async () => {
    const controller = new AbortController();
    const { process, tree, book, turn } = await start();
    const answer = turn('one', controller.signal);
    await tree.say('+one\n+two\n');
    const failure = expect(answer).rejects.toBe(gone);
    controller.abort(gone);
    await failure;
    await process.ended;
    expect([book.texts, tree.ends]).toEqual([['one', 'two'], ['cancelled']]);
  });

  it.each([
    ['timeout', new RelayError('timeout', 'too late')],
    ['shutting_down', shuttingDown()],
    ['cancelled', gone],
    ['done', new RelayError('concurrency_limited', 'something else')],
    ['done', new Error('a defect')],
  ])('ends the program as %s for that reason', async (endReason, reason) => {
    const { tree, turn } = await start();
    await expect(turn('one', AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(tree.ends).toEqual([endReason]);
  });

  it('is not sent to the program if the caller disconnected earlier', async () => {
    const { tree, turn } = await start();
    await expect(turn('secret', AbortSignal.abort(gone))).rejects.toBe(gone);
    await settled();
    expect([tree.receivedInput, tree.ends]).toEqual(['', ['cancelled']]);
  });

  it.each([
    ['fails', 'fail\n', 'done'],
    ['is too long', `+${'x'.repeat(101)}\n`, 'done'],
  ])('ends the program if it %s', async (_, output, reason) => {
    const { process, tree, turn } = await start({ limits: { maxOutputBytes: 100 } });
    const failure = expect(turn()).rejects.toMatchObject({ code: 'cli_error' });
    await tree.say(output);
    await failure;
    expect([tree.ends, process.keepFor({ id: 'a', messageCount: 2 })]).toEqual([[reason], false]);
  });

  it('ends the program after too long a silence, in each turn anew', async () => {
    const { tree, clock, turn } = await start({ limits: { stallMs: 20 } });
    const first = turn('one');
    await clock.advance(19);
    await tree.say('+one\nend\n');
    await first;
    await clock.advance(10_000); // between turns, no output is due
    const second = turn('two');
    const message = 'the model CLI was silent for 20 ms between two outputs (MODEL_API_STALL_TIMEOUT)';
    const failure = expect(second).rejects.toMatchObject({ code: 'timeout', message });
    await clock.advance(19);
    await tree.say('+two\n');
    await clock.advance(19);
    expect(tree.ends).toEqual([]);
    await clock.advance(1);
    await failure;
    expect(tree.ends).toEqual(['timeout']);
  });

  it('leaves no timer and no listener behind, however it ends', async () => {
    const limits = { stallMs: 1000 };
    const controller = new AbortController();
    const { process, tree, clock, turn } = await start({ limits });
    const answer = turn('one', controller.signal);
    await tree.say('end\n');
    await answer;
    expect([clock.pending, getEventListeners(controller.signal, 'abort')]).toEqual([0, []]);
    controller.abort(gone);
    expect([tree.ends, process.state.name]).toEqual([[], 'busy']);
  });
});

/** Returns a program that greets first. Then the program sends `?`, receives an answer at once, and requests files. */
function talkative(): ProgramVersion {
  const lines = lineDecoder();
  const asides: Readonly<Record<string, DecoderEvent[]>> = {
    '?\n': [{ type: 'reply', text: 'yes\n' }],
    'files\n': [{ type: 'request-refused', request: 'files' }],
  };
  const programVersion = withDecoder({ ...lines, read: (chunk) => asides[chunk] ?? lines.read(chunk) });
  return {
    ...programVersion,
    protocol: () => ({ ...programVersion.protocol(), opening: (folder) => `hello from ${folder}\n` }),
  };
}

describe('A program whose answer was cut by a limit', () => {
  it.each([
    ['is paused at once if it might request the rest', [{ type: 'stray' } as const], ['pause']],
    ['continues if its turn has ended', [], []],
  ])('%s', async (_, before, pauses) => {
    const lines = lineDecoder();
    const read = () => [...before, { ...turnEnd, isCutShort: true } as const];
    const { tree, turn } = await start({ programVersion: withDecoder({ ...lines, read }) });
    const answer = turn();
    await tree.say('cut\n');
    expect(await answer).toMatchObject({ isCutShort: true });
    expect(tree.pauses).toEqual(pauses);
  });
});

describe('A program with an opening message before its first turn', () => {
  it('gets the opening at its start and replies to its requests, on standby and in a turn', async () => {
    const { process, tree, book, turn } = await start({ next: 'standby', programVersion: talkative() });
    await tree.say('?\n');
    expect([tree.receivedInput, process.state.name]).toEqual(['hello from /private/folder\nyes\n', 'standby']);
    await tree.say('files\n');
    process.claim();
    const answer = turn('one');
    await tree.say('?\n');
    await tree.say('+Hi\nend\n');
    expect([(await answer).type, book.text, tree.receivedInput]).toEqual([
      'turn-end',
      'Hi',
      'hello from /private/folder\nyes\none\nyes\n',
    ]);
  });

  it('is ended if it endlessly requests something it cannot have, on standby and in a turn', async () => {
    const refusals: DecoderEvent[] = Array.from({ length: 101 }, () => ({ type: 'request-refused', request: 'files' }));
    const lines = lineDecoder();
    const programVersion = withDecoder({
      ...lines,
      read: (chunk) => (chunk === 'files\n' ? refusals : lines.read(chunk)),
    });
    const waiting = await start({
      next: 'standby',
      programVersion: { ...programVersion, protocol: () => ({ ...programVersion.protocol(), opening: () => '' }) },
    });
    await waiting.tree.say('files\n');
    expect(waiting.tree.ends).toEqual(['retired']);
    const busy = await start({ programVersion });
    const failure = expect(busy.turn('one')).rejects.toMatchObject({ code: 'cli_error', reason: 'other' });
    await busy.tree.say('files\n');
    await failure;
  });

  it('counts as dead if its opening fails', async () => {
    const { process, tree, states } = await start({ next: 'standby', programVersion: talkative() });
    await tree.say('fail\n');
    expect([tree.ends, states]).toEqual([['retired'], ['standby', 'stopping', 'gone']]);
    expect(process.isAlive).toBe(false);
  });
});

describe('The history of a turn', () => {
  const inTwoParts: ProgramVersion = {
    ...lineVersion(),
    protocol: () => ({
      writer: { write: ({ text }) => ({ text: `${text}\n`, rest: ['again\n'], stdin: 'keep-open' }) },
      decoder: lineDecoder(),
    }),
  };

  it('is sent piece by piece, and the requests for it are not model output', async () => {
    const { tree, clock, turn } = await start({ limits: { stallMs: 300 }, programVersion: inTwoParts });
    const failure = expect(turn('one')).rejects.toMatchObject({ code: 'timeout' });
    await clock.advance(100);
    await tree.say(': I have started\nmore\n');
    await clock.advance(199);
    expect([tree.receivedInput, tree.ends]).toEqual(['one\nagain\n', []]);
    await clock.advance(1);
    await failure;
  });
});

describe('A sink that is full', () => {
  it('pauses the stdout of the program and the silence limit', async () => {
    const { tree, clock, book, turn } = await start({ limits: { stallMs: 50 } });
    const answer = turn();
    book.isFull = true;
    await tree.say('+1\n');
    await tree.say('+2\n');
    expect([tree.stdout.isPaused(), book.texts]).toEqual([true, ['1']]);
    await clock.advance(10_000);
    expect(tree.ends).toEqual([]);
    await book.catchUp();
    await tree.say('end\n');
    await answer;
    expect([tree.stdout.isPaused(), book.texts]).toEqual([false, ['1', '2']]);
  });

  it('loses nothing of a program that has exited meanwhile', async () => {
    const { tree, clock, book, turn } = await start();
    const answer = turn();
    book.isFull = true;
    await tree.say('+1\n');
    await tree.say('+2\n+3\n');
    await tree.exit(0);
    await clock.advance(10_000);
    await book.catchUp();
    expect([(await answer).type, book.texts]).toEqual(['turn-end', ['1', '2', '3']]);
  });
});

/** Returns a program that uses the relay's callback. Posted text is read like lines on stdout. */
function askingVersion() {
  const version = lineVersion();
  const protocol = (): Protocol => {
    const { writer, decoder } = version.protocol();
    const requested = ({ body, answer }: CallbackRequest) => {
      if (body !== 'wait\n') answer('{}');
      return body === 'wait\n' ? [] : decoder.read(body);
    };
    const decoding: Decoder<DecoderEvent> = Object.assign(Object.create(decoder), { requested });
    return { writer, decoder: decoding, opening: (_, callback) => `${JSON.stringify(callback)}\n` };
  };
  return { ...version, protocol };
}

describe('A program with a callback', () => {
  const clock = new FakeClock();
  let callbacks: CallbackServer;
  beforeEach(() => {
    callbacks = new CallbackServer(clock);
  });
  afterEach(() => callbacks.closePort());

  async function started() {
    const cli = await start({ programVersion: askingVersion(), callbacks });
    const { url, headers } = JSON.parse(cli.tree.receivedInput) as Callback;
    const post = (body: string) => fetch(url, { method: 'POST', headers, body });
    return { ...cli, post };
  }

  it('gets its address at the start, and its posts during a turn belong to that turn', async () => {
    const { process, post, turn, book } = await started();
    const answer = turn();
    await post('+hello\nend\n');
    expect([(await answer).type, book.text]).toEqual(['turn-end', 'hello']);
    await process.end('done');
    expect((await post('+late\n')).status).toBe(401);
  });

  it('ends if it posts part of an answer between its turns, or abandons a request', async () => {
    for (const body of ['+late\n', 'wait\n']) {
      const { process, post, turn, tree } = await started();
      const answer = turn();
      await tree.say('end\n');
      await answer;
      process.keepFor({ id: 'a', messageCount: 2, openCalls: ['c'] });
      const posted = await post(body);
      await posted.body?.cancel();
      await process.ended;
      expect(tree.ends).toEqual(['retired']);
    }
  });

  it('cannot be started if no port is available for it', async () => {
    const open = () => Promise.reject(new Error('no port'));
    await expect(start({ programVersion: askingVersion(), callbacks: { open } })).rejects.toThrow('no port');
  });
});
