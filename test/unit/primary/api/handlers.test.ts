import type { BackgroundJobs } from '../../../../src/features/background/background-jobs.js';
import type { ClientJobs } from '../../../../src/features/background/client-jobs.js';
import { jobHandlers } from '../../../../src/features/background/primary.js';
import { apiHandlers, type Services } from '../../../../src/primary/api/handlers.js';
import { oneHostGate } from '../../../../src/primary/conversations/turn-gate.js';
import { JobEntry, type JobEntryParts } from '../../../../src/primary/jobs/job-entry.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { invalid, RelayError } from '../../../../src/shared/errors.js';
import type { JobRequest } from '../../../../src/shared/job.js';
import { phases } from '../../../../src/shared/phase.js';
import { jobRequest } from '../../../support/jobs/job-records.js';

const signal = new AbortController().signal;

const noHooks = { handlers: {}, startJob: () => {}, admitBackground: () => {}, mayStore: () => true };

/** Creates handlers with these services. Records the counts and calls in order. */
function createHandlers(services: object = {}) {
  const told: string[] = [];
  const jobMetrics = {
    countDrainRefusal: () => told.push('refused'),
    countBudgetRefusal: () => told.push('refused by its budget'),
    countRateLimited: () => told.push('rate limited'),
  };
  const clientMetrics = { countRefusal: () => told.push('refused client') };
  const catalog = { resolveRequest: (request: JobRequest) => request };
  const clients = { checkAccess: () => {}, countedGroupsOf: () => [], recordPerson: () => {} };
  const figures = { jobMetrics, clients, clientMetrics };
  const base = {
    clock: { now: () => 0 },
    phase: () => 'ready',
    noteActivity: () => {},
    yieldInOrder: async () => {},
    turnGate: oneHostGate,
    catalog,
  };
  const counting = { ...noHooks, countRefusal: (client: string) => told.push(`refused ${client} in features`) };
  const features = { ...counting, ...(services as { readonly features?: object }).features };
  const all = { ...base, ...figures, ...services, features };
  const jobEntry = new JobEntry(all as unknown as JobEntryParts);
  const { background = {} } = all as { readonly background?: object };
  const { accept } = jobHandlers(
    { jobEntry, jobHooks: all.features, yieldInOrder: async () => {} },
    background as BackgroundJobs,
    {} as ClientJobs,
  );
  return { handlers: { ...apiHandlers({ ...all, jobEntry } as unknown as Services), accept }, told };
}

describe('A job that a worker requests', () => {
  it('is run with the signal of its caller', async () => {
    const calls: unknown[] = [];
    const runner = { run: (...call: unknown[]) => calls.push(call) };
    const { handlers, told } = createHandlers({ runner });
    const request = jobRequest();
    await handlers.run(request, signal);
    expect(calls).toEqual([[request, signal]]);
    expect(told).toEqual([]);
  });

  it('has only those groups of its client that have a budget', async () => {
    const jobs: JobRequest[] = [];
    const clients = {
      checkAccess: () => {},
      countedGroupsOf: (_: string, named: string[]) => named.filter((name) => name === 'biology'),
    };
    const { handlers } = createHandlers({ clients, runner: { run: (job: JobRequest) => jobs.push(job) } });
    for (const groups of [['lab', 'biology'], ['lab'], undefined])
      await handlers.run({ ...jobRequest(), ...(groups && { groups }) }, signal);
    expect(jobs.map(({ groups }) => groups)).toEqual([['biology'], undefined, undefined]);
  });

  it.each(phases)('is refused, and counted, if and only if the service drains or has stopped: %s', async (phase) => {
    const runner = { run: () => told.push('run') };
    const { handlers, told } = createHandlers({ phase: () => phase, drainSecondsLeft: () => 7, runner });
    const running = handlers.run(jobRequest(), signal);
    if (phase === 'starting' || phase === 'ready') {
      await running;
      expect(told).toEqual(['run']);
    } else {
      await expect(running).rejects.toMatchObject({ code: 'shutting_down', retryAfterSeconds: 7 });
      expect(told).toEqual(['refused', 'refused key a in features', 'refused client']);
    }
  });

  it('is counted if a worker has refused it', async () => {
    const { handlers, told } = createHandlers({ drainSecondsLeft: () => 7 });
    expect(await handlers.refusedDraining({ client: 'key alice' })).toEqual({ retryAfterSeconds: 7 });
    expect(told).toEqual(['refused', 'refused key alice in features', 'refused client']);
  });

  it.each([
    [new RelayError('concurrency_limited', 'full'), ['refused key a in features', 'refused client']],
    [invalid('prompt', 'is too long'), []],
  ])('is counted for its client if and only if it was refused for lack of space: %s', async (failure, counted) => {
    const run = () => {
      throw failure;
    };
    const { handlers, told } = createHandlers({ runner: { run } });
    await expect(handlers.run(jobRequest(), signal)).rejects.toBe(failure);
    expect(told).toEqual(counted);
  });

  it('is refused, and counted, if the budget of its key is used up, also in the background', async () => {
    const spent = new RelayError('rate_limited', 'used up', { reason: 'budget' });
    const check = () => {
      throw spent;
    };
    const { handlers, told } = createHandlers({ features: { startJob: check } });
    await expect(handlers.run(jobRequest(), signal)).rejects.toBe(spent);
    const form = { route: '/ask', model: null, isStructured: false } as const;
    await expect(handlers.accept({ job: jobRequest(), form })).rejects.toBe(spent);
    const counted = ['refused by its budget', 'refused key a in features', 'refused client'];
    expect(told).toEqual([...counted, ...counted]);
  });

  it.each(['draining', 'ready'])('is admitted in the same order in the background: %s', async (phase) => {
    const steps = () => {
      const taken: string[] = [];
      const take = <T>(step: string, value: T): T => {
        taken.push(step);
        return value;
      };
      const catalog = { resolveRequest: async (request: JobRequest) => take('model', request) };
      const turnGate = { admitting: async (_: JobRequest, admit: () => unknown) => take('gate', admit)() };
      const features = { startJob: () => take('budget', null) };
      const phases = () => take('phase', phase);
      const [runner, background] = [{ run: () => take('run', []) }, { accept: async () => take('run', {}) }];
      const parts = { catalog, turnGate, features, runner, background, phase: phases, drainSecondsLeft: () => 7 };
      return { taken, ...createHandlers(parts) };
    };
    const [caller, later] = [steps(), steps()];
    const form = { route: '/ask', model: null, isStructured: false } as const;
    await Promise.allSettled([
      caller.handlers.run(jobRequest(), signal),
      later.handlers.accept({ job: jobRequest(), form }),
    ]);
    expect(caller.taken).toEqual(['model', 'gate', 'phase', ...(phase === 'ready' ? ['budget', 'run'] : [])]);
    expect([later.taken, later.told]).toEqual([caller.taken, caller.told]);
  });

  it('is refused with the names of the available models, also in the background', async () => {
    const failure = invalid('model', 'is not known');
    const refuse = () => {
      throw failure;
    };
    const knownModels = {
      explain: async ({ code, message }: RelayError, client: ClientText) =>
        new RelayError(code, `${message} to ${client}`),
    };
    const background = { accept: async () => refuse() };
    const { handlers } = createHandlers({ runner: { run: refuse }, background, knownModels });
    await expect(handlers.run(jobRequest(), signal)).rejects.toThrow('model: is not known to key a');
    const accepting = handlers.accept({ job: jobRequest(), form: { route: '/ask', model: null, isStructured: false } });
    await expect(accepting).rejects.toThrow('model: is not known to key a');
  });
});

it.each([
  [true, []],
  [false, ['rate limited', 'refused address 192.0.2.1 in features', 'refused client']],
])('A request from an address is counted if its rate window is used up (allowed: %p)', async (isAllowed, counted) => {
  const verdict = { isAllowed, remaining: 0, resetSeconds: 9 };
  const { handlers, told } = createHandlers({ rateLimit: { takeRequest: async () => verdict } });
  expect(await handlers.rate({ client: 'address 192.0.2.1' })).toEqual(verdict);
  expect(told).toEqual(counted);
});

it('A wrong key is counted for its caller', async () => {
  const { handlers } = createHandlers({ keyAttempts: { recordWrongKey: (caller: ClientText) => caller.length } });
  expect(await handlers.wrongKey({ caller: 'user ada' })).toEqual({ blockedSeconds: 8 });
});

describe('The health', () => {
  it('is sent as text, with whether the service is usable', async () => {
    const { handlers } = createHandlers({ status: { health: () => ({ status: 'ok' }), isUsable: true } });
    expect(await handlers.health({ withPids: true })).toEqual({ text: '{"status":"ok"}', isUsable: true });
  });

  it('is the one after the check if a check is forced', async () => {
    const status = { health: () => ({ status: status.isUsable ? 'ok' : 'degraded' }), isUsable: false };
    const recheck = async () => {
      status.isUsable = true;
    };
    const records: unknown[] = [];
    const features = { handlers: {}, beforeAct: async (act: unknown) => void records.push(act) };
    const { handlers } = createHandlers({ status, recheck, features });
    const by = { client: 'key root' as const, isAdmin: true, requestId: 'r' };
    expect(await handlers.recheck({ by })).toEqual({ text: '{"status":"ok"}', isUsable: true });
    expect(records).toEqual([{ act: 'health_rechecked', by: 'key root', target: null, request_id: 'r' }]);
  });

  it('has a history since a given time', async () => {
    const { handlers } = createHandlers({ status: { history: (since: number | null) => ({ since }) } });
    expect(await handlers.history({ since: 5, withPids: true })).toEqual({ since: 5 });
  });
});
