import { maxRecordedBytes, type RecordedAnswer } from '../../../../src/shared/ipc/idempotency.js';
import { Recording } from '../../../../src/worker/http/recording.js';

const head = { status: 200, headers: {}, error: null };

function open(isKept = true) {
  const kept: RecordedAnswer[] = [];
  const recording = new Recording(async (answer) => {
    kept.push(answer);
    return isKept;
  });
  return { kept, recording };
}

async function* pieces(count: number, piece: string, taken: string[] = []) {
  for (let n = 0; n < count; n++) {
    taken.push(piece);
    yield piece;
  }
}

describe('A recording', () => {
  it('has the bytes as they were sent, a character that came in two pieces included', async () => {
    const { kept, recording } = open();
    const horse = Buffer.from('🐎');
    recording.add('a ');
    recording.add(horse.subarray(0, 2));
    recording.add(horse.subarray(2));
    await recording.addAll(pieces(2, '!'));
    expect(await recording.finish(head)).toBe(true);
    expect(kept).toEqual([{ ...head, body: 'a 🐎!!' }]);
  });

  it('says whether it was kept', async () => {
    expect(await open(false).recording.finish(head)).toBe(false);
  });

  it('takes an answer of the largest size, and no larger one', async () => {
    const [fits, not] = [open(), open()];
    fits.recording.add('x'.repeat(maxRecordedBytes));
    not.recording.add('x'.repeat(maxRecordedBytes));
    not.recording.add('y');
    not.recording.add('z');
    expect([await fits.recording.finish(head), await not.recording.finish(head)]).toEqual([true, false]);
    expect([fits.kept.length, not.kept.length]).toEqual([1, 0]);
  });

  it('reads no more of an answer than it can use', async () => {
    const { recording } = open();
    const taken: string[] = [];
    await recording.addAll(pieces(100, 'x'.repeat(maxRecordedBytes / 2), taken));
    expect(taken).toHaveLength(3);
    expect(await recording.finish(head)).toBe(false);
  });
});
