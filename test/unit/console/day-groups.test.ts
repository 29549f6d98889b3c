import { consoleParts } from '../../support/clients/console-parts.js';

interface Parts {
  dayGroupText(time: string | number, now: number): string;
  rowTimeText(time: string | number, now: number): string;
  splitThoughts(text: string): { readonly thoughts: string; readonly answer: string } | null;
}

const parts = consoleParts<Parts>('base/format.mjs', 'ui/answer.mjs');

describe('The heading of a day in a list', () => {
  it.each([
    [new Date(2026, 10, 27, 0, 1), 'Today'],
    [new Date(2026, 10, 28, 9), 'Today'], // the clock of the service may be ahead
    [new Date(2026, 10, 26, 23, 59), 'Yesterday'],
    [new Date(2026, 10, 25, 12), 'Previous 7 days'],
    [new Date(2026, 10, 20, 0), 'Previous 7 days'],
    [new Date(2026, 10, 19, 23), 'Previous 30 days'],
    [new Date(2026, 8, 30), 'September 2026'],
  ])('for %s is %s on 27 November 2026', async (time, group) => {
    const { dayGroupText } = await parts;
    expect(dayGroupText(time.getTime(), new Date(2026, 10, 27, 12).getTime())).toBe(group);
  });
});

describe('The time in a row of a list', () => {
  it.each([
    [new Date(2026, 10, 27, 0, 1), '00:01'],
    [new Date(2026, 10, 26, 23, 59), '23:59'],
    [new Date(2026, 10, 25, 9, 5), '25 Nov, 09:05'],
    [new Date(2026, 8, 3, 9, 5), '3 Sept, 09:05'],
  ])('for %s is %s on 27 November 2026, because a heading names the rest', async (time, text) => {
    const { rowTimeText } = await parts;
    expect(rowTimeText(time.getTime(), new Date(2026, 10, 27, 12).getTime())).toBe(text);
  });
});

describe('The thoughts before an answer', () => {
  it.each([
    ['Just an answer with <think> in it', null],
    ['<think>Well', { thoughts: 'Well', answer: '' }],
    ['\n<think>\nWell\n</think>\n\nYes.', { thoughts: 'Well', answer: 'Yes.' }],
    ['<thinking></thinking>Yes.', { thoughts: '', answer: 'Yes.' }],
  ])('are separated from it: %j', async (text, split) => {
    expect((await parts).splitThoughts(text)).toEqual(split);
  });
});
