import { endOf, StreamedMessage } from '../../../../../../src/primary/cli/adapters/claude/message.js';

/** Part of a message: a text, a complete call, a cut call, or a call that the CLI itself answers. */
type Part = 'text' | 'call' | 'cut' | 'unended' | 'own' | 'cut own' | 'cut, ended own';

function messageOf(stopReason: string | null, ...parts: readonly Part[]): StreamedMessage {
  const message = new StreamedMessage();
  for (const part of parts) {
    if (part === 'text') message.hasText = true;
    else if (part.endsWith('own')) message.startOwnCall(true);
    else message.startCall('toolu_1', 'note');
    message.addInput(/^cut/.test(part) ? '{"who"' : '{"who":1}');
    if (part !== 'unended' && part !== 'cut own') message.endBlock();
  }
  message.endMessage({
    stop_reason: stopReason,
    stop_sequence: 'END',
    stop_details: { category: 'cyber', explanation: null },
  });
  return message;
}

const calls = [{ id: 'toolu_1', name: 'note', input: '{"who":1}' }];
const live = { details: { calls }, isLive: true };
const ended = { details: { calls }, isLive: false };
const whole = { details: {}, isLive: false };
const stopped = { details: { stopSequence: 'END' }, isLive: false };
const short = { details: { isCutShort: true }, isLive: false };
const shortWithCalls = { details: { calls, isCutShort: true }, isLive: false };
const refusal = { category: 'cyber', explanation: null };
const refused = { details: { refusal }, isLive: false };
const refusedWithCalls = { details: { calls, refusal }, isLive: false };
const contents: readonly (readonly Part[])[] = [['text'], ['call'], ['cut'], ['call', 'cut'], []];

describe('The end of a claude message', () => {
  it.each([
    ['end_turn', [null, live, short, ended, null]],
    ['tool_use', [whole, live, short, ended, null]],
    ['pause_turn', [null, live, short, ended, whole]],
    ['stop_sequence', [null, live, stopped, ended, stopped]],
    ['max_tokens', [short, shortWithCalls, short, shortWithCalls, short]],
    ['model_context_window_exceeded', [short, shortWithCalls, short, shortWithCalls, short]],
    ['refusal', [refused, refusedWithCalls, refused, refusedWithCalls, refused]],
    ['a reason of tomorrow', [null, live, short, ended, whole]],
    [null, [null, live, short, ended, whole]],
  ])('with the stop reason %s is decided by its blocks', (stopReason, expected) => {
    expect(contents.map((parts) => endOf(messageOf(stopReason, ...parts)))).toEqual(expected);
  });

  it('does not include a call whose block is incomplete', () => {
    expect(endOf(messageOf('max_tokens', 'text', 'unended'))).toEqual(short);
    expect(endOf(messageOf('tool_use', 'unended'))).toEqual(short);
  });

  it('is left to the CLI if it calls a native tool, unless that call is cut or the model refuses', () => {
    const reasons = ['tool_use', 'end_turn', 'max_tokens'];
    expect(reasons.map((reason) => endOf(messageOf(reason, 'text', 'own')))).toEqual([null, null, null]);
    expect(endOf(messageOf('max_tokens', 'cut own'))).toEqual(short);
    expect(endOf(messageOf('max_tokens', 'cut, ended own'))).toEqual(short);
    expect(endOf(messageOf('model_context_window_exceeded', 'text', 'cut, ended own'))).toEqual(short);
    expect(endOf(messageOf('tool_use', 'cut, ended own'))).toBeNull();
    expect(endOf(messageOf('refusal', 'own'))).toEqual(refused);
    expect(endOf(messageOf('tool_use', 'own', 'call'))).toEqual(live);
  });
});
