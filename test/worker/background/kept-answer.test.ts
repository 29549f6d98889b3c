import { RelayError } from '../../../src/shared/errors.js';
import type { AnswerBody } from '../../../src/worker/answer/answer-body.js';
import { KeptAnswer } from '../../../src/worker/background/kept-answer.js';
import { answerInPieces } from '../../support/background-view.js';
import { FakePrimary } from '../../support/fake-primary.js';
import { jobDone } from '../../support/job-records.js';

const job = { id: 'some-id', client: 'key ada' };
/** Holds what JSON escapes, two and three bytes long characters, and a pair of surrogates. */
const line = '"quoted" \\ tab\t \u2028 ü € 😀 \u0000\n';
const end = jobDone({ model: 'eliza' });

function open(text: string, length?: number) {
  const primary = new FakePrimary({ jobAnswer: answerInPieces(text, end, length) });
  return { primary, opened: KeptAnswer.open(primary.asPrimary, job) };
}

async function sent(body: AnswerBody): Promise<string> {
  let all = '';
  for await (const piece of body.pieces()) all += String(piece);
  return all;
}

describe('The answer of a background job', () => {
  it.each<[string, string, number]>([
    ['short', line, 5],
    ['long', line.repeat(4000), 16_000],
  ])('is written out as often as the body has it, in whatever pieces it comes: %s', async (name, text, length) => {
    const { opened } = open(text, length);
    const answer = await opened;
    const body = answer.written(false, (told) => JSON.stringify({ ...told, again: [told.text] }));
    expect(JSON.parse(await sent(body))).toEqual({ text, again: [text], end });
    expect(body.short === null).toBe(name === 'long');
    expect(body.bytes).toBeNull();
    if (body.short !== null) expect(JSON.parse(body.short)).toEqual({ text, again: [text], end });
  });

  it('is read from the store as it is sent: of a long one, a reader holds no more than the begin', async () => {
    const { primary, opened } = open('x'.repeat(10_000_000));
    const body = (await opened).written(false, ({ text }) => JSON.stringify({ text }));
    expect(primary.calls.length).toBe(3);
    let count = 0;
    for await (const _ of body.pieces()) if (++count === 10) break;
    expect(primary.calls.length).toBeLessThan(13);
    expect(primary.calls.at(-1)?.request).toMatchObject(job);
  });

  it.each<[string, string]>([
    ['short', '{\n  "a": [1,\r\n 2, "\\n"]\n}'],
    ['long', `{"a": [\n${Array.from({ length: 20_000 }, (_, index) => `"${index}"`).join(',\n')}]}`],
  ])('of a job with a schema is the value as well, on one line: %s', async (_, json) => {
    const { opened } = open(json, 1000);
    const body = (await opened).written(true, ({ text, value }) => JSON.stringify({ text, structured: value }));
    const all = await sent(body);
    expect(JSON.parse(all)).toEqual({ text: json, structured: JSON.parse(json) });
    expect(all).not.toMatch(/[\r\n]/);
  });

  it('has no value where the model has given none', async () => {
    const body = (await open('').opened).written(true, ({ text, value }) => JSON.stringify({ text, value }));
    expect(body.short).toBe('{"text":""}');
  });

  it('is not there where the job is forgotten', async () => {
    const primary = new FakePrimary({ jobAnswer: new RelayError('not_found', 'no such job') });
    await expect(KeptAnswer.open(primary.asPrimary, job)).rejects.toMatchObject({ code: 'not_found' });
  });
});
