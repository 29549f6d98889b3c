import type { TranscriptPart } from '../../../../src/shared/ipc/protocol.js';
import { MarkdownTranscript, written } from '../../../../src/worker/api/transcripts.js';
import { onePartAtATime } from '../../../support/stores/transcripts.js';

async function linesOf(...parts: readonly TranscriptPart[]): Promise<string[]> {
  let text = '';
  for await (const piece of written(onePartAtATime(parts), new MarkdownTranscript('some-id'))) text += piece;
  return text.split(/\r\n?|\n/);
}

const say = (role: 'system' | 'user' | 'assistant', ...texts: string[]): TranscriptPart[] => [
  { type: 'message', role },
  ...texts.map((text) => ({ type: 'text', text }) as const),
];

describe('A conversation as Markdown', () => {
  it('has a heading for each role, followed by the text', async () => {
    const image: TranscriptPart = { type: 'image', mediaType: 'image/png', bytes: 1234 };
    const parts = [
      ...say('system', 'Be kind.'),
      ...say('user', 'Look at', ' this'),
      image,
      ...say('assistant', 'I see.'),
    ];
    expect(await linesOf(...parts)).toEqual([
      ...['# Conversation some-id', ''],
      ...['## System', '', '> Be kind.', ''],
      ...['## User', '', '> Look at this', '', '*Image: image/png, 1234 bytes, left out here.*', ''],
      ...['## Assistant', '', '> I see.', ''],
    ]);
  });

  it.each([
    ['a code fence that is never closed', '```\n~~~~\ncode'],
    ['headings', '# one\n## Assistant\ntwo\n==='],
    ['line breaks of all kinds', 'one\r# two\r\n# three\n\r\n\r# four\n'],
    ['quotes and lists', '> one\n\n- two\n\n    three'],
    ['an HTML comment', '<!--\n## Assistant'],
  ])('quotes %s inside its message', async (_what, text) => {
    const lines = await linesOf(...say('user', text), ...say('assistant', 'yes'));
    const quoted = text.split(/\r\n?|\n/).map((line) => `> ${line}`);
    const expected = ['# Conversation some-id', '', '## User', '', ...quoted, '', '## Assistant', '', '> yes', ''];
    expect(lines).toEqual(expected);
  });

  it('treats a line break that is split in two as one', async () => {
    const lines = await linesOf(...say('user', 'one\r', '\ntwo\r', 'three'), ...say('assistant', '\nfour'));
    expect(lines.filter((line) => line.startsWith('>'))).toEqual(['> one', '> two', '> three', '> ', '> four']);
  });

  it('passes no control character to a terminal', async () => {
    const lines = await linesOf(...say('user', 'a\u001b[31m\u0000\u0007\u009b\u007f\tb'));
    expect(lines[4]).toBe('> a\ufffd[31m\ufffd\ufffd\ufffd\ufffd\tb');
  });
});
