import { conversationMessages } from '../../../../src/shared/api/conversations.js';
import type { TranscriptPart } from '../../../../src/shared/ipc/protocol.js';
import { JsonTranscript, written } from '../../../../src/worker/api/transcripts.js';
import { assistant, user } from '../../../support/doors/sdk-messages.js';
import { onePartAtATime } from '../../../support/stores/transcripts.js';

async function bodyOf(...parts: readonly TranscriptPart[]) {
  let text = '';
  for await (const piece of written(onePartAtATime(parts), new JsonTranscript('some-id', 'some-request')))
    text += piece;
  return conversationMessages.parse(JSON.parse(text));
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
