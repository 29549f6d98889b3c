import { apiHandlers, type Services } from '../../src/primary/api.js';
import type { JobRequest } from '../../src/shared/job.js';
import type { Phase } from '../../src/shared/phase.js';

describe('a job that a worker asks for', () => {
  function run(phase: Phase) {
    const told: string[] = [];
    const services: Partial<Services> = {
      phase: () => phase,
      runner: { run: () => void told.push('run') as never },
      jobMetrics: { refusedDraining: () => told.push('refused'), rateLimited: () => {} },
    };
    const handlers = apiHandlers(services as Services);
    const ask = () => handlers.run({} as JobRequest, new AbortController().signal);
    return { ask, told };
  }

  it('is run', () => {
    const { ask, told } = run('ready');
    ask();
    expect(told).toEqual(['run']);
  });

  it('is refused, and counted, where the worker has not heard of the drain yet', () => {
    const { ask, told } = run('draining');
    expect(ask).toThrow(expect.objectContaining({ code: 'shutting_down', retryAfterSeconds: 5 }));
    expect(told).toEqual(['refused']);
  });
});
