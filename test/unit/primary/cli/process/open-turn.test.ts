import { PassThrough } from 'node:stream';
import {
  type Decoder,
  LineTooLong,
  type TurnInput,
  unknownUsage,
  type Waiting,
} from '../../../../../src/primary/cli/contract/adapter.js';
import { OpenTurn, type TurnLimits } from '../../../../../src/primary/cli/process/open-turn.js';
import { lineDecoder, noLimits, TextBook } from '../../../../support/agents/scripted-cli.js';
import { FakeClock } from '../../../../support/basics/fake-clock.js';
import { settled } from '../../../../support/basics/settled.js';

const oneLine: TurnInput = { text: 'hello\n', stdin: 'keep-open' };

interface Options {
  readonly limits?: Partial<TurnLimits>;
  readonly decoder?: Decoder;
  readonly input?: TurnInput;
}

const says = (text: string) => (decoder: Decoder) => decoder.read(text);

/** Starts a turn. Returns the stdin of its program, and whether its output is being read, too. */
function begin({ limits = {}, decoder = lineDecoder(), input = oneLine }: Options = {}) {
  const clock = new FakeClock();
  const sink = new TextBook();
  const stdin = new PassThrough();
  const output = {
    flow: 'unread',
    startReading: () => (output.flow = 'reading'),
    pause: () => (output.flow = 'paused'),
  };
  const turn = new OpenTurn({ stdin, output, decoder }, sink, { ...noLimits, ...limits }, clock);
  turn.beginInput(input);
  const heard = () => String(stdin.read() ?? '');
  return { clock, sink, stdin, output, turn, heard };
}

/** Resolves with the type of the turn's end, or with the code and message of its error. */
async function outcomeOf({ ended }: OpenTurn): Promise<string> {
  return ended.then(
    ({ type }) => type,
    ({ code, message }) => `${code}: ${message}`,
  );
}

describe('The input of a turn', () => {
  it('is written immediately, and stdin stays open or is closed as the program needs it', () => {
    const open = begin();
    expect([open.heard(), open.stdin.writableEnded, open.output.flow]).toEqual(['hello\n', false, 'reading']);
    const once = begin({ input: { text: 'hello', stdin: 'end' } });
    expect([once.heard(), once.stdin.writableEnded]).toEqual(['hello', true]);
  });

  it('is written piece by piece, each after the program has taken the previous one', () => {
    const { turn, heard } = begin({ input: { text: 'one\n', rest: ['two\n', 'three\n'], stdin: 'keep-open' } });
    expect(heard()).toBe('one\n');
    turn.readOutput(says('more\n'));
    expect(heard()).toBe('two\n');
    turn.readOutput(says('more\n'));
    expect(heard()).toBe('three\n');
  });
});

describe('A step that a program must finish', () => {
  const late = { type: 'turn-failed', reason: 'other', message: 'too slow' } as const;

  /** Starts a turn of a program that must finish this step. */
  function beginIn(name: string | null) {
    const state = { name };
    const awaited = () => (state.name === null ? null : { name: state.name, limitMs: 100, late });
    const decoder = Object.defineProperty(lineDecoder(), 'awaited', { get: awaited });
    return { state, ...begin({ decoder }) };
  }

  it('ends the turn if it takes too long, each step counted by itself', async () => {
    const { state, turn, clock } = beginIn('first');
    const outcome = outcomeOf(turn);
    await clock.advance(99);
    turn.readOutput(says(': noise\n'));
    state.name = 'second';
    turn.readOutput(says(': progress\n'));
    await clock.advance(99);
    await clock.advance(1);
    expect(await outcome).toBe('cli_error: too slow');
    expect(clock.pending).toBe(0);
  });

  it('continues its timer while the program only makes noise', async () => {
    const { turn, clock } = beginIn('first');
    const outcome = outcomeOf(turn);
    await clock.advance(60);
    turn.readOutput(says(': noise\n'));
    await clock.advance(40);
    expect(await outcome).toBe('cli_error: too slow');
  });

  it('has no timer once the model works, or after the turn', async () => {
    const { state, turn, clock } = beginIn('first');
    state.name = null;
    turn.readOutput(says('+one\n'));
    expect(clock.pending).toBe(0);
    const other = beginIn('first');
    other.turn.readOutput(says('end\n'));
    expect(other.clock.pending).toBe(0);
  });

  it('has no timer while the client does not read', async () => {
    const { turn, clock, sink } = beginIn('end of the turn');
    Object.assign(sink, { isFull: true, room: () => new Promise(() => {}) });
    turn.readOutput(says('+one\n'));
    await settled();
    expect(clock.pending).toBe(0);
  });
});

describe('A program that waits for its API', () => {
  const failure = {
    type: 'turn-failed',
    reason: 'quota',
    message: 'no room',
    quota: { scope: 'model', resetsAt: null },
  } as const;
  const waits = () => [{ type: 'waiting', ms: 8000, failure } as const];

  it('fails immediately, with the cause and the time, if the job has no time left for that', async () => {
    const { turn, sink, clock } = begin();
    Object.assign(sink, { waits: ({ ms }: Waiting) => ms < 8000 });
    turn.readOutput(waits);
    const expected = { reason: 'quota', retryAfterSeconds: 8, quota: { scope: 'model', resetsAt: clock.now() + 8000 } };
    await expect(turn.ended).rejects.toMatchObject(expected);
  });

  it('names the cause if a time limit ends while it waits, but not once the model has written', async () => {
    const late = begin({ limits: { stallMs: 100 } });
    late.turn.readOutput(waits);
    const lateOutcome = outcomeOf(late.turn);
    await late.clock.advance(100);
    expect(await lateOutcome).toBe('cli_error: no room');
    const again = begin({ limits: { stallMs: 100 } });
    again.turn.readOutput(waits);
    again.turn.readOutput(says('+one\n'));
    const againOutcome = outcomeOf(again.turn);
    await again.clock.advance(100);
    expect(await againOutcome).toMatch(/^timeout/);
  });
});

describe('The answer of a turn', () => {
  it('is sent to the sink piece by piece, and its end is the end of the turn', async () => {
    const { turn, sink, clock } = begin({ limits: { stallMs: 50 } });
    turn.readOutput(says('+one\n+t'));
    turn.readOutput(says('wo\nend\n'));
    expect(await turn.ended).toEqual({ type: 'turn-end', text: null, model: null, usage: unknownUsage });
    expect([sink.texts, clock.pending]).toEqual([['one', 'two'], 0]);
  });

  it.each([
    ['its end', '+one\nend\n+two\nfail\nend\n', 'turn-end'],
    ['a failure that the program reports', '+one\nfail\n+two\nend\n', 'cli_error: it failed'],
    [
      'a request for input that the turn does not contain',
      '+one\nmore\n+two\n',
      'cli_error: the model CLI requested more input than the turn contains',
    ],
  ])('contains nothing after %s', async (_, output, outcome) => {
    const { turn, sink } = begin();
    turn.readOutput(says(output));
    turn.readOutput(says('+three\n'));
    expect(await outcomeOf(turn)).toBe(outcome);
    expect(sink.texts).toEqual(['one']);
  });

  const tooLong = 'cli_error: the answer is longer than 100 bytes (MODEL_API_MAX_OUTPUT_BYTES)';

  it.each([
    ['in one piece', `+${'x'.repeat(101)}\n`],
    ['in its bytes', `+${'é'.repeat(51)}\n`],
    ['in all', `+${'x'.repeat(60)}\n+${'x'.repeat(60)}\n`],
  ])('is rejected if it is too long %s', async (_, text) => {
    const { turn, sink } = begin({ limits: { maxOutputBytes: 100 } });
    turn.readOutput(says(text));
    await expect(turn.ended).rejects.toMatchObject({ reason: 'output_too_large' });
    expect(await outcomeOf(turn)).toBe(tooLong);
    expect(Buffer.byteLength(sink.text)).toBeLessThanOrEqual(100);
  });

  it('is rejected if it cites too long passages', async () => {
    const passage = { cited_text: 'x'.repeat(101) };
    const decoder: Decoder = { ...lineDecoder(), read: () => [{ type: 'passage', passage }] };
    const { turn } = begin({ limits: { maxOutputBytes: 100 }, decoder });
    turn.readOutput(says('+one\n'));
    expect(await outcomeOf(turn)).toBe(tooLong);
  });

  it('may have exactly the maximum length, and text that its end repeats counts once', async () => {
    const text = 'é'.repeat(50);
    const { turn, sink } = begin({ limits: { maxOutputBytes: 100 }, decoder: repeatsItself });
    turn.readOutput(says(text));
    expect([await outcomeOf(turn), sink.text]).toEqual(['turn-end', text]);
  });

  it('is rejected if only its end shows that it is too long', async () => {
    const { turn } = begin({ limits: { maxOutputBytes: 100 }, decoder: onlyEnds });
    turn.readOutput(says('x'.repeat(101)));
    expect(await outcomeOf(turn)).toBe(tooLong);
  });

  it('is rejected if a line of the program never ends', async () => {
    const { turn } = begin();
    turn.readOutput(says('x'.repeat(100_001)));
    await expect(turn.ended).rejects.toMatchObject({ code: 'cli_error', reason: 'output_too_large' });
  });

  it('is a defect of the relay if the decoder throws', async () => {
    const defect = new TypeError('not a function');
    const throwing: Decoder = {
      ...lineDecoder(),
      read: () => {
        throw defect;
      },
    };
    const { turn } = begin({ decoder: throwing });
    turn.readOutput(says('anything'));
    await expect(turn.ended).rejects.toBe(defect);
  });
});

const repeatsItself: Decoder = {
  hasBegun: true,
  read: (text) => [
    { type: 'text-delta', text },
    { type: 'turn-end', text, model: null, usage: unknownUsage },
  ],
  exit: () => [],
};

const onlyEnds: Decoder = {
  hasBegun: true,
  read: (text) => [{ type: 'turn-end', text, model: null, usage: unknownUsage }],
  exit: () => [],
};

describe('A turn whose program exits', () => {
  it('ends as the exit of the program indicates', async () => {
    const good = begin();
    good.turn.exited({ code: 0, signal: null, stderr: '' });
    expect(await outcomeOf(good.turn)).toBe('turn-end');
    const bad = begin();
    bad.turn.exited({ code: 3, signal: null, stderr: 'out of luck' });
    await expect(bad.turn.ended).rejects.toMatchObject({ reason: 'crashed', message: 'exit 3: out of luck' });
  });

  it('fails if nothing indicates how it ended', async () => {
    const { turn } = begin({ decoder: onlyEnds });
    turn.exited({ code: 0, signal: null, stderr: '' });
    expect(await outcomeOf(turn)).toBe('cli_error: the model CLI ended without an answer');
  });

  it('fails, without crashing the service, if its last line cannot be read', async () => {
    const exit = (): never => {
      throw new LineTooLong('a line is too long');
    };
    const { turn } = begin({ decoder: { ...lineDecoder(), exit } });
    turn.exited({ code: 0, signal: null, stderr: '' });
    expect(await outcomeOf(turn)).toMatch(/^cli_error: /);
  });

  it.each([
    [126, 'setpriv: failed to execute model: Exec format error'],
    [127, 'prompt-relay-sh: 1: exec: /opt/model: not found'],
  ])('could not be started if its helper exits with %d and the matching message', async (code, stderr) => {
    const { turn } = begin();
    turn.exited({ code, signal: null, stderr });
    expect(await outcomeOf(turn)).toBe('spawn_error: the model CLI could not be started: it cannot be executed');
    await expect(turn.ended).rejects.toMatchObject({ stderr }); // for the log
  });

  it('has crashed if the program itself exits with the code of a helper', async () => {
    const { turn } = begin();
    turn.exited({ code: 127, signal: null, stderr: 'sh: 1: claude: not found' });
    expect(await outcomeOf(turn)).toContain('cli_error: exit 127');
  });
});

describe('A turn that is cut short', () => {
  it('ends for the first reason, whatever follows', async () => {
    const { turn, sink, clock } = begin({ limits: { stallMs: 100 } });
    const reason = new Error('the client has disconnected');
    turn.fail(reason);
    turn.fail(new Error('too late'));
    turn.readOutput(says('+late\nend\n'));
    turn.exited({ code: 0, signal: null, stderr: '' });
    await expect(turn.ended).rejects.toBe(reason);
    expect([sink.texts, clock.pending]).toEqual([[], 0]);
  });

  it('leaves no timer behind after it is disposed of', () => {
    const { turn, clock } = begin({ limits: { stallMs: 100 } });
    turn[Symbol.dispose]();
    expect(clock.pending).toBe(0);
  });
});

describe('A turn whose reader is slow', () => {
  it.each([
    ['it has ended', (turn: OpenTurn) => turn.readOutput(says('end\n'))],
    ['it was cut', (turn: OpenTurn) => turn.fail(new Error('cut'))],
  ])('reads on once %s, so that the program can finish, and does not pause again', async (_, end) => {
    const { turn, sink, output, clock } = begin({ limits: { stallMs: 50 } });
    void outcomeOf(turn);
    sink.isFull = true;
    turn.readOutput(says('+one\n'));
    end(turn);
    expect([output.flow, clock.pending]).toEqual(['reading', 0]);
    await sink.catchUp();
    expect([output.flow, clock.pending]).toEqual(['reading', 0]);
  });

  it('does not pause for the last piece of an answer', async () => {
    const { turn, sink, output } = begin();
    sink.isFull = true;
    turn.readOutput(says('+one\nend\n'));
    await settled();
    expect(output.flow).toBe('reading');
  });
});

describe('A turn whose program is silent', () => {
  it('waits for the first output of the model, whatever the program writes about itself', async () => {
    const { turn, clock } = begin({ limits: { stallMs: 300 } });
    const outcome = outcomeOf(turn);
    await clock.advance(200);
    turn.readOutput(says(': I have started\n'));
    await clock.advance(99);
    expect(clock.pending).toBe(1);
    await clock.advance(1);
    expect(await outcome).toBe(
      'timeout: the model was silent for 300 ms before its first output (MODEL_API_STALL_TIMEOUT)',
    );
  });
});

describe('The usage of a turn', () => {
  const tokens = { ...unknownUsage, inputTokens: 70, outputTokens: 3 };

  it('is reported once, however the turn ends', async () => {
    const ends = [
      (open: ReturnType<typeof begin>) => open.turn.readOutput(says('end\n')),
      (open: ReturnType<typeof begin>) => open.turn.readOutput(says('fail\n')),
      (open: ReturnType<typeof begin>) => open.turn.fail(new Error('cut')),
      (open: ReturnType<typeof begin>) => open.turn.exited({ code: 1, signal: null, stderr: '' }),
      (open: ReturnType<typeof begin>) => open.turn.readOutput(says(`+${'x'.repeat(50)}\n`)),
    ];
    for (const end of ends) {
      const open = begin({ limits: { maxOutputBytes: 40 } });
      open.turn.readOutput(says('+hello\n'));
      end(open);
      open.turn.fail(new Error('late'));
      await outcomeOf(open.turn);
      expect(open.sink.uses).toHaveLength(1);
      expect(open.sink.uses[0]?.outputBytes).toBeGreaterThanOrEqual(5);
    }
  });

  it('is the last reported usage if the turn is cut or its answer needs no more', async () => {
    for (const hasEnough of [true, false]) {
      const decoder = Object.assign(lineDecoder(), { usedSoFar: tokens });
      const open = begin({ decoder });
      open.sink.hasEnough = hasEnough;
      open.turn.readOutput(says('+hello\n'));
      open.turn.fail(new Error('cut'));
      await outcomeOf(open.turn);
      expect(open.sink.uses).toEqual([{ usage: tokens, isCut: true, outputBytes: 5, hasCalls: false }]);
    }
  });

  it('is not reported if the model has not begun', async () => {
    const open = begin();
    open.turn.readOutput(says(': a greeting\n'));
    open.turn.fail(new Error('cut'));
    await outcomeOf(open.turn);
    expect(open.sink.uses).toEqual([]);
  });
});

describe('Messages that are added to a turn', () => {
  /** Starts a turn of a program that says `added ID` or `refused ID`. */
  function beginTaking() {
    let count = 0;
    let unexpected = 0;
    const events = (line: string) => {
      const [word, id = ''] = line.split(' ');
      if (word === 'added') return { type: 'message-added', id } as const;
      return word === 'refused' ? ({ type: 'message-refused', id } as const) : null;
    };
    const decoder: Decoder = {
      ...{ hasBegun: true, isMidAnswer: false, usedSoFar: unknownUsage, begin: () => {}, exit: () => [] },
      read: (chunk) => chunk.split('\n').flatMap((line) => events(line) ?? []),
    };
    const writer = { add: (text: string) => ({ id: `m${++count}`, input: `${text}\n` }) };
    const sink = Object.assign(new TextBook(), { added: (text: string) => void sink.texts.push(text) });
    const stdin = new PassThrough();
    const output = { startReading: () => {}, pause: () => {} };
    const program = { stdin, output, decoder, writer, onUnexpectedOutput: () => void unexpected++ };
    const turn = new OpenTurn(program, sink, noLimits, new FakeClock());
    turn.beginInput(oneLine);
    return { sink, turn, unexpected: () => unexpected };
  }

  it('are taken by their ids: a refused one is not mistaken for the next', async () => {
    const { sink, turn, unexpected } = beginTaking();
    const fates = [turn.addMessage('ONE'), turn.addMessage('TWO')];
    turn.readOutput(says('refused m1\nadded m2'));
    expect([await Promise.all(fates), sink.texts]).toEqual([[false, true], ['TWO']]);
    expect(unexpected()).toBe(0);
    turn.interrupt();
    await turn.ended;
  });

  it('spoil the process if they are of an earlier turn', async () => {
    const { sink, turn, unexpected } = beginTaking();
    turn.readOutput(says('added m9'));
    expect([sink.texts, unexpected()]).toEqual([[], 1]);
    turn.interrupt();
    await turn.ended;
  });
});
