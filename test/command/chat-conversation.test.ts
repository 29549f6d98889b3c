import { ChatConversation } from '../../src/command/chat-conversation.js';
import type { Client } from '../../src/command/client.js';
import type { CommandArguments, CommandContext } from '../../src/command/command.js';

function hintFor(id: string | undefined): string {
  const args = { value: (name: string) => (name === 'conversation' ? id : undefined) };
  return new ChatConversation({} as Client, args as CommandArguments, {} as CommandContext).resumeHint;
}

describe('The hint how to go on with a conversation', () => {
  it('can be pasted into a shell, whatever the server calls the conversation', () => {
    expect(hintFor('V1StGXR8_Z5jdHi6B-myT')).toBe(
      'To continue: prompt-relay chat --conversation V1StGXR8_Z5jdHi6B-myT',
    );
    expect(hintFor("x'; rm -rf ~\u001b[8m")).toBe(
      "To continue: prompt-relay chat --conversation 'x'\\''; rm -rf ~[8m'",
    );
    expect(hintFor(undefined)).toBe('There is no conversation to continue.');
  });
});
