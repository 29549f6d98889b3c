import { CodexThread } from '../../../../../../src/primary/cli/adapters/codex/thread.js';
import type { Turn } from '../../../../../../src/primary/cli/contract/adapter.js';
import { plainTurn, threadResult } from '../../../../../support/codex-lines.js';

interface Sent {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

function sent(text: string | null): readonly Sent[] {
  return (text ?? '').split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Sent]));
}

function open(turn: Turn) {
  const thread = new CodexThread(new Map([['gpt-5.5', 'low']]));
  const [asked] = sent(thread.write(turn).text);
  return { thread, asked, told: sent(thread.started(threadResult)) };
}

const image = { mediaType: 'image/png', data: 'AAAA', at: 2 } as const;

describe('The thread of a conversation', () => {
  it('is told the model and the system text, and nothing of tools or the host', () => {
    const { asked } = open({ ...plainTurn, model: 'gpt-5.5', system: 'Be brief.' });
    expect(asked).toMatchObject({
      method: 'thread/start',
      params: {
        ephemeral: true,
        approvalPolicy: 'never',
        sandbox: 'read-only',
        environments: [],
        baseInstructions: '',
        developerInstructions: 'Be brief.',
        model: 'gpt-5.5',
      },
    });
    expect(Object.keys(open(plainTurn).asked?.params ?? {})).not.toContain('developerInstructions');
  });

  it('gets the messages before in their roles, then the turn', () => {
    const history = [
      { role: 'user', text: 'A cat', images: [image] },
      { role: 'assistant', text: 'Yes' },
    ] as const;
    const { told } = open({ ...plainTurn, text: 'And now?', history });
    expect(told.map(({ method }) => method)).toEqual(['thread/inject_items', 'turn/start']);
    expect(told[0]?.params.items).toEqual([
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'A ' },
          { type: 'input_image', image_url: 'data:image/png;base64,AAAA' },
          { type: 'input_text', text: 'cat' },
        ],
      },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Yes' }] },
    ]);
    expect(told[1]?.params.input).toEqual([{ type: 'text', text: 'And now?', text_elements: [] }]);
  });

  it('tells images where they stand in the text, whatever their order', () => {
    const images = [
      { ...image, at: 3 },
      { ...image, at: 0, data: 'BBBB' },
    ];
    const { told } = open({ ...plainTurn, text: 'abc', images });
    expect(told[0]?.params.input).toEqual([
      { type: 'image', url: 'data:image/png;base64,BBBB' },
      { type: 'text', text: 'abc', text_elements: [] },
      { type: 'image', url: 'data:image/png;base64,AAAA' },
    ]);
  });

  it('is told a schema and an effort with each turn, and after an effort the usual one', () => {
    const { thread, told } = open({ ...plainTurn, effort: 'high', schema: '{"type":"object"}' });
    expect(told[0]?.params).toMatchObject({ effort: 'high', outputSchema: { type: 'object' } });
    expect(thread.asksForValue).toBe(true);
    const [next] = sent(thread.write(plainTurn).text);
    expect(next?.params).toMatchObject({ threadId: 'thread-1', effort: 'low' });
    expect(thread.asksForValue).toBe(false);
    const never = open(plainTurn);
    expect(Object.keys(sent(never.thread.write(plainTurn).text)[0]?.params ?? {})).toEqual(['threadId', 'input']);
  });
});
