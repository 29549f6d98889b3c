import { renderJobs, renderListedJobs, renderShownJob } from '../../../../src/command/verbs/jobs.js';
import { paintFor } from '../../../../src/shared/text/paint.js';

const now = Date.UTC(2026, 0, 1, 12);
const paint = paintFor(false);

function ago(seconds: number): string {
  return new Date(now - seconds * 1000).toISOString();
}

const idle = { max: 1000, waiting: 0, running: 0 };
const emptyQueue = { max: 0, waiting: 0, clients: [] };

describe('The list of jobs', () => {
  it('shows running jobs with client, operation, model and age, and the waiting clients', () => {
    const one = { job: 7, id: '7-f3Kx82Qa', client: 'user ada', operation: 'ask' as const };
    const job = { ...one, model: 'opus', started_at: ago(12) };
    const nameless = { ...job, job: 12, id: null, client: null, model: null, started_at: ago(1) };
    const slots = { max: 4, running: [job, nameless] };
    const clients = [{ client: 'key bob', waiting: 3, oldest_since: ago(70), reason: 'slot' as const }];
    const queue = { max: 100, waiting: 3, clients };
    const background = { max: 1000, waiting: 12, running: 1 };
    expect(renderJobs({ slots, queue, background_jobs: background }, now, paint)).toEqual([
      ...['running  2 of 4 slots', '  job         client    operation  model    for'],
      ...['  7-f3Kx82Qa  user ada  ask        opus     12 s', '  12          –         ask        default  1 s'],
      ...['waiting  3 of 100', '  client   jobs  oldest for', '  key bob  3     1 min 10 s'],
      'background  12 of 1,000 waiting, 1 running',
    ]);
  });

  it('shows zero if there are none', () => {
    const none = { slots: { max: 1, running: [] }, queue: emptyQueue, background_jobs: idle };
    expect(renderJobs(none, now, paint)).toEqual([
      'running  0 of 1 slot',
      'waiting  0 of 0',
      'background  0 of 1,000 waiting, 0 running',
    ]);
  });

  it('shows each job on one line, even with a hostile client name', () => {
    const hostile = { client: 'user a\n  8    key admin', model: 'x\ny' };
    const job = { job: 7, operation: 'ask' as const, started_at: ago(1), ...hostile };
    const shown = { slots: { max: 4, running: [job] }, queue: emptyQueue, background_jobs: idle };
    const lines = renderJobs(shown, now, paint);
    expect(lines.join('\n').split('\n')).toHaveLength(lines.length);
    expect(lines.filter((line) => line.includes('key admin'))).toHaveLength(1);
  });
});

const waits = {
  ...{ job_id: 'abc', background: true, title: 'Sum up', position: 3 },
  ...{ operation: 'ask' as const, status: 'queued' as const },
  ...{ created_at: ago(70), started_at: null, ended_at: null },
};
const ended = {
  ...{ ...waits, job_id: 'def', title: 'Sum up all that we have said on this day, please', position: null },
  ...{ operation: 'chat' as const, status: 'succeeded' as const },
  ...{ created_at: ago(100), started_at: ago(90), ended_at: ago(50) },
};

describe('The jobs of the caller', () => {
  it('are one line each, with the position of waiting jobs', () => {
    expect(renderListedJobs('yours', [waits, ended], true, now, paint)).toEqual([
      'yours  2 or more, 1 open',
      '  id   operation         status           age         asked',
      '  abc  ask, background   queued, place 3  1 min 10 s  Sum up',
      '  def  chat, background  succeeded        1 min 40 s  Sum up all that we have said on this da…',
    ]);
  });

  it('are distinguished: open requests and background jobs', () => {
    const open = { ...waits, job_id: '7-f3Kx82Qa', background: false };
    expect(renderListedJobs('yours', [open, { ...waits, background: true }], false, now, paint).slice(2)).toEqual([
      '  7-f3Kx82Qa  ask              queued, place 3  1 min 10 s  Sum up',
      '  abc         ask, background  queued, place 3  1 min 10 s  Sum up',
    ]);
  });

  it('of all clients have their client, and show which ones an administrator cancelled', () => {
    const status = 'cancelled' as const;
    const all = [{ ...ended, client: 'key bob', status, cancelled_by: 'administrator' as const }];
    expect(renderListedJobs('all', all, false, now, paint)).toEqual([
      'all  1, 0 open',
      '  id   client   operation         status                         age',
      '  def  key bob  chat, background  cancelled by an administrator  1 min 40 s',
    ]);
  });

  it('are omitted if there are none', () => {
    expect(renderListedJobs('yours', [], false, now, paint)).toEqual([]);
  });

  it('stay on their lines, even with hostile text', () => {
    const hostile = { ...waits, job_id: 'a\n  x  \u001b[2J', title: '\u001b[2J\n' };
    const lines = renderListedJobs('yours', [hostile], false, now, paint);
    expect(lines.join('\n').split('\n')).toHaveLength(3);
    expect(lines.join('')).not.toContain('\u001b');
  });
});

it('A single background job is shown with its times', () => {
  const request_id = 'r';
  expect(renderShownJob({ ...ended, request_id }, now, paint)).toEqual([
    ...['id         def', 'asked      Sum up all that we have said on this day, please', 'operation  chat, background'],
    ...['status     succeeded', 'sent       1 min 40 s ago', 'waited     10 s', 'ran        40 s'],
  ]);
  expect(renderShownJob({ ...waits, request_id }, now, paint).at(-1)).toBe('waited     1 min 10 s');
});
