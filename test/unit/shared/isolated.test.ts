import { isolated } from '../../../src/shared/isolated.js';

describe('An isolated observer', () => {
  const broken = () => {
    throw new TypeError('broken');
  };

  it('passes calls on, and reports their exceptions', () => {
    const calls: unknown[] = [];
    const reports: unknown[] = [];
    const observer = isolated({ counted: (n: number) => void calls.push(n), broken }, (thrown) => reports.push(thrown));
    observer.counted(3);
    observer.broken();
    expect([calls, reports]).toEqual([[3], [new TypeError('broken')]]);
  });

  it('does not throw if the report throws', () => {
    expect(() => isolated({ broken }, broken).broken()).not.toThrow();
  });
});
