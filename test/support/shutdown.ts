import { readdir } from 'node:fs/promises';
import { isAlive } from './processes.js';
import type { Service } from './service.js';

/** What the service has logged of its shutdown and its reloads, in order. */
export function lifeEvents(service: Service): string[] {
  return service.logs.map(({ event }) => event).filter((event) => /^(shutdown|reload)_/.test(event));
}

/** For a service that has exited: no worker, no process of a job, no folder of its own, no listener. */
export async function expectNothingLeft(service: Service, workers: readonly number[]): Promise<void> {
  expect(workers.filter(isAlive)).toEqual([]);
  expect(await service.jobProcesses()).toEqual([]);
  expect(await readdir(service.home)).toEqual([]);
  await expect(service.get('/version')).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
}
