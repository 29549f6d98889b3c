import { cookieOf, instanceOf } from '../../src/shared/cookie.js';

const instance = { pid: 4711, startTicks: '18446744073709551615', pidNamespace: '4026531836' };

describe('a cookie', () => {
  it('names its instance and its number', () => {
    expect(cookieOf(instance, 7)).toBe('4711.18446744073709551615.4026531836:7');
  });

  it('gives its instance back, to the last digit', () => {
    expect(instanceOf(cookieOf(instance, 7))).toEqual(instance);
  });

  it.each(['', 'x', '1.2.3', '1.2:3', '1.2.3:', '1.2.3:4:5', ' 1.2.3:4', '1.2.3:4\n', '-1.2.3:4', 'a.b.c:d'])(
    'that is not one of ours names nobody: %j',
    (cookie) => {
      expect(instanceOf(cookie)).toBeNull();
    },
  );
});
