import type { Client } from '../../../../src/command/base/client.js';
import type { CommandArguments, CommandContext } from '../../../../src/command/base/command.js';
import { ChatConversation, readLine } from '../../../../src/command/verbs/chat.js';

describe('A line of a chat', () => {
  it.each([
    ['hello', { type: 'message', text: 'hello' }],
    ['  two  words ', { type: 'message', text: '  two  words ' }],
    ['//etc/passwd is a file', { type: 'message', text: '/etc/passwd is a file' }],
    ['', { type: 'nothing' }],
    ['  ', { type: 'nothing' }],
    ['/exit', { type: 'leave' }],
    [' /quit ', { type: 'leave' }],
    ['/model', { type: 'word', word: '/model', argument: '' }],
    ['/model  opus', { type: 'word', word: '/model', argument: 'opus' }],
    ['/save my talk.md', { type: 'word', word: '/save', argument: 'my talk.md' }],
    ['/sav', { type: 'unknown', word: '/sav' }],
    ['/etc/passwd is a file', { type: 'unknown', word: '/etc/passwd' }],
    ['/', { type: 'unknown', word: '/' }],
  ])('is parsed: %j', (line, meant) => {
    expect(readLine(line)).toEqual(meant);
  });
});

function hintFor(id: string | undefined): string {
  const args = { value: (name: string) => (name === 'conversation' ? id : undefined) };
  return new ChatConversation({} as Client, args as CommandArguments, {} as CommandContext).resumeHint;
}

describe('The hint how to continue a conversation', () => {
  it('can be pasted into a shell, even with a hostile conversation id', () => {
    const resume = 'To resume: prompt-relay chat --conversation';
    expect(hintFor('V1StGXR8_Z5jdHi6B-myT')).toBe(`${resume} V1StGXR8_Z5jdHi6B-myT`);
    expect(hintFor("x'; rm -rf ~\u001b[8m")).toBe(`${resume} 'x'\\''; rm -rf ~[8m'`);
    expect(hintFor(undefined)).toBe('There is no conversation to continue.');
  });
});
