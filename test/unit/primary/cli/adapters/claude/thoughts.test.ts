import { ClaudeDecoder } from '../../../../../../src/primary/cli/adapters/claude/decoder.js';
import { ClaudeWriter } from '../../../../../../src/primary/cli/adapters/claude/writer.js';
import { plainLaunch, type Turn, type TurnEvent } from '../../../../../../src/primary/cli/contract/adapter.js';

function read(writer: ClaudeWriter, ...events: readonly object[]): TurnEvent[] {
  const decoder = new ClaudeDecoder(writer);
  decoder.begin(1);
  const lines = events.map((event) => `${JSON.stringify({ type: 'stream_event', event, parent_tool_use_id: null })}\n`);
  return [...decoder.read(lines.join(''))].filter(({ type }) => type !== 'model-named') as TurnEvent[];
}

function block(content_block: object, ...deltas: readonly object[]): object[] {
  return [
    { type: 'content_block_start', index: 0, content_block },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index: 0, delta })),
    { type: 'content_block_stop', index: 0 },
  ];
}

const start = { type: 'message_start', message: { model: 'claude-test' } };
const thinking = (text: string) => ({ type: 'thinking_delta', thinking: text });
const signature = { type: 'signature_delta', signature: 'proof' };
const empty = { type: 'thinking', thinking: '', signature: '' };

describe('The thoughts of claude', () => {
  it('are read with their signature, beside the text, in the order of their blocks', () => {
    const events = read(
      new ClaudeWriter(new Set()),
      start,
      ...block(empty, thinking('Let me '), thinking('see.'), signature),
      ...block({ type: 'redacted_thinking', data: 'sealed' }),
      ...block({ type: 'text', text: '' }, { type: 'text_delta', text: 'Hi' }),
    );
    expect(events).toEqual([
      { type: 'thought-delta', text: 'Let me ' },
      { type: 'thought-delta', text: 'see.' },
      { type: 'thought-end', signature: 'proof' },
      { type: 'thought-end', redacted: 'sealed' },
      { type: 'text-delta', text: 'Hi' },
    ]);
  });

  it('have only a signature if the API omits their text', () => {
    expect(read(new ClaudeWriter(new Set()), start, ...block(empty, signature))).toEqual([
      { type: 'thought-end', signature: 'proof' },
    ]);
  });

  it('have no signature of an abandoned message after the message is streamed again', () => {
    const [opening, delta, sign] = block(empty, thinking('Well'), signature) as [object, object, object];
    expect(
      read(new ClaudeWriter(new Set()), start, opening, delta, sign, start, ...block(empty, thinking('No'))),
    ).toEqual([
      { type: 'thought-delta', text: 'Well' },
      { type: 'thought-delta', text: 'No' },
      { type: 'thought-end' },
    ]);
  });
});

describe('A claude turn', () => {
  const turn = (more: Partial<Turn> = {}): Turn => ({ ...plainLaunch(null), text: 'Hi', history: [], ...more });
  const shown = (text: string) => /"thinking_display":("?\w+"?)/.exec(text)?.[1] ?? null;

  it('requests the text of the thoughts if its client shows them, and turns this off for the next turn', () => {
    const writer = new ClaudeWriter(new Set());
    const asked = [{ thinking: 'summarized' }, { thinking: 'summarized' }, {}, { thinking: 'omitted' }] as const;
    const texts = asked.map((more, index) => writer.write(turn(more), index + 1).text);
    expect(texts.map(shown)).toEqual(['"summarized"', null, 'null', null]);
  });

  it('is answered even by a version without that setting', () => {
    const writer = new ClaudeWriter(new Set());
    const decoder = new ClaudeDecoder(writer);
    const [line = ''] = writer.write(turn({ thinking: 'summarized' }), 1).text.split('\n');
    const { request_id } = JSON.parse(line) as { request_id: string };
    decoder.begin(1);
    const refusal = { type: 'control_response', response: { subtype: 'error', request_id, error: 'Unknown' } };
    expect([...decoder.read(`${JSON.stringify(refusal)}\n`)]).toEqual([]);
  });
});
