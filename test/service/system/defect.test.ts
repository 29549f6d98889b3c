import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/folder.js';
import { isAlive } from '../../support/processes.js';
import { programs, script, startWithProgram } from '../../support/service.js';
import { until } from '../../support/until.js';

describe('A defect of the primary', () => {
  it('is told in the log, ends the service with 70, and leaves no process and no folder', async () => {
    await using shared = await temporaryFolder();
    const defect = `--require=${join(programs, 'throws-on-signal.js')}`;
    const env = { NODE_OPTIONS: defect, TMPDIR: shared.path };
    await using service = await startWithProgram(script('forever.pl'), env);
    const workers = await service.workers();
    service.post('/ask', { prompt: 'hello' }).catch(() => {});
    await until(async () => (await service.jobProcesses()).length > 0, 'the program to run');
    service.process.kill('SIGUSR2');
    const record = { level: 'error', role: 'primary', error: expect.stringMatching(/^Error: a defect of the test\n/) };
    expect(await service.log('internal_error')).toMatchObject(record);
    expect(await service.exited).toBe(70);
    expect(await readdir(shared.path)).toEqual([]);
    await until(() => !workers.some(isAlive), 'the workers to be gone');
    expect(await service.jobProcesses()).toEqual([]);
  });
});
