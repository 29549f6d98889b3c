import { ServedStream, streamWindow } from '../../../src/shared/ipc/served-stream.js';
import { settled } from '../../support/settled.js';

async function takeWindow(stream: ServedStream): Promise<void> {
  for (let taken = 0; taken < streamWindow; taken++) expect(await stream.takeCredit()).toBe(true);
}

describe('A stream that is served', () => {
  it('may send one window of items before its caller has taken any', async () => {
    const stream = new ServedStream();
    await takeWindow(stream);
    let hasCredit = false;
    void stream.takeCredit().then((given) => {
      hasCredit = given;
    });
    await settled();
    expect(hasCredit).toBe(false);
    stream.addCredit(1);
    await settled();
    expect(hasCredit).toBe(true);
  });

  it('may send as many items more as its caller has taken', async () => {
    const stream = new ServedStream();
    await takeWindow(stream);
    stream.addCredit(streamWindow);
    await takeWindow(stream);
  });

  it('waits no longer when its caller goes, and its signal tells why', async () => {
    const stream = new ServedStream();
    await takeWindow(stream);
    const waiting = stream.takeCredit();
    const reason = new Error('gone');
    stream.abort(reason);
    expect(await waiting).toBe(false);
    expect(stream.signal.reason).toBe(reason);
    expect(await stream.takeCredit()).toBe(false);
  });
});
