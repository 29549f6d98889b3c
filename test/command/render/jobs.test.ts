import { renderJobs } from '../../../src/command/render/jobs.js';
import { paintFor } from '../../../src/shared/text/paint.js';

const now = Date.UTC(2026, 0, 1, 12);
const paint = paintFor(false);

function ago(seconds: number): string {
  return new Date(now - seconds * 1000).toISOString();
}

describe('the list of jobs', () => {
  it('shows those that run with client, operation, model and age, and who waits', () => {
    const job = { job: 7, client: 'user ada', operation: 'ask' as const, model: 'opus', started_at: ago(12) };
    const slots = { max: 4, running: [job, { ...job, job: 12, client: null, model: null, started_at: ago(1) }] };
    const queue = { max: 100, waiting: 3, clients: [{ client: 'key bob', waiting: 3, oldest_since: ago(70) }] };
    const background = { max: 1000, waiting: 12, running: 1 };
    expect(renderJobs({ slots, queue, background_jobs: background }, now, paint)).toEqual([
      'running  2 of 4 slots',
      '  job  client    operation  model    for',
      '  7    user ada  ask        opus     12 s',
      '  12   –         ask        default  1 s',
      'waiting  3 of 100',
      '  client   jobs  oldest for',
      '  key bob  3     1 min 10 s',
      'background  12 of 1,000 waiting, 1 running',
    ]);
  });

  it('says so where there are none, and nothing of what an older service does not tell', () => {
    const none = { slots: { max: 1, running: [] }, queue: { max: 0, waiting: 0, clients: [] } };
    expect(renderJobs(none, now, paint)).toEqual(['running  0 of 1 slot', 'waiting  0 of 0']);
  });

  it('keeps one job in one line, whatever the server calls its client', () => {
    const job = {
      job: 7,
      client: 'user a\n  8    key admin',
      operation: 'ask' as const,
      model: 'x\ny',
      started_at: ago(1),
    };
    const queue = { max: 100, waiting: 0, clients: [] };
    const lines = renderJobs({ slots: { max: 4, running: [job] }, queue }, now, paint);
    expect(lines.join('\n').split('\n')).toHaveLength(lines.length);
    expect(lines.filter((line) => line.includes('key admin'))).toHaveLength(1);
  });
});
