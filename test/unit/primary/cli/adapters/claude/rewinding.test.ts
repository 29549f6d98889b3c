import { ClaudeDecoder } from '../../../../../../src/primary/cli/adapters/claude/decoder.js';
import { historyIdOf, turnIdOf } from '../../../../../../src/primary/cli/adapters/claude/line-ids.js';
import { ClaudeWriter, type SettablePart } from '../../../../../../src/primary/cli/adapters/claude/writer.js';
import { type Message, plainLaunch, type Turn } from '../../../../../../src/primary/cli/contract/adapter.js';

const everything: readonly SettablePart[] = ['model', 'system', 'schema', 'effort', 'tools', 'rewinding'];
const firstId = '00000001-0000-4000-8000-000000000000';
const pastId = '00000001-0000-4000-9000-000000000000';
const tool = { name: 'look', description: 'Looks.', schema: '{"type":"object"}' };

function ask(text: string, more: Partial<Turn> = {}): Turn {
  return { ...plainLaunch(null), text, history: [], ...more };
}

function line(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

function answer(id: string, response: object, subtype = 'success') {
  return line({ type: 'control_response', response: { subtype, request_id: id, response } });
}

/** A claude process after its first turn. */
function answered(turn = ask('hello', { system: 'Be brief.' }), settable = everything) {
  const writer = new ClaudeWriter(new Set(settable));
  const decoder = new ClaudeDecoder(writer);
  const text = writer.write(turn, 1);
  decoder.begin(1);
  decoder.read(line({ type: 'result', is_error: false, num_turns: 1, result: 'Hello.' }));
  return { writer, decoder, text };
}

const rewound = { rewound: true, targetMessageUuid: firstId, precedingAssistantUuid: null, prefillText: 'hello' };
const isRewound = answer('rewinding 1 rewinds', rewound);
const isEmpty = answer('rewinding 1 exports', { text: '', default_filename: 'a.txt' });
const delta = { type: 'content_block_delta', delta: { type: 'text_delta', text: 'late' } };
const late = line({ type: 'stream_event', event: delta });

/** The subtypes of the requests and the types of the other lines. */
function kinds(text: string): unknown[] {
  const lines = text.trimEnd().split('\n');
  return lines.map((each) => JSON.parse(each)).map(({ type, request }) => request?.subtype ?? type);
}

describe('The rewinding of a claude process', () => {
  it('has the first user line as its target, names the newest, and exports what is left', () => {
    const { writer, decoder } = answered();
    writer.write(ask('more'), 2);
    decoder.begin(2);
    decoder.read(line({ type: 'result', is_error: false, num_turns: 1, result: 'More.' }));
    const lines = writer
      .renew()
      ?.text.trimEnd()
      .split('\n')
      .map((each) => JSON.parse(each));
    expect(lines).toEqual([
      {
        ...{ type: 'control_request', request_id: 'rewinding 1 rewinds' },
        request: {
          ...{ subtype: 'rewind_conversation', target_message_uuid: firstId },
          last_seen_user_message_uuid: '00000002-0000-4000-8000-000000000000',
        },
      },
      {
        ...{ type: 'control_request', request_id: 'rewinding 1 exports' },
        request: { subtype: 'export_conversation' },
      },
    ]);
  });

  it('has the first line of a replayed history as its target', () => {
    const history = [
      { role: 'user', text: 'one' },
      { role: 'assistant', text: '1' },
      { role: 'user', text: 'two' },
      { role: 'assistant', text: '2' },
    ] as const;
    const { writer } = answered(ask('three', { history }));
    expect(writer.renew()?.text).toContain(`"target_message_uuid":"${pastId}"`);
  });

  it('ends with the proof that nothing is left, in any pieces', () => {
    const { writer, decoder } = answered();
    writer.renew();
    const whole = isRewound + line({ type: 'command_lifecycle', state: 'completed' }) + isEmpty;
    const events = [...whole].flatMap((character) => [...decoder.read(character)]);
    expect(events).toMatchObject([{ type: 'turn-end', text: null }]);
    expect(decoder.isMidAnswer).toBe(false);
  });

  it('passes on a report of the quota in the middle', () => {
    const { writer, decoder } = answered();
    writer.renew();
    const report = { status: 'allowed', rateLimitType: 'five_hour', utilization: 0.5, resetsAt: 1 };
    const events = decoder.read(isRewound + line({ type: 'rate_limit_event', rate_limit_info: report }) + isEmpty);
    expect(events.map(({ type }) => type)).toEqual(['quota-report', 'turn-end']);
  });

  it.each([
    ['nothing was rewound', answer('rewinding 1 rewinds', { rewound: false, reason: 'stale_target' })],
    ['something else was rewound', answer('rewinding 1 rewinds', { ...rewound, targetMessageUuid: pastId })],
    ['an answer is left', answer('rewinding 1 rewinds', { ...rewound, precedingAssistantUuid: pastId })],
    [
      'the CLI does not say whether an answer is left',
      answer('rewinding 1 rewinds', { rewound: true, targetMessageUuid: firstId }),
    ],
    ['the text is still there', isRewound + answer('rewinding 1 exports', { text: 'hello' })],
    ['the export has no text', isRewound + answer('rewinding 1 exports', {})],
    ['the CLI cannot rewind', answer('rewinding 1 rewinds', {}, 'error')],
    ['the CLI cannot export', isRewound + answer('rewinding 1 exports', {}, 'error')],
    ['the export comes first', isEmpty + isRewound],
    ['the answer comes twice', isRewound + isRewound + isEmpty],
    ['the answer is to another request', answer('rewinding 2 rewinds', rewound)],
    ['a delta comes before the proof', isRewound + late + isEmpty],
    ['a message comes before the proof', line({ type: 'assistant', message: { model: 'm', content: [] } })],
    ['a tool returns before the proof', line({ type: 'user', message: { content: [] } })],
    ['a turn ends before the proof', line({ type: 'result', is_error: false, num_turns: 1, result: 'hello' })],
    [
      'the CLI wants something',
      line({ type: 'control_request', request_id: '1', request: { subtype: 'can_use_tool' } }),
    ],
  ])('fails if %s', (_, output) => {
    const { writer, decoder } = answered();
    writer.renew();
    expect(decoder.read(output)[0]).toMatchObject({ type: 'turn-failed', reason: 'other' });
  });

  it.each([
    ['a second answer', isEmpty],
    ['a late answer of an earlier rewinding', isRewound],
    ['a delta', late],
  ])('is followed by nothing: %s makes the process unusable', (_, output) => {
    const { writer, decoder } = answered();
    writer.renew();
    decoder.read(isRewound + isEmpty);
    const events = decoder.read(output);
    expect(events.length > 0 || decoder.isMidAnswer).toBe(true);
    expect(events.map(({ type }) => type)).not.toContain('turn-end');
  });

  it('is not possible before a turn, twice without a turn, or in a version that does not know it', () => {
    expect(new ClaudeWriter(new Set(everything)).renew()).toBeNull();
    const { writer, decoder } = answered();
    writer.renew();
    decoder.read(isRewound + isEmpty);
    expect(writer.renew()).toBeNull();
    const old = answered(ask('hello'), ['model', 'system']);
    expect(old.writer.renew()).toBeNull();
  });

  it.each<[string, Partial<Turn>]>([
    ['the model could search the web', { search: { maxUses: 1 } }],
    ['the prompt cache has a time to live', { cache: { restLength: 0, ttl: '1h' } }],
  ])('is not possible if %s', (_, more) => {
    expect(answered(ask('hello', more)).writer.renew()).toBeNull();
  });

  it('is not possible while the CLI waits for the results of calls', () => {
    const { writer } = answered(ask('hello', { offer: { tools: [tool], choice: 'auto', isParallel: true } }));
    writer.tools.calls.called('toolu_1');
    expect(writer.renew()).toBeNull();
  });
});

/** Messages of a conversation: two questions with their answers. */
const talk = [
  { role: 'user', text: 'What is *one*?' },
  { role: 'assistant', text: '# One\n\n- the **first** number\n\n```js\nconst one = 1;\n```' },
  { role: 'user', text: 'And two?' },
  { role: 'assistant', text: 'Two.' },
] as const;
const kept = talk.slice(0, 2);
/** Export of the first two messages, as the terminal shows them. */
const shown = '\n> What is *one*?\n\n* One\n\n  - the first nu\n  mber\n\n  const one = 1;\n';

describe('The rewinding of a claude process to an earlier message', () => {
  /** A process after three turns, of which two were replayed if `isReplayed`. */
  function afterThree(isReplayed = false) {
    const third = isReplayed ? ask('three', { history: talk }) : ask('three', { history: [], heard: talk });
    if (isReplayed) return answered(third);
    const process = answered(ask(talk[0].text));
    for (const [number, turn] of [[2, ask(talk[2].text, { heard: kept })] as const, [3, third] as const]) {
      process.writer.write(turn, number);
      process.decoder.begin(number);
      process.decoder.read(line({ type: 'result', is_error: false, num_turns: 1, result: 'Yes.' }));
    }
    return process;
  }

  const targetId = '00000002-0000-4000-8000-000000000000';
  const cut = { ...rewound, targetMessageUuid: targetId, precedingAssistantUuid: pastId };
  const isCut = answer('rewinding 1 rewinds', cut);
  const isLeft = answer('rewinding 1 exports', { text: shown });

  it.each([
    ['the user line after them', false, targetId],
    ['the replayed user line after them', true, '00000002-0000-4000-9000-000000000000'],
  ])('has as its target %s', (_, isReplayed, target) => {
    const text = afterThree(isReplayed).writer.rewind(kept)?.text ?? '';
    expect(kinds(text)).toEqual(['rewind_conversation', 'export_conversation']);
    expect(text).toContain(`"target_message_uuid":"${target}"`);
  });

  it('ends with the proof that exactly they are left', () => {
    const { writer, decoder } = afterThree();
    writer.rewind(kept);
    expect(decoder.read(isCut + isLeft)).toMatchObject([{ type: 'turn-end', text: null }]);
    expect(decoder.isMidAnswer).toBe(false);
  });

  it.each([
    [
      'the whole text is still there',
      isCut + answer('rewinding 1 exports', { text: `${shown}> And two?\n* Two.\n> three\n* Yes.` }),
    ],
    ['too much is left', isCut + answer('rewinding 1 exports', { text: `${shown}> And two?` })],
    ['too little is left', isCut + answer('rewinding 1 exports', { text: '> What is *one*?' })],
    ['nothing is left', answer('rewinding 1 rewinds', { ...cut, precedingAssistantUuid: null })],
    ['an empty conversation is exported', isCut + isEmpty],
    ['another text is left', isCut + answer('rewinding 1 exports', { text: shown.replace('first', 'last') })],
    ['another message was the target', answer('rewinding 1 rewinds', { ...cut, targetMessageUuid: firstId })],
    ['nothing was rewound', answer('rewinding 1 rewinds', { rewound: false, reason: 'stale_target' })],
    ['the export comes first', isLeft + isCut],
    ['the answer comes twice', isCut + isCut + isLeft],
    ['a delta comes before the proof', isCut + late + isLeft],
  ])('fails if %s', (_, output) => {
    const { writer, decoder } = afterThree();
    writer.rewind(kept);
    expect(decoder.read(output)[0]).toMatchObject({ type: 'turn-failed', reason: 'other' });
  });

  it.each([
    ['a second answer', isLeft],
    ['a late answer', isCut],
    ['a delta', late],
  ])('is followed by nothing: %s makes the process unusable', (_, output) => {
    const { writer, decoder } = afterThree();
    writer.rewind(kept);
    decoder.read(isCut + isLeft);
    const events = decoder.read(output);
    expect(events.length > 0 || decoder.isMidAnswer).toBe(true);
    expect(events.map(({ type }) => type)).not.toContain('turn-end');
  });

  it('has ids that differ in their first 24 characters, of which the CLI compares no more', () => {
    const ids = [turnIdOf(1), turnIdOf(0x10), historyIdOf(1), historyIdOf(0x10)].map((id) => id.slice(0, 24));
    expect(new Set(ids).size).toBe(4);
  });

  it('leaves the lines before as targets: the process can be rewound again, and to its start', () => {
    const { writer, decoder } = afterThree();
    writer.rewind(kept);
    decoder.read(isCut + isLeft);
    const rest = [
      { role: 'user', text: 'Two, then?' },
      { role: 'assistant', text: 'Well.' },
    ] as const;
    const { text } = writer.write(ask('four', { heard: kept, history: rest }), 4);
    expect(kinds(text)).toEqual(['user']);
    expect(writer.rewind(kept)?.text).toContain('"target_message_uuid":"00000001-0000-4000-9000-000000000000"');
    expect(writer.renew()?.text).toContain(`"target_message_uuid":"${firstId}"`);
    expect(writer.renew()?.text).toContain('"last_seen_user_message_uuid":"00000004-0000-4000-8000-000000000000"');
  });

  it('gives replayed answers other ids than the messages that are left', () => {
    const { writer, decoder } = afterThree();
    writer.rewind(kept);
    decoder.read(isCut + isLeft);
    const rest = [
      { role: 'user', text: 'Two, then?' },
      { role: 'assistant', text: 'Well.' },
    ] as const;
    const { rest: parts = [] } = writer.write(ask('four', { heard: kept, history: rest }), 4);
    expect([...parts].join('')).toContain('msg_replay_3');
  });

  it.each<[string, readonly Message[]]>([
    ['messages that end with no user line', talk.slice(0, 3)],
    ['more messages than the process has', [...talk, ...talk, ...talk]],
    ['an image', [{ ...talk[0], images: [{ mediaType: 'image/png', data: '', at: 0 }] }, talk[1]]],
    ['a call of a tool', [talk[0], { ...talk[1], calls: [{ id: '1', name: 'look', input: '{}' }] }]],
    ['a message without letters and digits', [talk[0], { role: 'assistant', text: '👍' }]],
    ['a question that the CLI exports with a gap', [{ role: 'user', text: 'a'.repeat(10_001) }, talk[1]]],
    ['a text that is too long to compare', [talk[0], { role: 'assistant', text: 'a'.repeat(131_073) }]],
  ])('is not possible, and changes nothing, if it would leave %s', (_, messages) => {
    expect(afterThree().writer.rewind(messages)).toBeNull();
  });

  it('is not possible after a web search, while the CLI waits for results, or in a version that does not know it', () => {
    const searching = answered(ask('hello', { search: { maxUses: 1 } }));
    searching.writer.write(ask('more', { heard: kept }), 2);
    const waiting = afterThree();
    waiting.writer.tools.calls.called('toolu_1');
    const old = answered(ask('three', { history: talk }), ['model']);
    for (const { writer } of [searching, waiting, old]) expect(writer.rewind(kept)).toBeNull();
  });
});

describe('The interruption of a claude process', () => {
  function midTurn() {
    const writer = new ClaudeWriter(new Set(everything));
    const decoder = new ClaudeDecoder(writer);
    writer.write(ask('hello'), 1);
    decoder.begin(1);
    decoder.read(line({ type: 'stream_event', event: delta }));
    return { writer, decoder };
  }

  const end = (more: object = {}) => line({ type: 'result', is_error: true, num_turns: 1, result: '', ...more });

  it('drops the rest of the answer, and ends with the end of the turn', () => {
    const { writer, decoder } = midTurn();
    expect(kinds(writer.interrupt()?.text ?? '')).toEqual(['interrupt']);
    expect(decoder.read(late + answer('rewinding 1 interrupts', {}) + late)).toEqual([]);
    expect(decoder.read(end())).toMatchObject([{ type: 'turn-end' }]);
    expect(decoder.isMidAnswer).toBe(false);
    expect(writer.renew()?.text).toContain('rewinding 2 rewinds');
  });

  it('ends with an answer of the CLI if the turn has ended before', () => {
    const { writer, decoder } = answered();
    expect(kinds(writer.interrupt()?.text ?? '')).toEqual(['get_settings']);
    expect(decoder.read(answer('rewinding 1 interrupts', {}))).toMatchObject([{ type: 'turn-end' }]);
  });

  it('does not let the next question pay for the interrupted one', () => {
    const { writer, decoder } = midTurn();
    writer.interrupt();
    decoder.read(end({ total_cost_usd: 0.5 }));
    writer.renew();
    decoder.read(answer('rewinding 2 rewinds', rewound) + answer('rewinding 2 exports', { text: '' }));
    writer.write(ask('next'), 2);
    decoder.begin(2);
    const next = { type: 'result', is_error: false, num_turns: 1, result: 'Hi.', total_cost_usd: 0.75 };
    expect(decoder.read(line(next))).toMatchObject([{ type: 'turn-end', usage: { costUsd: 0.25 } }]);
  });

  it('is not possible in a version that cannot be rewound, or while the CLI waits for results', () => {
    expect(answered(ask('hello'), ['model']).writer.interrupt()).toBeNull();
    const { writer } = answered(ask('hello', { offer: { tools: [tool], choice: 'auto', isParallel: true } }));
    writer.tools.calls.called('toolu_1');
    expect(writer.interrupt()).toBeNull();
  });
});

describe('The first turn after a rewinding', () => {
  function renewed(turn?: Turn) {
    const process = answered(turn);
    process.writer.renew();
    process.decoder.read(isRewound + isEmpty);
    return process.writer;
  }

  it('has the system text, schema and tools of the process without sending them again', () => {
    const offer = { tools: [tool], choice: 'auto', isParallel: true } as const;
    const turn = ask('hello', { system: 'Be brief.', schema: '{"type":"object"}', offer });
    expect(kinds(renewed(turn).write(turn, 2).text)).toEqual(['user']);
  });

  it.each<[string, Partial<Turn>]>([
    ['another system text', { system: 'Be long.' }],
    ['no system text', { system: null }],
    ['a schema', { schema: '{"type":"object"}' }],
    ['tools', { offer: { tools: [tool], choice: 'auto', isParallel: true } }],
  ])('never runs with %s', (_, more) => {
    const writer = renewed();
    expect(() => writer.write(ask('hello', { system: 'Be brief.', ...more }), 2)).toThrow('of another request');
  });

  it('sends another model, effort, limit and sampling, and takes back what the earlier turn had', () => {
    const turn = ask('hello', { model: 'opus', effort: 'low', sampling: { maxTokens: 50, topP: 0.5 } });
    const writer = renewed(turn);
    const { settings } = JSON.parse(writer.write(ask('next'), 2).text.split('\n', 1)[0] ?? '').request;
    expect(settings).toEqual({
      ...{ model: null, effortLevel: null },
      env: { CLAUDE_CODE_EXTRA_BODY: '{}', CLAUDE_CODE_MAX_OUTPUT_TOKENS: '' },
    });
  });

  it('expects no citations of the documents of an earlier question', () => {
    const document = { mediaType: 'text/plain', data: 'YQ==', name: '', at: 0, digest: '', citations: true } as const;
    expect(renewed(ask('hello', { system: 'Be brief.', images: [document] })).hasCitations).toBe(false);
  });
});
