import { AnswerBody } from '../../../src/worker/answer/answer-body.js';
import { AnswerText } from '../../../src/worker/answer/answer-text.js';
import { SpillFolder } from '../../../src/worker/answer/spill-folder.js';
import { temporaryFolder } from '../../support/folder.js';
import { LogBook } from '../../support/log-book.js';

/** Holds what JSON escapes, two and three bytes long characters, and a pair of surrogates. */
const line = '"quoted" \\ tab\t \u2028 ü € 😀 \u0000\n';

function chatOf(text: string) {
  return { success: true, response: text, message: { role: 'assistant', content: text }, model: 'eliza' };
}

async function joined(pieces: AsyncIterable<string | Buffer>): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const piece of pieces) all.push(Buffer.from(piece));
  return Buffer.concat(all);
}

describe('The body of an answer', () => {
  it.each<[string, string]>([
    ['short', line],
    ['long', line.repeat(4000)],
  ])('is the JSON of the same body with the text in it: %s', async (_, whole) => {
    await using folder = await temporaryFolder();
    await using text = new AnswerText(new SpillFolder(folder.path, new LogBook()));
    for (let at = 0; at < whole.length; at += 5000) await text.add(whole.slice(at, at + 5000));
    const body = new AnswerBody((mark) => JSON.stringify(chatOf(mark)), text);
    const written = await joined(body.pieces());
    expect(written.length).toBe(body.bytes);
    expect(JSON.parse(written.toString())).toEqual(chatOf(whole));
    expect(body.short).toBe(whole === line ? written.toString() : null);
  });
});
