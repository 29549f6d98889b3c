import { readLine } from '../../src/command/chat-words.js';

describe('a line of a chat', () => {
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
  ])('is understood: %j', (line, meant) => {
    expect(readLine(line)).toEqual(meant);
  });
});
