import { renderOwnJobs, renderShownJob } from '../../../src/command/render/own-jobs.js';
import { paintFor } from '../../../src/shared/text/paint.js';

const now = Date.UTC(2026, 0, 1, 12);
const paint = paintFor(false);

function ago(seconds: number): string {
  return new Date(now - seconds * 1000).toISOString();
}

const waits = {
  job_id: 'abc',
  operation: 'ask' as const,
  status: 'queued' as const,
  position: 3,
  created_at: ago(70),
  started_at: null,
  ended_at: null,
};
const ended = {
  ...waits,
  job_id: 'def',
  operation: 'chat' as const,
  status: 'succeeded' as const,
  position: null,
  created_at: ago(100),
  started_at: ago(90),
  ended_at: ago(50),
};

describe('the background jobs of the caller', () => {
  it('are a line each, with the place of those that wait', () => {
    expect(renderOwnJobs([waits, ended], true, now, paint)).toEqual([
      'yours  2 or more, 1 of them open',
      '  id   operation  status           age',
      '  abc  ask        queued, place 3  1 min 10 s',
      '  def  chat       succeeded        1 min 40 s',
    ]);
  });

  it('are not spoken of where there are none', () => {
    expect(renderOwnJobs([], false, now, paint)).toEqual([]);
  });

  it('keep to their lines, whatever the server calls them', () => {
    const lines = renderOwnJobs([{ ...waits, job_id: 'a\n  x  \u001b[2J' }], false, now, paint);
    expect(lines.join('\n').split('\n')).toHaveLength(3);
    expect(lines.join('')).not.toContain('\u001b');
  });
});

it('one background job is shown with its times', () => {
  const request_id = 'r';
  expect(renderShownJob({ ...ended, request_id }, now, paint)).toEqual([
    'id         def',
    'operation  chat',
    'status     succeeded',
    'sent       1 min 40 s ago',
    'waited     10 s',
    'ran        40 s',
  ]);
  expect(renderShownJob({ ...waits, request_id }, now, paint).at(-1)).toBe('waited     1 min 10 s');
});
