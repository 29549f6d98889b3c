import { storeListener } from '../../../../src/primary/observe/primary-metrics.js';
import type { Logger } from '../../../../src/shared/log/logger.js';

it('The events of a store are logged when it goes down and comes up again, and measured otherwise', () => {
  const told: unknown[] = [];
  const note = (event: string, fields?: object) => told.push([event, fields]);
  const store = { done: (...figures: unknown[]) => told.push(figures) };
  const log = { info: note, warn: note, error: note } as unknown as Logger;
  const listener = storeListener(log, { store } as never);
  listener.done('commit', 7);
  listener.down('database or disk is full');
  listener.back();
  listener.warned('appendonly is no');
  expect(told).toEqual([
    ['commit', 7],
    ['store_down', { error: 'database or disk is full' }],
    ['store_back', undefined],
    ['store_warning', { error: 'appendonly is no' }],
  ]);
});
