import { JobReasons, type NamedRoute } from '../../../../src/features/why/reasons.js';
import type { Route } from '../../../../src/primary/cli/route.js';
import { refusedEnd } from '../../../../src/primary/jobs/job-end.js';
import { RelayError } from '../../../../src/shared/errors.js';
import { loginOf } from '../../../support/agents/logins.js';

const claude: NamedRoute = { cli: loginOf('claude', { name: 'work' }), label: 'opus' };
const codex: NamedRoute = { cli: loginOf('codex'), label: null };
const request = { client: 'key ada' as const, requestId: 'r1', model: 'opus', conversationId: null };
const direct = { route: claude, passed: [] };

function createReasons(): JobReasons {
  return new JobReasons(() => ({ all: 4, taken: 4, byClient: 1 }));
}

describe('The reasons of a job', () => {
  it('name its route with the rule, each cause of its wait once, and the end of the wait', () => {
    const reasons = createReasons();
    const trace = reasons.beginJob(request, direct);
    trace.waits?.(3, 'slot');
    trace.waits?.(2, 'slot');
    trace.waits?.(2, 'client');
    trace.waited(65_000, null);
    expect(reasons.reasonsOf('key ada', 'r1')).toEqual([
      'claude with the account work answers it as opus, because the request names it.',
      'It waited at place 3, because it was not its turn for a slot (4 of 4 slots were taken, 1 of them by its client).',
      'It waited at place 2, because its client had as many running jobs as it may have.',
      'It got its slot after 1 min 5 s.',
    ]);
  });

  it('name a group whose reserved slots a job waits for, once', () => {
    const sentence = '2 slots are reserved for the group bio101 until noon, and its jobs go first.';
    const reasons = new JobReasons(
      () => ({ all: 4, taken: 4, byClient: 1 }),
      ({ client }) => (client === 'key ada' ? [sentence] : []),
    );
    const trace = reasons.beginJob(request, direct);
    trace.waits?.(1, 'client');
    expect(reasons.reasonsOf('key ada', 'r1')).not.toContain(sentence);
    trace.waits?.(1, 'slot');
    trace.waits?.(1, 'slot');
    expect(reasons.reasonsOf('key ada', 'r1').slice(-1)).toEqual([sentence]);
  });

  it('name what was refused: other models, and the wait itself', () => {
    const reasons = createReasons();
    const passed = [{ route: claude, reason: 'quota' as const }];
    const trace = reasons.beginJob({ ...request, model: null }, { route: codex, passed });
    trace.waited(10, refusedEnd(new RelayError('queue_timeout', 'too long')));
    trace.reroute(claude as unknown as Route);
    expect(reasons.reasonsOf('key ada', 'r1')).toEqual([
      'opus was passed over, because its quota was used up.',
      'codex answers it, because it is the next model that may answer.',
      'It ended after less than a second without a slot: queue_timeout.',
      'claude with the account work answers it as opus after another route could not answer, or a better one was free.',
    ]);
  });

  it('are known only to the client of the job, in a bounded number, and for the newest jobs', () => {
    const reasons = createReasons();
    for (let at = 0; at < 2001; at++) {
      const trace = reasons.beginJob({ ...request, requestId: `r${at}` }, direct);
      for (let ms = 0; ms < 100; ms++) trace.waited(ms * 1000, null);
    }
    expect([reasons.reasonsOf('key ada', 'r0'), reasons.reasonsOf('key bob', 'r1')]).toEqual([[], []]);
    expect(reasons.reasonsOf('key ada', 'r2000')).toHaveLength(12);
  });
});
