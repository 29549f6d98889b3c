import { createAnswerGate } from '../../support/agents/answer-gate.js';
import { until } from '../../support/basics/until.js';
import { askInBackground, untilEnded, untilStatus } from '../../support/clients/background.js';
import { follow, namesOf, type StreamEvent, textOf } from '../../support/clients/event-stream.js';
import { fixture, type Service, script, startWithProgram, twoWorkers } from '../../support/service/service.js';

const oneSlot = { MODEL_API_MAX_CONCURRENT: '1' };

/** Returns the events after this one, of a job that has ended. */
async function eventsOf(service: Service, id: unknown, after: number): Promise<StreamEvent[]> {
  return (await follow(service, id, after)).remainingEvents();
}

describe('A background job', () => {
  it('continues when its viewer disconnects, and when the worker of its viewer is killed', async () => {
    await using gate = await createAnswerGate();
    await using service = await startWithProgram(gate.command, { ...twoWorkers, ...oneSlot });
    const id = await askInBackground(service, 'Hello');
    await using viewer = await follow(service, id);
    await until(async () => (await viewer.any()).event === 'started', 'the start');
    for (const pid of await service.workers()) process.kill(pid, 'SIGKILL');
    await expect(viewer.remainingEvents()).rejects.toThrow();
    await gate.open();
    const { result } = await until(async () => untilEnded(service, id).catch(() => null), 'the end');
    expect(result).toMatchObject({ success: true, response: 'Hello' });
    expect(namesOf(await eventsOf(service, id, 1))).toEqual(['delta', 'done']);
  });

  it('finishes during a drain if a restart would lose it, and is cut off at the drain limit', async () => {
    await using gate = await createAnswerGate();
    const env = { ...oneSlot, MODEL_API_DRAIN_TIMEOUT_SECONDS: '20' };
    await using service = await startWithProgram(gate.command, env);
    const ids = [await askInBackground(service, 'one'), await askInBackground(service, 'two')];
    await untilStatus(service, ids[0], 'running');
    const last = await follow(service, ids[1]);
    service.process.kill('SIGTERM');
    await service.log('shutdown_start');
    const refused = await service.post('/ask', { prompt: 'late' }, { prefer: 'respond-async' });
    expect([refused.status, refused.body.error]).toEqual([503, 'shutting_down']);
    await gate.open();
    expect((await last.remainingEvents()).at(-1)).toMatchObject({ event: 'done', data: { response: 'two' } });
    expect(await service.exited).toBe(0);

    await using stubborn = await startWithProgram(script('forever.pl'), {
      ...oneSlot,
      MODEL_API_DRAIN_TIMEOUT_SECONDS: '1',
    });
    await askInBackground(stubborn, 'one');
    const waiting = await follow(stubborn, await askInBackground(stubborn, 'two'));
    await waiting.next('queued');
    stubborn.process.kill('SIGTERM');
    await waiting.remainingEvents().catch(() => {}); // cut or ended: the stream ends in time
    expect(await stubborn.exited).not.toBeNull();
  });

  it('closes its streams with their worker, and sends a returning reader nothing twice', async () => {
    await using gate = await createAnswerGate();
    await using service = await startWithProgram(gate.command, oneSlot);
    const id = await askInBackground(service, 'Hello');
    const viewer = await follow(service, id);
    await until(async () => (await viewer.any()).event === 'started', 'the start');
    service.process.kill('SIGHUP');
    expect(await viewer.remainingEvents()).toEqual([]);
    await service.log('reload_complete');
    await gate.open();
    let rest: StreamEvent[] = []; // a kept-alive connection leads to the old worker once more
    for (let tries = 0; tries < 3 && rest.length === 0; tries++) rest = await eventsOf(service, id, 1);
    expect(namesOf(rest)).toEqual(['delta', 'done']);
  });

  it('is read by two hundred readers at once, and each receives all of it', async () => {
    await using service = await startWithProgram(fixture('upper.js'), oneSlot);
    const id = await askInBackground(service, 'x'.repeat(200_000));
    const readers = await Promise.all(Array.from({ length: 200 }, () => follow(service, id)));
    const texts = await Promise.all(readers.map(async (reader) => textOf(await reader.remainingEvents())));
    expect(new Set(texts.map((text) => text.length))).toEqual(new Set([200_000]));
  });
});
