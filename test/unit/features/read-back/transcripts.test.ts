import { JsonTranscript, MarkdownTranscript, written } from '../../../../src/features/read-back/transcripts.js';
import { conversationMessages } from '../../../../src/shared/api/conversations.js';
import type { TranscriptPart } from '../../../../src/shared/ipc/protocol.js';
import { assistant, user } from '../../../support/doors/sdk-messages.js';
import { onePartAtATime } from '../../../support/stores/transcripts.js';

type Format = Parameters<typeof written>[1];

async function textOf(format: Format, parts: readonly TranscriptPart[]): Promise<string> {
  let text = '';
  for await (const piece of written(onePartAtATime(parts), format)) text += piece;
  return text;
}

async function bodyOf(...parts: readonly TranscriptPart[]) {
  const text = await textOf(new JsonTranscript('some-id', 'some-request'), parts);
  return conversationMessages.parse(JSON.parse(text));
}

async function linesOf(...parts: readonly TranscriptPart[]): Promise<string[]> {
  return (await textOf(new MarkdownTranscript('some-id'), parts)).split(/\r\n?|\n/);
}

const begun = { conversation_id: 'some-id', request_id: 'some-request' };
const say = (role: 'system' | 'user' | 'assistant', ...texts: string[]): TranscriptPart[] => [
  { type: 'message', role },
  ...texts.map((text) => ({ type: 'text', text }) as const),
];

describe('A conversation as JSON', () => {
  it('has its messages in order, and no system text if there is none', async () => {
    const messages = [user('one'), assistant('eins'), user('two'), assistant('')];
    const parts = [...say('user', 'o', 'ne'), ...say('assistant', 'eins'), ...say('user', 'two'), ...say('assistant')];
    expect(await bodyOf(...parts)).toEqual({ ...begun, system: null, messages });
  });

  it('has the model and the usage of an answer, if they are known', async () => {
    const nothing = { inputTokens: null, outputTokens: null, costUsd: null };
    const answer = (model: string | null, usage: object): TranscriptPart[] => [
      { type: 'message', role: 'assistant', figures: { model, usage: { ...nothing, ...usage } } },
      { type: 'text', text: 'x' },
    ];
    const priced = answer('a "model"', { inputTokens: 5, costUsd: 0 });
    const { messages } = await bodyOf(...priced, ...answer('eliza', {}), ...answer(null, { outputTokens: 1 }));
    expect(messages).toEqual([
      assistant('x', { model: 'a "model"', usage: { input_tokens: 5, output_tokens: null, cost_usd: 0 } }),
      assistant('x', { model: 'eliza' }),
      assistant('x', { usage: { input_tokens: null, output_tokens: 1 } }),
    ]);
  });

  it('has its system text, and each text unchanged, whatever it contains', async () => {
    const odd = '"\\\n\r\u0000\u2028😀</script>","messages":[]}';
    const parts = [...say('system', odd, odd), ...say('user', odd), ...say('assistant', odd)];
    expect(await bodyOf(...parts)).toEqual({ ...begun, system: odd + odd, messages: [user(odd), assistant(odd)] });
  });

  it('has the documents of its messages', async () => {
    const name = 'a "b".pdf';
    const pdf: TranscriptPart[] = [
      { type: 'document', mediaType: 'application/pdf', name, bytes: 3 },
      { type: 'image-data', data: 'QUJD' },
    ];
    const image: TranscriptPart[] = [
      { type: 'image', mediaType: 'image/png', bytes: 1 },
      { type: 'image-data', data: 'QQ==' },
    ];
    const files = [{ name, media_type: 'application/pdf', data: 'QUJD' }];
    const images = [{ media_type: 'image/png', data: 'QQ==' }];
    expect((await bodyOf(...say('user', 'a'), ...pdf, ...pdf)).messages).toEqual([
      { ...user('a'), files: [...files, ...files] },
    ]);
    expect((await bodyOf(...say('user', 'a'), ...image, ...pdf, ...say('user', 'b'))).messages).toEqual([
      { ...user('a'), images, files },
      user('b'),
    ]);
  });

  it('has the images of its messages', async () => {
    const image = (mediaType: 'image/png' | 'image/webp', ...pieces: string[]): TranscriptPart[] => [
      { type: 'image', mediaType, bytes: 3 },
      ...pieces.map((data) => ({ type: 'image-data', data }) as const),
    ];
    const parts = [...say('user', 'look'), ...image('image/png', 'QU', 'JD'), ...image('image/webp', 'QQ==')];
    const images = [
      { media_type: 'image/png', data: 'QUJD' },
      { media_type: 'image/webp', data: 'QQ==' },
    ];
    const messages = [{ ...user('look'), images }, assistant('seen')];
    expect(await bodyOf(...parts, ...say('assistant', 'seen'))).toEqual({ ...begun, system: null, messages });
    expect((await bodyOf(...parts)).messages).toEqual(messages.slice(0, 1));
  });
});

describe('A conversation as Markdown', () => {
  it('has a heading for each role, followed by the text', async () => {
    const image: TranscriptPart = { type: 'image', mediaType: 'image/png', bytes: 1234 };
    const asked = [...say('system', 'Be kind.'), ...say('user', 'Look at', ' this'), image];
    expect(await linesOf(...asked, ...say('assistant', 'I see.'))).toEqual([
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

  it('has the messages that were added to an answer at their places, and says whether the user has ended it', async () => {
    const usage = { inputTokens: null, outputTokens: null, costUsd: null };
    const additions = [
      { at: 3, text: 'In one\nword.' },
      { at: 7, text: 'Please.' },
    ];
    const figures = { model: null, usage, additions, isInterrupted: true } as const;
    const answer: TranscriptPart[] = [
      { type: 'message', role: 'assistant', figures },
      ...['Le', 't me', ' s'].map((text) => ({ type: 'text', text }) as const),
    ];
    expect(await linesOf(...say('user', 'Why?'), ...answer, ...say('user', 'Go on.'))).toEqual([
      ...['# Conversation some-id', '', '## User', '', '> Why?', ''],
      ...['## Assistant', '', '> Let', '', '## User', '', '> In one', '> word.', ''],
      ...['## Assistant', '', '>  me ', '', '## User', '', '> Please.', '', '## Assistant', '', '> s', ''],
      ...['*The user has ended this answer early.*', '', '## User', '', '> Go on.', ''],
    ]);
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
