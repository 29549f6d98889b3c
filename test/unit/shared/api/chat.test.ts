import { chatRequest } from '../../../../src/shared/api/chat.js';

const message = 'What is my name?';

describe('A chat request', () => {
  it.each([
    [{ message }],
    [{ message, system: 'Be brief.' }],
    [{ message, conversation_id: 'c-1' }],
    [{ message, conversation_id: 'c-1', model: 'echo', stream: true }],
  ])('is accepted: %j', (body) => {
    expect(chatRequest.parse(body)).toEqual(body);
  });

  it('may have a system text only for a new conversation, and other faults are listed too', () => {
    const { error } = chatRequest.safeParse({ message: '', conversation_id: 'c-1', system: 'Be brief.' });
    expect(error?.issues.map(({ path, message: text }) => `${path.join('.')}: ${text}`)).toEqual([
      'message: must not be empty',
      'system: is only accepted for a new conversation: leave out conversation_id, or system',
    ]);
  });

  it('rejects the older payload', () => {
    expect(chatRequest.safeParse({ messages: [{ role: 'user', content: message }] }).success).toBe(false);
  });
});
