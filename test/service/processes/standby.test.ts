import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  askForReport,
  messageTexts,
  startReportingModel,
  untilOtherProcess,
  untilProcesses,
} from '../../support/agents/reporting-model.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { metric } from '../../support/documents/exposition.js';
import { untilTreeGone } from '../../support/jobs/jobs.js';
import { isAlive, jobProcesses } from '../../support/processes/processes.js';
import { fixture, programs, startService } from '../../support/service/service.js';

const standby = { MODEL_API_STANDBY: '1' };

describe('A process on standby', () => {
  it('exists soon after the start, answers the first job, and is replaced by another', async () => {
    await using service = await startReportingModel(standby);
    await untilProcesses(service, { standby: 1 });
    const waiting = await untilOtherProcess(service);
    const first = await askForReport(service, '/ask', { prompt: 'hello' });
    expect([first.pid, messageTexts(first)]).toEqual([waiting, ['hello']]);
    await untilProcesses(service, { standby: 1, busy: 0, stopping: 0 });
    const next = await untilOtherProcess(service, [waiting]);
    const second = await askForReport(service, '/chat', { message: 'hello again', system: 'Be brief.' });
    expect([second.pid, messageTexts(second)]).toEqual([next, ['Be brief.', 'hello again']]);
    expect(await metric(service, 'standby_total{result="hit"}')).toBe(2);
    expect(await metric(service, 'standby_total{result="miss"}')).toBe(0);
    expect(await metric(service, 'cli_processes{state="busy"}')).toBe(0);
  });

  it('also serves a plain command', async () => {
    const env = { ...standby, MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: fixture('upper.js') };
    await using service = await startService({ env });
    for (const prompt of ['one', 'two', 'three']) {
      await untilProcesses(service, { standby: 1 });
      expect((await service.post('/ask', { prompt })).body.response).toBe(prompt.toUpperCase());
    }
    expect(await metric(service, 'standby_total{result="hit"}')).toBe(3);
  });

  it('is added for another model from its second use on', async () => {
    await using service = await startReportingModel(standby);
    await untilProcesses(service, { standby: 1 });
    await askForReport(service, '/ask', { prompt: 'hello', model: 'echo' });
    await askForReport(service, '/ask', { prompt: 'hello', model: 'echo' });
    await untilProcesses(service, { standby: 2 });
    expect(await metric(service, 'standby_total{result="hit"}')).toBe(0);
    await askForReport(service, '/ask', { prompt: 'hello', model: 'echo' });
    expect(await metric(service, 'standby_total{result="hit"}')).toBe(1);
  });

  it('is replaced when it is killed, and no job fails', async () => {
    await using service = await startReportingModel(standby);
    await untilProcesses(service, { standby: 1 });
    const killed = await untilOtherProcess(service);
    process.kill(killed, 'SIGKILL');
    await untilProcesses(service, { standby: 0 });
    expect((await askForReport(service, '/ask', { prompt: 'hello' })).pid).not.toBe(killed);
    await untilProcesses(service, { standby: 1, stopping: 0 });
    await until(async () => (await service.jobProcesses()).length === 1, 'its one process'); // after its exec
  });

  it('is replaced when the program file changes: no job gets the old one', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'model');
    const source = await readFile(join(programs, 'converses.pl'), 'utf8');
    await writeFile(path, source);
    await chmod(path, 0o700);
    await using service = await startReportingModel(standby, path);
    await untilProcesses(service, { standby: 1 });
    const old = await untilOtherProcess(service);
    await writeFile(path, source.replace('edition 1', 'edition 2'));
    const { edition, pid } = await askForReport(service, '/ask', { prompt: 'hello' });
    expect(edition).toBe('edition 2');
    expect(pid).not.toBe(old);
    await until(() => !isAlive(old), 'the old process to be ended');
    await untilProcesses(service, { standby: 1, stopping: 0 });
    expect((await askForReport(service, '/ask', { prompt: 'hello' })).edition).toBe('edition 2');
  });

  it('is ended after the credential was rejected, and started again', async () => {
    await using service = await startReportingModel({ ...standby, MODEL_API_LIVE_SESSIONS: '4' });
    const { pid: live } = await askForReport(service, '/chat', { message: 'hello' });
    await untilProcesses(service, { standby: 1, live: 1 });
    const before = await service.jobProcesses();
    expect(before).toContain(live);
    expect((await service.post('/ask', { prompt: 'auth' })).body).toMatchObject({
      error: 'cli_error',
      reason: 'auth',
    });
    await until(() => before.every((pid) => !isAlive(pid)), 'all that waited to be ended');
    await untilProcesses(service, { standby: 1, live: 0, stopping: 0 });
  });

  it('does not exist at 0: every job starts a program', async () => {
    await using service = await startReportingModel({ MODEL_API_STANDBY: '0' });
    const pids = new Set<number>();
    for (let count = 0; count < 3; count++) {
      pids.add((await askForReport(service, '/ask', { prompt: 'hello' })).pid);
      await untilTreeGone(service);
    }
    expect(pids.size).toBe(3);
    expect(await metric(service, 'standby_total{result="hit"}')).toBe(0);
    expect(await metric(service, 'cli_processes{state="standby"}')).toBe(0);
  });
});

describe('Processes on standby', () => {
  const waiting = { MODEL_API_STANDBY: '2', MODEL_API_LIVE_SESSIONS: '2' };

  it('are ended at shutdown', async () => {
    const service = await startReportingModel(waiting);
    await askForReport(service, '/chat', { message: 'hello' });
    await untilProcesses(service, { standby: 2, live: 1 });
    expect(await service.stop()).toBe(0); // throws if a process is left
  });

  it('are ended at a shutdown that arrives while they are being started', async () => {
    for (let count = 0; count < 3; count++) {
      const service = await startReportingModel({ ...waiting, MODEL_API_STANDBY: '8' });
      await until(async () => (await service.jobProcesses()).length > count, 'some processes');
      expect(await service.stop()).toBe(0);
    }
  });

  it('are ended when the primary is killed', async () => {
    const service = await startReportingModel(waiting);
    await askForReport(service, '/chat', { message: 'hello' });
    await untilProcesses(service, { standby: 2, live: 1 });
    const pids = await until(async () => {
      const found = await service.jobProcesses(); // during its exec, a process cannot be found
      return found.length === 3 ? found : null;
    }, 'three processes');
    process.kill(service.pid, 'SIGKILL');
    await until(() => pids.every((pid) => !isAlive(pid)), 'all that waited to be gone');
    await until(async () => (await jobProcesses(service.pid)).length === 0, 'nothing to be left');
    await service.stop();
  });
});
