import { readdir } from 'node:fs/promises';
import { isAlive } from '../processes/processes.js';
import type { Service } from './service.js';

/** Returns the log events of the shutdown and of reloads, in order. */
export function lifeEvents(service: Service): string[] {
  return service.logs.map(({ event }) => event).filter((event) => /^(shutdown|reload)_/.test(event));
}

/** Expects that an exited service left no worker, job process, runtime folder or listener. */
export async function expectNothingLeft(service: Service, workers: readonly number[]): Promise<void> {
  expect(workers.filter(isAlive)).toEqual([]);
  expect(await service.jobProcesses()).toEqual([]);
  expect(await readdir(service.home)).toEqual([]);
  await expect(service.get('/version')).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
}
