import { JobStream } from '../../../../src/primary/jobs/job-stream.js';
import type { CallDelta, CallStart, JobEvent } from '../../../../src/shared/job.js';
import { randomNumbers } from '../../../support/basics/random.js';
import { settled } from '../../../support/basics/settled.js';
import { textDelta } from '../../../support/jobs/answer-events.js';
import { all } from '../../../support/jobs/job-harness.js';
import { jobDone, jobFailed } from '../../../support/jobs/job-records.js';

/** Length in UTF-16 units. */
const maxHeldLength = 32 * 1024;
const maxDeltaLength = 16 * 1024;

const end = jobDone();
const started = { type: 'job-start', queueMs: 7 };

function delta(text: string): JobEvent {
  return { type: 'text-delta', text };
}

function streamOf(...texts: readonly string[]): JobStream {
  const stream = new JobStream(true);
  for (const text of texts) stream.write(textDelta(text));
  return stream;
}

async function textsOf(events: AsyncIterable<JobEvent>): Promise<string[]> {
  return (await all(events)).flatMap((event) => (event.type === 'text-delta' ? [event.text] : []));
}

async function nextOf(stream: JobStream): Promise<JobEvent | undefined> {
  return (await stream.next()).value;
}

/** Whether the promise is already resolved. */
async function isResolved(promise: Promise<unknown>): Promise<boolean> {
  let isDone = false;
  void promise.then(() => {
    isDone = true;
  });
  await settled();
  return isDone;
}

describe('The events of a job', () => {
  it('arrive in order: positions, the start, the text, the end', async () => {
    const stream = new JobStream(true);
    stream.writePosition(2, 'slot');
    expect(await nextOf(stream)).toEqual({ type: 'job-queued', position: 2, reason: 'slot' });
    stream.writeStart(7);
    stream.write(textDelta('Hel'));
    stream.write(textDelta('lo'));
    stream.writeEnd(end);
    expect(await all(stream)).toEqual([started, delta('Hel'), delta('lo'), end]);
  });

  it('wake a reader that waits for them', async () => {
    const stream = new JobStream(true);
    for (const [happens, event] of [
      [() => stream.writePosition(1, 'slot'), { type: 'job-queued', position: 1, reason: 'slot' }],
      [() => stream.writeStart(7), started],
      [() => stream.write(textDelta('Hi')), delta('Hi')],
      [() => stream.writeEnd(end), end],
    ] as const) {
      const next = nextOf(stream);
      await settled();
      happens();
      expect(await next).toEqual(event);
    }
    expect(await stream.next()).toEqual({ value: undefined, done: true });
  });

  it('have one end, and nothing follows it', async () => {
    const stream = streamOf('Hi');
    stream.writeEnd(end);
    stream.write(textDelta('too late'));
    stream.writeEnd(jobFailed('timeout'));
    expect(await all(stream)).toEqual([delta('Hi'), end]);
    stream.writeEnd(end);
    stream.write(textDelta('much too late'));
    expect(await stream.next()).toEqual({ value: undefined, done: true });
  });

  it('are dropped when the reader leaves, and no more are buffered', async () => {
    const stream = streamOf('x'.repeat(maxHeldLength));
    for await (const _ of stream) break;
    stream.write(textDelta('y'.repeat(maxHeldLength)));
    stream.writeEnd(end);
    expect(stream.isFull).toBe(false);
    expect(await all(stream)).toEqual([]);
  });
});

describe('A position in the queue', () => {
  it('replaces an earlier one that was not read', async () => {
    const stream = new JobStream(true);
    for (const position of [9, 8, 3]) stream.writePosition(position, 'slot');
    expect(await nextOf(stream)).toEqual({ type: 'job-queued', position: 3, reason: 'slot' });
    expect(await isResolved(stream.next())).toBe(false);
  });

  it('is sent once, and again only after a different one', async () => {
    const stream = new JobStream(true);
    const events = all(stream);
    for (const position of [2, 2, 1, 1, 2]) {
      stream.writePosition(position, 'slot');
      await settled();
    }
    stream.writeEnd(end);
    const positions = [2, 1, 2].map((position) => ({ type: 'job-queued', position, reason: 'slot' }));
    expect(await events).toEqual([...positions, end]);
  });

  it('is dropped when the job gets its slot, and none is sent after that', async () => {
    const stream = new JobStream(true);
    stream.writePosition(1, 'slot');
    stream.writeStart(7);
    stream.writePosition(5, 'slot');
    stream.writeEnd(end);
    expect(await all(stream)).toEqual([started, end]);
  });

  it('is not sent if the answer is not streamed', async () => {
    const stream = new JobStream(false);
    stream.writePosition(4, 'slot');
    stream.writeStart(7);
    stream.writeEnd(end);
    expect(await all(stream)).toEqual([started, end]);
  });
});

describe('The text of a streamed answer', () => {
  it('is sent as it was written: one event for each piece', async () => {
    const texts = Array.from({ length: 100 }, (_, index) => `piece ${index} `);
    const stream = streamOf(...texts);
    stream.writeEnd(end);
    expect(await textsOf(stream)).toEqual(texts);
  });

  it('is sent in few large pieces to a slow reader, and piece by piece again once the reader catches up', async () => {
    const texts = Array.from({ length: 2000 }, (_, index) => `${String(index % 10).repeat(10)} `);
    const stream = streamOf(...texts);
    expect(await nextOf(stream)).toEqual(delta(texts.join('').slice(0, maxDeltaLength)));
    stream.write(textDelta('one'));
    stream.write(textDelta('two'));
    stream.writeEnd(end);
    const rest = await textsOf(stream);
    expect(rest.join('')).toBe(`${texts.join('').slice(maxDeltaLength)}onetwo`);
    expect(rest.slice(-2)).toEqual(['one', 'two']);
  });
});

describe('The calls of a streamed answer', () => {
  const start = (id: string): CallStart => ({ type: 'call-start', id, name: 'weather' });
  const input = (text: string): CallDelta => ({ type: 'call-delta', text });

  it('are sent at their places between the texts', async () => {
    const stream = streamOf('I ', 'see.');
    for (const call of [start('1'), input('{"a"'), input(':1}'), start('2'), start('3')]) stream.write(call);
    stream.write(textDelta('And'));
    stream.write(start('4'));
    stream.writeEnd(end);
    expect(await all(stream)).toEqual([
      ...[delta('I '), delta('see.')],
      ...[start('1'), input('{"a"'), input(':1}'), start('2'), start('3')],
      ...[delta('And'), start('4'), end],
    ]);
  });

  it('wake a reader that waits for them', async () => {
    const stream = new JobStream(true);
    for (const call of [start('1'), input('{}')]) {
      const next = nextOf(stream);
      await settled();
      stream.write(call);
      expect(await next).toEqual(call);
    }
  });

  it('are sent in few large pieces to a slow reader, each piece with the input of one call', async () => {
    const stream = new JobStream(true);
    const piece = 'x'.repeat(1000);
    for (const id of ['1', '2']) {
      stream.write(start(id));
      for (let index = 0; index < 20; index++) stream.write(input(piece));
      stream.write(textDelta('text'));
    }
    stream.writeEnd(end);
    const events = await all(stream);
    const inputs = events.flatMap((event) => (event.type === 'call-delta' ? [event.text.length] : []));
    expect(inputs.slice(0, 2)).toEqual([maxDeltaLength, 20_000 - maxDeltaLength]);
    expect(inputs.reduce((sum, length) => sum + length)).toBe(40_000);
    const others = events.filter((event) => event.type !== 'call-delta');
    expect(others).toEqual([start('1'), delta('text'), start('2'), delta('text'), end]);
    const order = events.map(({ type }) => type).filter((type, index, types) => type !== types[index - 1]);
    const ofOne = ['call-start', 'call-delta', 'text-delta'];
    expect(order).toEqual([...ofOne, ...ofOne, 'job-end']);
  });

  it('are split if an input is larger than an event may be, but never within a surrogate pair', async () => {
    const stream = new JobStream(true);
    const text = `x${'👩'.repeat(maxDeltaLength)}`;
    stream.write(start('1'));
    stream.write(input(text));
    stream.writeEnd(end);
    const inputs = (await all(stream)).flatMap((event) => (event.type === 'call-delta' ? [event.text] : []));
    expect(inputs.join('')).toBe(text);
    expect(inputs.length).toBeGreaterThan(1);
    expect(inputs.filter((each) => Buffer.from(each).toString() !== each)).toEqual([]);
  });

  it('fill the stream with their inputs until those are read', async () => {
    const stream = new JobStream(true);
    stream.write(start('1'));
    expect(stream.isFull).toBe(false);
    stream.write(input('x'.repeat(maxHeldLength)));
    expect(stream.isFull).toBe(true);
    const room = stream.room();
    await stream.next();
    expect(await isResolved(room)).toBe(false);
    await stream.next();
    await room;
    expect(stream.isFull).toBe(false);
  });

  it('are not sent if the answer is not streamed: its end contains them', async () => {
    const stream = new JobStream(false);
    stream.write(textDelta('I see.'));
    stream.write(start('1'));
    stream.write(input('x'.repeat(maxHeldLength)));
    expect(stream.isFull).toBe(false);
    const calls = [{ id: '1', name: 'weather', input: '{}' }];
    stream.writeEnd(jobDone({ calls }));
    expect(await all(stream)).toEqual([delta('I see.'), jobDone({ calls })]);
  });
});

describe('The text of an answer that is not streamed', () => {
  it('is sent in one piece, before the end', async () => {
    const stream = new JobStream(false);
    stream.writeStart(7);
    stream.write(textDelta('Hel'));
    stream.write(textDelta('lo'));
    expect(await nextOf(stream)).toEqual(started);
    const next = nextOf(stream);
    expect(await isResolved(next)).toBe(false);
    stream.writeEnd(end);
    expect(await next).toEqual(delta('Hello'));
    expect(await all(stream)).toEqual([end]);
  });

  it('is sent in pieces of the maximum length as soon as one is full, and none is lost', async () => {
    const stream = new JobStream(false);
    const texts = Array.from({ length: 30 }, (_, index) => String(index % 10).repeat(1000));
    const seen: string[] = [];
    for (const text of texts) {
      stream.write(textDelta(text));
      if (!stream.isFull) continue;
      const event = await nextOf(stream);
      if (event?.type === 'text-delta') seen.push(event.text);
    }
    stream.writeEnd(end);
    seen.push(...(await textsOf(stream)));
    expect(seen.join('')).toBe(texts.join(''));
    expect(seen.slice(0, -1).every(({ length }) => length === maxDeltaLength)).toBe(true);
  });
});

it.each([
  [true, 0],
  [true, 1],
  [false, 0],
  [false, 1],
])('A surrogate pair is never split (streamed: %p, units before the pairs: %d)', async (isStreamed, before) => {
  const text = 'x'.repeat(before) + '👩'.repeat(maxDeltaLength);
  const stream = new JobStream(isStreamed);
  stream.write(textDelta(text));
  stream.writeEnd(end);
  const pieces = await textsOf(stream);
  expect(pieces.join('')).toBe(text);
  expect(pieces.filter((piece) => Buffer.from(piece).toString() !== piece)).toEqual([]);
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(maxDeltaLength);
});

describe('Back-pressure', () => {
  it('begins when the buffered text reaches its limit, and ends when some of it is read', async () => {
    const stream = streamOf('x'.repeat(maxHeldLength - 1));
    expect(stream.isFull).toBe(false);
    expect(await isResolved(stream.room())).toBe(true);
    stream.write(textDelta('x'));
    expect(stream.isFull).toBe(true);
    const room = stream.room();
    expect(await isResolved(room)).toBe(false);
    await stream.next();
    await room;
    expect(stream.isFull).toBe(false);
  });

  it.each<[string, (stream: JobStream) => unknown]>([
    ['ends', (stream) => stream.writeEnd(end)],
    ['has lost its reader', (stream) => stream.return()],
  ])('ends once the job %s', async (_, happens) => {
    const stream = streamOf('x'.repeat(maxHeldLength));
    const room = stream.room();
    await happens(stream);
    await room;
    expect(stream.isFull).toBe(false);
  });

  it.each([1, 2, 3, 4])(
    'loses nothing and stays within its limit, whichever side is faster (seed %d)',
    async (seed) => {
      const random = randomNumbers(seed);
      const stream = new JobStream(seed % 2 === 0);
      const written: string[] = [];
      let heldLength = 0;
      let mostHeldLength = 0;
      const writing = (async () => {
        for (let index = 0; index < 600; index++) {
          const text = String.fromCharCode(97 + (index % 26)).repeat(Math.ceil(random() ** 4 * 2000));
          written.push(text);
          stream.write(textDelta(text));
          heldLength += text.length;
          mostHeldLength = Math.max(mostHeldLength, heldLength);
          if (stream.isFull) await stream.room();
          if (random() < 0.02) await settled(1);
        }
        stream.writeEnd(end);
      })();
      const read: string[] = [];
      for await (const event of stream) {
        if (event.type !== 'text-delta') continue;
        read.push(event.text);
        heldLength -= event.text.length;
        if (random() < 0.5) await settled(5);
      }
      await writing;
      expect(read.join('')).toBe(written.join(''));
      expect(mostHeldLength).toBeGreaterThanOrEqual(maxHeldLength);
      expect(mostHeldLength).toBeLessThan(maxHeldLength + 2000 + maxDeltaLength); // the reader has one event
    },
  );
});

describe('Passages, searches, and the starts of calls', () => {
  const passage = { type: 'passage', passage: { cited_text: 'x'.repeat(1000) } } as const;

  it('fill the buffer like text, and the writer goes on when a slow reader has taken some', async () => {
    const stream = new JobStream(true);
    let written = 0;
    while (!stream.isFull && written < 1000) {
      stream.write(passage);
      written++;
    }
    expect(written).toBeLessThanOrEqual(maxHeldLength / 1000);
    const room = stream.room();
    expect(await isResolved(room)).toBe(false);
    expect(await nextOf(stream)).toEqual(passage);
    await room;
    stream.writeEnd(end);
    expect(await all(stream)).toEqual([...Array(written - 1).fill(passage), end]);
  });

  it('leave an empty buffer behind', async () => {
    const stream = new JobStream(true);
    for (let round = 0; round < 100; round++) {
      for (const event of [passage, { type: 'passage', passage: null } as const]) stream.write(event);
      stream.write({ type: 'call-start', id: 'call_1', name: 'weather' });
      stream.write(textDelta('Hi'));
      for (let read = 0; read < 4; read++) await nextOf(stream);
      expect(stream.isFull).toBe(false);
    }
  });
});
