import {
  type CallOrResult,
  callsOfResults,
  checkCalls,
  foreignParts,
  foreignTypes,
  imageOfUrl,
  instructed,
  isOfUnknownModel,
  joined,
  lastOfUser,
  type SentPiece,
  stopSequences,
  textAt,
} from '../../../../src/features/doors/messages.js';
import { type ErrorCode, RelayError } from '../../../../src/shared/errors.js';
import type { Message } from '../../../../src/shared/job.js';
import { imageOf, type Part } from '../../../../src/worker/jobs/message-parts.js';
import { png } from '../../../support/doors/sdk-messages.js';

const image = { mediaType: 'image/png', data: png } as const;
const picture: Part = { type: 'image', ...image };
const user = (value: string, ...at: number[]): Message => said('user', value, at);
const model = (value: string): Message => ({ role: 'assistant', text: value });

function said(role: Message['role'], value: string, at: readonly number[]): Message {
  return at.length === 0
    ? { role, text: value }
    : { role, text: value, images: at.map((each) => ({ ...image, at: each })) };
}

function faultOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof RelayError) return error.message;
    throw error;
  }
  return 'none';
}

it('The texts of a system are joined without empty ones', () => {
  expect(joined(['', 'a', ' \n', 'b'])).toBe('a\n\nb');
  expect(joined(['', '  '])).toBeUndefined();
});

describe('A conversation', () => {
  it('is split before its last message', () => {
    expect(lastOfUser([user('a'), model('b'), user('c')], 'messages')).toEqual({
      question: user('c'),
      history: [user('a'), model('b')],
    });
    expect(lastOfUser([user('', 0)], 'messages')).toEqual({ question: user('', 0), history: [] });
  });

  it.each([
    ['holds nothing', []],
    ['ends with the model', [user('a'), model('b')]],
    ['ends with a blank message', [user('a'), model('b'), user(' \n')]],
    ['ends with an empty message after another', [user('a'), user('')]],
  ])('is rejected if it %s', (_, messages) => {
    expect(faultOf(() => lastOfUser(messages, 'input'))).toMatch(/^input: must (contain|end with) a message/);
  });
});

describe('An image', () => {
  it('is validated by its type and its first bytes', () => {
    expect(imageOf('image/png', png, 'here')).toEqual(picture);
    expect(imageOfUrl(`data:image/png;base64,${png}`, 'here')).toEqual(picture);
    expect(imageOfUrl(`DATA:IMAGE/PNG;base64,${png}`, 'here')).toEqual(picture);
  });

  it.each(['charset=utf-8;', 'name="a b.png";', ''])(
    'may have parameters and line breaks in its data URL: %j',
    (more) => {
      const split = png.replace(/.{20}/g, '$&\r\n');
      expect(imageOfUrl(`data:image/png;${more}base64,${split}`, 'here')).toEqual(picture);
      expect(imageOf('image/png', split, 'here')).toEqual(picture);
    },
  );

  it.each([
    ['of another type', `data:image/jpeg;base64,${png}`, 'here: is not a file of the type image/jpeg'],
    ['of no type of ours', `data:image/tiff;base64,${png}`, 'here: must be one of image/png'],
    ['of text', `data:text/plain;base64,${png}`, 'here: must be one of image/png'],
    ['that is not base64', 'data:image/png;base64,?', 'here: must be base64'],
    ['without base64', 'data:image/png,abc', 'here: must be a data URL'],
    ['elsewhere', 'https://example.com/a.png', 'here: must be a data URL with base64: images are not fetched'],
    ['of nothing', '', 'here: must be a data URL'],
    ['that is empty', 'data:image/png;base64,', 'here: must be base64'],
  ])('is rejected if it is one %s', (_, url, message) => {
    expect(faultOf(() => imageOfUrl(url, 'here'))).toContain(message);
  });
});

describe('A text', () => {
  it('has U+FFFD in place of NUL and lone surrogates', () => {
    expect(textAt('a\0b\ud83dc\udc4d😀', 'here')).toBe('a\ufffdb\ufffdc\ufffd😀');
  });

  it('is accepted unchanged, even empty', () => {
    expect(['', 'ä😀\n'].map((each) => textAt(each, 'here'))).toEqual(['', 'ä😀\n']);
  });

  it.each([
    [undefined, 'here: must be sent'],
    [5, 'here: must be a string'],
  ])('is rejected if it is %j', (value, message) => {
    expect(faultOf(() => textAt(value, 'here'))).toBe(message);
  });
});

it('Stop sequences are limited in number and length', () => {
  expect(stopSequences.safeParse(Array.from({ length: 16 }, () => 'x'.repeat(500))).success).toBe(true);
  expect(stopSequences.safeParse(Array.from({ length: 17 }, () => 'x')).success).toBe(false);
  expect(stopSequences.safeParse(['x'.repeat(501)]).success).toBe(false);
});

it('A model is unknown only if the request named one', () => {
  const fault = (message: string, path = 'model', code: ErrorCode = 'validation_error') =>
    isOfUnknownModel(new RelayError(code, message, { details: [{ path, message }] }));
  expect([fault('must be one of a, b'), fault('no such model', 'model', 'not_found')]).toEqual([true, true]);
  const others = [
    fault('must be sent'),
    fault('must be a string'),
    fault('bad', 'n'),
    fault('bad', 'model', 'timeout'),
  ];
  expect(others).toEqual([false, false, false, false]);
});

describe('The calls of results', () => {
  it.each<[string, string]>([
    ['have the key of the result', 'a=1 b=2 a:x b:y → x1 y2'],
    ['are in the order of the results if they share a key', 'a=1 a=2 a:x a:y → x1 y2'],
    ['may come after results of earlier calls with this key', 'a=1 a:x a=2 a:y → x1 y2'],
    ['are the last ones for more results', 'a=1 a=2 a:x a:y a:z → x1 y2 z2'],
    ['are none for a result before its call', 'a:x a=1 b:y → '],
  ])('%s', (_, steps) => {
    const [sent = '', found] = steps.split(' → ');
    const parts = sent.split(' ').map((step): CallOrResult<string, string> => {
      const [key, call] = step.split('=');
      return call === undefined ? { key: step[0], result: step.slice(2) } : { key, call };
    });
    expect([...callsOfResults(parts)].map(([result, call]) => result + call).join(' ')).toBe(found);
  });
});

describe('The calls in a history', () => {
  const calls = (...ids: string[]): Message => ({
    ...model(''),
    calls: ids.map((id) => ({ id, name: 'a', input: '{}' })),
  });
  const results = (...ids: string[]): Message => ({
    ...user(''),
    results: ids.map((id) => ({ id, text: 'x', isError: false })),
  });
  const hi = user('Hi');

  it.each([
    ['the next message, in any order', [hi, calls('1', '2'), results('2', '1'), calls('1'), results('1')]],
    ['it even if they share one id, if there are as many', [hi, calls('1', '1', '2'), results('1', '2', '1')]],
  ])('have their results in %s', (_, messages) => {
    expect(() => checkCalls(messages, 'messages')).not.toThrow();
  });

  it.each<[string, readonly Message[], string]>([
    ['a result is missing', [hi, calls('1', '2'), results('1')], 'missing for 2'],
    ['all results are missing', [hi, calls('1'), hi], 'missing for 1'],
    ['a result has no call', [hi, calls('1'), results('1', '3')], 'missing for 3'],
    ['results have no calls at all', [results('4')], 'missing for 4'],
    ['a result comes twice', [hi, calls('1'), results('1', '1')], 'only one result with the id 1'],
    ['two calls with one id have one result', [hi, calls('1', '1'), results('1')], 'missing for 1'],
    [
      'many results have no call',
      [hi, calls('1'), results('1', ...'abcdefgh')],
      'missing for a, b, c, d, e and others',
    ],
    ['an id is empty', [hi, calls(''), results('')], 'an id of 1 to 256 characters'],
  ])('are rejected if %s', (_, messages, message) => {
    expect(() => checkCalls(messages, 'messages')).toThrow(message);
  });
});

describe('The instructions of a client', () => {
  const note = (instruction: string): SentPiece => ({ instruction });
  const said = (message: Message): SentPiece => ({ message });
  const user = (text: string): SentPiece => said({ role: 'user', text });
  const model = (text: string): SentPiece => said({ role: 'assistant', text });
  const results = (...texts: readonly string[]): SentPiece =>
    said({ role: 'user', text: '', results: texts.map((text, index) => ({ id: `${index}`, text, isError: false })) });
  const set = (text: string) => `<system-reminder>\n${text}\n</system-reminder>`;

  /** Returns a line for each text and result in the messages. */
  function lines(spoken: readonly Message[]): string[] {
    return spoken.flatMap(({ role, text, results = [] }) => [
      ...results.map((each) => `${each.id}: ${each.text}`),
      ...(text === '' ? [] : [`${role}: ${text}`]),
    ]);
  }

  it.each<[string, readonly SentPiece[], readonly string[], readonly string[]]>([
    ['before everything are the system text', [note('a'), note('b'), user('Hi')], ['a', 'b'], ['user: Hi']],
    [
      'before an answer are the system text',
      [user('Hi'), note('a'), model('Yes')],
      ['a'],
      ['user: Hi', 'assistant: Yes'],
    ],
    ['of a conversation without an answer are the system text', [user('Hi'), note('a')], ['a'], ['user: Hi']],
    [
      'after an answer stand at their places, set apart from what the user says',
      [note('a'), model('Yes'), note('b'), user('So?'), note('c')],
      ['a'],
      ['assistant: Yes', `user: ${set('b')}`, 'user: So?', `user: ${set('c')}`],
    ],
    [
      'that are set apart stay as they are',
      [model('Yes'), note(set('b'))],
      [],
      ['assistant: Yes', `user: ${set('b')}`],
    ],
    [
      'behind results belong to the last of them, which needs no text of its own',
      [model('Yes'), results('one', 'two'), note('b'), model('No'), results(''), note('c')],
      [],
      ['assistant: Yes', '0: one', `1: two\n\n${set('b')}`, 'assistant: No', `0: ${set('c')}`],
    ],
    ['that are blank are none', [model('Yes'), results('one'), note(' \n')], [], ['assistant: Yes', '0: one']],
  ])('%s', (_, all, instructions, spoken) => {
    const found = instructed(all);
    expect([found.instructions, lines(found.spoken)]).toEqual([instructions, spoken]);
  });

  it('have their positions in a request that continues an answer', () => {
    const { instructions, spoken } = instructed([note('a'), user('So?')], true);
    expect(instructions).toEqual([]);
    expect(lines(spoken)).toEqual([`user: ${set('a')}`, 'user: So?']);
  });

  it('do not modify the messages', () => {
    const all = [model('Yes'), results('one'), note('b')];
    const before = structuredClone(all);
    instructed(all);
    expect(all).toEqual(before);
  });

  it('may be thousands of messages', () => {
    const all = Array.from({ length: 20_000 }, () => [model('Yes'), note('b')]).flat();
    expect(instructed(all).spoken).toHaveLength(40_000);
  });
});

describe('A message part that only another provider supports', () => {
  const source = { type: 'text', media_type: 'text/plain', data: 'a page' };
  const page = { title: 'Rain', url: 'https://example.com', encrypted_content: 'x' };

  it.each<[string, object]>([
    ['', { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'rain' } }],
    [
      'Rain (https://example.com)',
      { type: 'web_search_tool_result', content: [{ ...page, type: 'web_search_result' }] },
    ],
    ['out\n\nerr', { type: 'code_execution_tool_result', content: { stdout: 'out', stderr: 'err', return_code: 0 } }],
    ['a page', { type: 'web_fetch_tool_result', content: { url: 'x', content: { type: 'document', source } } }],
    ['so far', { type: 'compaction', content: 'so far' }],
    ['a file', { type: 'mcp_tool_result', content: [{ type: 'text', text: 'a file' }] }],
    ['done', { type: 'mcp_call', name: 'run', arguments: '{}', output: 'done' }],
    ['42', { type: 'code_interpreter_call', code: 'print(42)', outputs: [{ type: 'logs', logs: '42' }] }],
    ['found', { type: 'file_search_call', results: [{ filename: 'a', text: 'found' }] }],
    ['', { type: 'image_generation_call', result: 'iVBORw0KGgo' }],
    ['', { type: 'document', title: 'A', source: { type: 'base64', data: 'JVBERi0' } }],
    ['a\ufffd', { type: 'text_of_tomorrow', text: 'a\0' }],
  ])('is replaced by its text %j', (text, part) => {
    expect(foreignParts({ ...part }, 'nothing')).toEqual(text === '' ? [] : [{ type: 'text', text }]);
  });

  it('without a text is omitted, replaced by a note, or rejected', () => {
    const part = { type: 'document' };
    expect(foreignParts(part, 'a-note')).toEqual([{ type: 'text', text: '(document: not shown)' }]);
    expect(foreignParts(part, 'refused')).toBeNull();
  });

  it('is listed once by its type', () => {
    const parts = ['text', 'compaction', 'compaction', 'a b'].map((type) => ({ type }));
    const known = new Set(['text']);
    const types = ['compaction', '(odd name)'].map((type) => `messages.content.${type}`);
    expect(foreignTypes('messages.content', parts, known)).toEqual(types);
  });
});
