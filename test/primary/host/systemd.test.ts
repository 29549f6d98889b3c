import { takeHandover } from '../../../src/primary/host/systemd.js';

const notify = { NOTIFY_SOCKET: '/run/notify', WATCHDOG_PID: '7', WATCHDOG_USEC: '30000000' };
const listen = { LISTEN_PID: '7', LISTEN_FDS: '2', LISTEN_FDNAMES: 'a:b' };

describe('what systemd hands over', () => {
  it('is taken out of the environment, and nothing else is', () => {
    const env = { PATH: '/bin', ...notify, ...listen };
    expect(takeHandover(env, 7)).toEqual({ notifySocket: '/run/notify', watchdogMs: 30_000, passedFds: [3, 4] });
    expect(env).toEqual({ PATH: '/bin' });
  });

  it('is not taken for ours when it was meant for another process, and is taken out all the same', () => {
    const env = { ...notify, ...listen };
    expect(takeHandover(env, 8)).toEqual({ notifySocket: '/run/notify', watchdogMs: null, passedFds: [] });
    expect(env).toEqual({});
  });

  it.each([{}, { NOTIFY_SOCKET: '', WATCHDOG_USEC: 'soon', LISTEN_PID: '7', LISTEN_FDS: 'some' }])(
    'is nothing where there is nothing of use: %j',
    (env) => {
      expect(takeHandover(env, 7)).toEqual({ notifySocket: null, watchdogMs: null, passedFds: [] });
    },
  );
});
