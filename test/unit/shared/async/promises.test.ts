import { getEventListeners } from 'node:events';
import { orAborted } from '../../../../src/shared/async/promises.js';

const reason = new Error('enough');

describe('A promise that is waited for under a signal', () => {
  it('gives its value or its error, and leaves no listener', async () => {
    const { signal } = new AbortController();
    expect(await orAborted(Promise.resolve(7), signal)).toBe(7);
    await expect(orAborted(Promise.reject(reason), signal)).rejects.toBe(reason);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('is waited for no longer once the signal aborts', async () => {
    const controller = new AbortController();
    const waiting = orAborted(new Promise(() => {}), controller.signal);
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });

  it('is not waited for at all where the signal has aborted before', async () => {
    await expect(orAborted(Promise.resolve(7), AbortSignal.abort(reason))).rejects.toBe(reason);
  });

  it('goes on for others', async () => {
    let finish: (value: number) => void = () => {};
    const shared = new Promise<number>((resolve) => {
      finish = resolve;
    });
    const controller = new AbortController();
    const [one, other] = [orAborted(shared, controller.signal), orAborted(shared, new AbortController().signal)];
    controller.abort(reason);
    await expect(one).rejects.toBe(reason);
    finish(7);
    expect(await other).toBe(7);
  });
});
