import { CodexThread } from '../../../../src/features/codex/thread.js';
import type { ToolOffer, Turn } from '../../../../src/primary/cli/contract/adapter.js';
import { plainTurn, threadResult } from '../../../support/agents/codex-lines.js';

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
  it('gets the model and the system text, and nothing about tools or the host', () => {
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

  it('gets the earlier messages in their roles, then the turn', () => {
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

  it('gets images at their places in the text, whatever their order', () => {
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

  it('is replaced by a new one with the whole conversation if a turn adds or drops tools', () => {
    const tools = [{ name: 'note', description: '', schema: '{}' }];
    const offer: ToolOffer = { tools, choice: 'auto', isParallel: true };
    const { thread } = open(plainTurn);
    const heard = [
      { role: 'user', text: 'Hello' },
      { role: 'assistant', text: 'Hi' },
    ] as const;
    const [asked] = sent(thread.write({ ...plainTurn, text: 'Note.', offer, heard }).text);
    expect(asked).toMatchObject({ method: 'thread/start', params: { dynamicTools: [{ name: 'note' }] } });
    const [history, turn] = sent(thread.started({ ...threadResult, thread: { id: 'thread-2' } }));
    expect([history?.params, turn?.params]).toMatchObject([
      { threadId: 'thread-2', items: [{ role: 'user' }, { role: 'assistant' }] },
      { threadId: 'thread-2', input: [{ text: 'Note.' }] },
    ]);
    expect(sent(thread.write({ ...plainTurn, offer }).text).map(({ method }) => method)).toEqual(['turn/start']);
    const [without] = sent(thread.write(plainTurn).text);
    expect(without?.method).toBe('thread/start');
    expect(without?.params).not.toHaveProperty('dynamicTools');
  });

  it('fails a turn that lacks the results its program waits for, instead of waiting forever', () => {
    const { thread } = open(plainTurn);
    thread.tools.calls.called('call_A');
    expect(() => thread.write(plainTurn)).toThrow('waits for the results of its calls');
    thread.tools.calls.requested('call_A', 7);
    expect(thread.write({ ...plainTurn, results: [{ id: 'call_A', text: 'done', isError: false }] }).text).toContain(
      'done',
    );
  });

  it('gets a schema and an effort with each turn, and the default effort after a turn with another', () => {
    const { thread, told } = open({ ...plainTurn, effort: 'high', schema: '{"type":"object"}' });
    expect(told[0]?.params).toMatchObject({ effort: 'high', outputSchema: { type: 'object' } });
    expect(thread.asksForValue).toBe(true);
    const [next] = sent(thread.write(plainTurn).text);
    expect(next?.params).toMatchObject({ threadId: 'thread-1', effort: 'low' });
    expect(thread.asksForValue).toBe(false);
    const never = open(plainTurn);
    expect(Object.keys(sent(never.thread.write(plainTurn).text)[0]?.params ?? {})).toEqual(['threadId', 'input']);
  });

  it('requests a summary of its thoughts if the turn shows them, and none in the next turn that does not', () => {
    const { thread, told } = open({ ...plainTurn, thinking: 'summarized' });
    const summaryOf = (turn: Turn) => sent(thread.write(turn).text)[0]?.params.summary;
    expect(told[0]?.params.summary).toBe('auto');
    expect(summaryOf({ ...plainTurn, thinking: 'summarized' })).toBe('auto');
    expect(summaryOf({ ...plainTurn, thinking: 'omitted' })).toBe('none');
    expect(summaryOf(plainTurn)).toBeUndefined();
    expect(open(plainTurn).told[0]?.params).not.toHaveProperty('summary');
  });
});
