import { filledFrame } from '../../../../src/shared/text/answer-frame.js';

describe('JSON around an answer', () => {
  it('gets its text and slices escaped, and its value on one line', () => {
    const answer = '{"a":\n["\\n"]}';
    const frame = [
      '{"text":"',
      { type: 'slice', from: 0, to: null },
      '","end":"',
      { type: 'slice', from: 5, to: 7 },
      '","value":',
      { type: 'value' },
      '}',
    ] as const;
    const filled = filledFrame(frame, answer);
    expect(filled).not.toContain('\n');
    expect(JSON.parse(filled)).toEqual({ text: answer, end: '\n[', value: { a: ['\n'] } });
  });
});
